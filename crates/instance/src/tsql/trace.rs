//! `DBCC TRACEON` and `TRACEOFF`.

use windlass_base::message::table;
use windlass_tsql::ast::{Dbcc, InformationMessages, Switch};

use crate::{Session, Sink};

/// Backups of the page engine print the time and work of each step.
const PHASES: u32 = 3004;

/// Backups and restores print their buffer configuration.
const BUFFER_CONFIGURATION: u32 = 3213;

/// Traces go to the client, or to the error log; the command line shows both as messages.
const TO_CLIENT: u32 = 3604;
const TO_ERROR_LOG: u32 = 3605;

pub(super) fn execute(session: &mut Session, statement: &Dbcc, sink: &mut dyn Sink) {
    let Dbcc::Trace {
        switch,
        flags,
        // Each session is a process of its own here, so its flags are the only ones.
        scope: _,
        messages,
    } = statement
    else {
        // The batch is refused before it runs.
        return;
    };
    let is_on = *switch == Switch::On;
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
}

/// The first of the flags that does nothing here.
pub(super) fn unknown(flags: &[u32]) -> Option<&u32> {
    let known = [PHASES, BUFFER_CONFIGURATION, TO_CLIENT, TO_ERROR_LOG];
    flags.iter().find(|flag| !known.contains(flag))
}
