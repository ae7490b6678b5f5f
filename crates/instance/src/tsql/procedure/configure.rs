//! `sp_configure`: shows server options and sets them.

use windlass_base::message::table;
use windlass_catalog::{Configuration, ServerOption};

use super::Arguments;
use crate::tsql::expression::integer;
use crate::{Column, ColumnType, Failure, ResultSet, Session, Sink, Value};

/// Options that SQL Server lists here but only ALTER SERVER CONFIGURATION can set.
const SET_ELSEWHERE: [ServerOption; 2] = [
    ServerOption::HardwareOffloadConfig,
    ServerOption::HardwareOffloadMode,
];

/// `sp_configure [name [, value]]`
pub(super) fn configure(
    session: &mut Session,
    arguments: &Arguments<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let visible = visible(session)?;
    let value = arguments.value("@configvalue");
    let Some(written) = arguments.optional("@configname") else {
        return match value {
            None => {
                rows(&visible).send(sink);
                Ok(())
            }
            Some(_) => Err(arguments.required("@configname").err().unwrap_or_else(|| {
                Failure::from(table::parameter_missing("sp_configure", "@configname"))
            })),
        };
    };
    let found = find(&visible, &written, sink)?;
    match value {
        None => {
            rows(std::slice::from_ref(found)).send(sink);
            Ok(())
        }
        Some(value) => set(session, found, value, sink),
    }
}

/// The visible options: advanced ones only with `show advanced options`.
fn visible(session: &Session) -> Result<Vec<Configuration>, Failure> {
    let catalog = session.instance.catalog();
    let all = catalog.configurations()?;
    let advanced = catalog.option_in_use(ServerOption::ShowAdvancedOptions)? != 0;
    Ok(all
        .into_iter()
        .filter(|option| advanced || !option.is_advanced)
        .collect())
}

/// The only option whose name contains the text; an exact match wins.
fn find<'a>(
    visible: &'a [Configuration],
    written: &str,
    sink: &mut dyn Sink,
) -> Result<&'a Configuration, Failure> {
    let wanted = written.trim().to_lowercase();
    let found: Vec<&Configuration> = visible
        .iter()
        .filter(|option| option.name.to_lowercase().contains(&wanted))
        .collect();
    let whole = found
        .iter()
        .find(|option| option.name.to_lowercase() == wanted);
    match (whole, found.as_slice()) {
        (Some(option), _) | (None, [option]) => Ok(option),
        (None, []) => Err(table::configuration_unknown(written).into()),
        (None, _) => {
            let listed: Vec<Configuration> = found.into_iter().cloned().collect();
            rows(&listed).send(sink);
            Err(table::configuration_not_unique(written).into())
        }
    }
}

fn set(
    session: &mut Session,
    option: &Configuration,
    value: &Value,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let value = integer(value)?;
    if !(option.minimum..=option.maximum).contains(&value) {
        return Err(table::configuration_value_invalid(value, &option.name).into());
    }
    if SET_ELSEWHERE
        .iter()
        .any(|elsewhere| elsewhere.name() == option.name)
    {
        return Err(table::offload_by_configure(&option.name).into());
    }
    session
        .instance
        .catalog_mut()
        .configure(&option.name, value)?;
    sink.message(table::configuration_changed(
        &option.name,
        option.value,
        value,
    ));
    Ok(())
}

fn rows(options: &[Configuration]) -> ResultSet {
    ResultSet {
        columns: vec![
            Column::new("name", ColumnType::NVarChar(35)),
            Column::new("minimum", ColumnType::Int),
            Column::new("maximum", ColumnType::Int),
            Column::new("config_value", ColumnType::Int),
            Column::new("run_value", ColumnType::Int),
        ],
        rows: options
            .iter()
            .map(|option| {
                vec![
                    Value::text(&option.name),
                    Value::Integer(option.minimum),
                    Value::Integer(option.maximum),
                    Value::Integer(option.value),
                    Value::Integer(option.value_in_use),
                ]
            })
            .collect(),
    }
}
