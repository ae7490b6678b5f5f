//! `DBCC TRACEON` and `TRACEOFF`.

use windlass_base::message::table;
use windlass_tsql::ast::{Dbcc, InformationMessages, Switch};

use crate::{Failure, Session, Sink};

/// Backups of the page engine print the time and work of each step.
const PHASES: u32 = 3004;

/// Backups and restores print their buffer configuration.
const BUFFER_CONFIGURATION: u32 = 3213;

/// Traces go to the client, or to the error log; the command line shows both as messages.
const TO_CLIENT: u32 = 3604;
const TO_ERROR_LOG: u32 = 3605;

pub(super) fn execute(
    session: &mut Session,
    statement: &Dbcc,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let Dbcc::Trace {
        switch,
        flags,
        // Each session is a process of its own here, so its flags are the only ones.
        scope: _,
        messages,
    } = statement
    else {
        return Err(table::dbcc_not_supported().into());
    };
    let is_on = *switch == Switch::On;
    let known = [PHASES, BUFFER_CONFIGURATION, TO_CLIENT, TO_ERROR_LOG];
    if let Some(unknown) = flags.iter().find(|flag| !known.contains(flag)) {
        return Err(table::trace_flag_not_supported(unknown).into());
    }
    for flag in flags {
        match *flag {
            PHASES => session.settings.traces_phases = is_on,
            BUFFER_CONFIGURATION => session.settings.traces_buffers = is_on,
            _ => session.settings.tells_traces = is_on,
        }
    }
    if *messages == InformationMessages::Shown {
        sink.message(table::dbcc_completed());
    }
    Ok(())
}
