//! RECONFIGURE, ALTER SERVER CONFIGURATION and KILL.

use windlass_base::message::table;
use windlass_catalog::ServerOption;
use windlass_tsql::ast::{AcceleratorMode, AlterServerConfiguration, Reconfigure, Switch, Value};
use windlass_tsql::span::Spanned;

use crate::tsql::expression::integer;
use crate::tsql::option::value_of;
use crate::{Failure, Session, Sink};

/// A longer recovery interval needs WITH OVERRIDE.
const RECOVERY_INTERVAL_MINUTES_MAX: i64 = 60;

/// The bit of Intel QAT in `hardware offload config` and `hardware offload mode`.
const QAT: i64 = 1;

/// `RECONFIGURE [WITH OVERRIDE]`
pub(super) fn reconfigure(
    session: &mut Session,
    reconfigure: Reconfigure,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    if session.queries.is_in_transaction() {
        return Err(table::not_in_transaction("RECONFIGURE").into());
    }
    let catalog = session.instance.catalog_mut();
    let options = catalog.configurations()?;
    let changed = |option: ServerOption| {
        options
            .iter()
            .find(|row| row.name == option.name() && row.value != row.value_in_use)
    };
    let interval = changed(ServerOption::RecoveryInterval);
    if let Some(interval) = interval
        && interval.value > RECOVERY_INTERVAL_MINUTES_MAX
        && reconfigure == Reconfigure::Checked
    {
        return Err(table::recovery_interval_too_long(RECOVERY_INTERVAL_MINUTES_MAX).into());
    }
    catalog.reconfigure()?;
    if let Some(interval) = interval {
        session
            .instance
            .engines
            .set_recovery_interval(interval.value);
    }
    if changed(ServerOption::MaxServerMemory).is_some() {
        sink.message(table::memory_at_next_opening());
    }
    if changed(ServerOption::HardwareOffloadEnabled).is_some() {
        sink.message(table::offload_at_next_opening());
    }
    Ok(())
}

/// `ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON | OFF (ACCELERATOR = QAT [, MODE = SOFTWARE])`
pub(super) fn alter(
    session: &mut Session,
    alter: &AlterServerConfiguration,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let catalog = session.instance.catalog_mut();
    let options = catalog.configurations()?;
    let enabled = options
        .iter()
        .any(|row| row.name == ServerOption::HardwareOffloadEnabled.name() && row.value != 0);
    let is_on = alter.hardware_offload == Switch::On;
    if is_on && !enabled {
        return Err(table::offload_not_enabled().into());
    }
    let is_software = alter
        .accelerator
        .is_some_and(|accelerator| accelerator.mode == AcceleratorMode::Software);
    let config = if is_on { QAT } else { 0 };
    let mode = if is_on && is_software { QAT } else { 0 };
    catalog.install(ServerOption::HardwareOffloadConfig, config)?;
    catalog.install(ServerOption::HardwareOffloadMode, mode)?;
    sink.message(table::accelerator_at_next_opening());
    Ok(())
}

/// `KILL`
pub(super) fn kill(session: &mut Session, number: &Spanned<Value>) -> Result<(), Failure> {
    let number = integer(&value_of(&number.node, session)?)?;
    let found = u32::try_from(number)
        .ok()
        .and_then(|number| session.instance.sessions().find(number));
    match found {
        None => Err(table::no_such_process(number).into()),
        Some(found) if found.number == session.number() => Err(table::kill_own().into()),
        Some(found) => {
            found.kill();
            Ok(())
        }
    }
}
