//! `sp_executesql`: a batch with parameters.

use windlass_base::message::table;
use windlass_tsql::ast::{Argument, ArgumentDirection, ArgumentValue, Statement, Value as Written};
use windlass_tsql::span::Spanned;

use super::argument_value;
use crate::tsql::expression::{text_of, type_of};
use crate::{DataType, Failure, Session, Sink, Value, Variables};

/// A parameter of the batch.
struct Parameter {
    name: String,
    ty: DataType,
    is_output: bool,
}

pub(super) fn execute(
    session: &mut Session,
    written: &[Spanned<Argument>],
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let named = |argument: &Argument, name: &str| {
        argument
            .name
            .as_ref()
            .is_some_and(|own| own.name.eq_ignore_ascii_case(name))
    };
    let place = |index: usize, names: &[&str]| {
        let by_name = written
            .iter()
            .position(|argument| names.iter().any(|name| named(&argument.node, name)));
        by_name.or_else(|| {
            written
                .get(index)
                .filter(|argument| argument.name.is_none())
                .map(|_| index)
        })
    };
    let statement = place(0, &["@stmt", "@statement"]);
    let Some(statement) = statement else {
        return Err(table::parameter_missing("sp_executesql", "@statement").into());
    };
    let text = text_at(session, written, statement)?;
    let definition = place(1, &["@params", "@parameters"]).filter(|place| *place != statement);
    let parameters = match definition {
        Some(place) => parameters(&text_at(session, written, place)?)?,
        None => Vec::new(),
    };
    let mut variables = Variables::default();
    for parameter in &parameters {
        variables.declare(&parameter.name, parameter.ty, None)?;
    }
    let mut outputs = Vec::new();
    let mut next = 0;
    for (index, argument) in written.iter().enumerate() {
        if index == statement || Some(index) == definition {
            continue;
        }
        let parameter = match &argument.name {
            Some(name) => parameters
                .iter()
                .find(|parameter| parameter.name.eq_ignore_ascii_case(&name.name))
                .ok_or_else(|| {
                    Failure::from(table::not_a_parameter(&name.name, "sp_executesql"))
                })?,
            None => {
                let parameter = parameters.get(next);
                next += 1;
                parameter
                    .ok_or_else(|| Failure::from(table::too_many_arguments("sp_executesql")))?
            }
        };
        let value = argument_value(session, &argument.value)?;
        variables.set(&parameter.name, &value, type_of(&value))?;
        if argument.direction == ArgumentDirection::Output
            && parameter.is_output
            && let ArgumentValue::Value(Written::Variable(variable)) = &argument.value
        {
            outputs.push((parameter.name.clone(), parameter.ty, variable.name.clone()));
        }
    }
    let after = session.execute_nested(&text, variables, sink)?;
    for (parameter, ty, variable) in outputs {
        session
            .variables
            .set(&variable, &after.value(&parameter)?, ty)?;
    }
    Ok(())
}

fn text_at(
    session: &mut Session,
    written: &[Spanned<Argument>],
    at: usize,
) -> Result<String, Failure> {
    let Some(argument) = written.get(at) else {
        return Ok(String::new());
    };
    match argument_value(session, &argument.value)? {
        Value::Null => Ok(String::new()),
        value => text_of(&value),
    }
}

/// The parameters of `@a int, @b nvarchar(10) OUTPUT`.
fn parameters(definition: &str) -> Result<Vec<Parameter>, Failure> {
    let mut parameters = Vec::new();
    for part in parts(definition) {
        let lower = part.to_ascii_lowercase();
        let plain = [" output", " out"]
            .iter()
            .find(|word| lower.ends_with(*word));
        let declared = plain.map_or(part.as_str(), |word| &part[..part.len() - word.len()]);
        let statements = windlass_tsql::parse_batch(&format!("DECLARE {declared}"))?;
        for statement in statements {
            let Statement::Declare(declarations) = statement.node else {
                return Err(table::syntax_near(declared).into());
            };
            for declaration in declarations {
                let written = &declaration.data_type;
                let ty = DataType::of(written, 1).ok_or_else(|| {
                    Failure::from(table::data_type_not_found(&written.name.object.text))
                })?;
                parameters.push(Parameter {
                    name: declaration.variable.name.clone(),
                    ty,
                    is_output: plain.is_some(),
                });
            }
        }
    }
    Ok(parameters)
}

/// The parts between commas outside of parentheses.
fn parts(definition: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for character in definition.chars() {
        depth += i32::from(character == '(') - i32::from(character == ')');
        match (character, depth) {
            (',', 0) => parts.push(String::new()),
            _ => {
                if let Some(part) = parts.last_mut() {
                    part.push(character);
                }
            }
        }
    }
    let trimmed = parts.iter().map(|part| part.trim().to_owned());
    trimmed.filter(|part| !part.is_empty()).collect()
}
