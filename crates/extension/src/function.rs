//! `windlass_sql(text [, instance])`: runs T-SQL in the program that has the databases open.
//!
//! The open databases can be backed up under the names that their URIs give them, or those of their files without
//! extension. With an instance, its
//! settings count, and its history gets what runs. The answer is JSON, an error is an error of SQL:
//!
//! ```json
//! {"messages": [{"number": 3014, "severity": 0, ..., "text": "..."}], "results": [[{"Position": 1}]], "rows_affected": []}
//! ```
#![expect(unsafe_code, reason = "SQLite calls it, in C")]

use std::ffi::{c_int, c_void};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use windlass_base::Message;
use windlass_instance::{BatchEnd, Collected, Instance, Principal, Session, json, logical_name};
use windlass_vfs::{Databases as _, Held, PathDatabases, last_error};

use crate::registered;

/// Messages of this severity and above are errors.
const ERROR_SEVERITY: u8 = 11;

/// SQLite calls this for `windlass_sql`.
///
/// # Safety
/// The arguments are those that SQLite passes to an SQL function.
pub(crate) unsafe extern "C" fn windlass_sql(
    context: *mut c_void,
    count: c_int,
    values: *mut *mut c_void,
) {
    let Some(registered) = registered() else {
        return;
    };
    let functions = &registered.functions;
    let argument = |number: usize| {
        let is_given = c_int::try_from(number).is_ok_and(|number| number < count);
        is_given.then(|| {
            let place = values.wrapping_add(number);
            // SAFETY: SQLite passes `count` values.
            let value = unsafe { place.read() };
            // SAFETY: it is an argument of the function that runs.
            unsafe { functions.text(value) }
        })
    };
    let (text, instance) = (argument(0), argument(1));
    let run = || match (text, instance) {
        (Some(Some(text)), None) => run(&registered.databases, &text, None),
        (Some(Some(text)), Some(Some(folder))) => {
            run(&registered.databases, &text, Some(Path::new(&folder)))
        }
        _ => {
            Err("windlass_sql: the statements, and the folder of the instance, are text".to_owned())
        }
    };
    let result = std::panic::catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err("windlass_sql: a panic ended it; this is a defect".to_owned()));
    // SAFETY: the context of this call.
    unsafe { functions.answer(context, &result) };
}

/// `windlass_error()`: the last error of a database in this thread, once, or NULL. SQLite itself says only that a file
/// cannot be opened.
///
/// # Safety
/// As for [`windlass_sql`].
pub(crate) unsafe extern "C" fn windlass_error(
    context: *mut c_void,
    _count: c_int,
    _values: *mut *mut c_void,
) {
    if let (Some(registered), Some(text)) = (registered(), last_error()) {
        // SAFETY: the context of this call.
        unsafe { registered.functions.answer(context, &Ok(text)) };
    }
}

fn run(
    databases: &Arc<PathDatabases>,
    text: &str,
    folder: Option<&Path>,
) -> Result<String, String> {
    databases
        .check_process()
        .map_err(|error| format!("windlass_sql: {error}"))?;
    let mut instance = Instance::open(folder).map_err(|error| format!("windlass_sql: {error}"))?;
    // They stay open until the statements have run.
    let mut held = Vec::new();
    for path in databases.open_paths() {
        if let Some(one) = databases.hold(&path) {
            lend(&mut instance, &path, &one)?;
            held.push(one);
        }
    }
    let mut session = Session::new(instance);
    let user = session.instance().identity().user.clone();
    session
        .act_as(Principal::guest(&user))
        .map_err(|failure| reason(&failure.messages))?;
    let mut collected = Collected::default();
    let end = session.execute_batch(text, 1, &mut collected);
    drop(session);
    drop(held);
    match end {
        BatchEnd::Clean => Ok(answer(&collected).to_string()),
        BatchEnd::Failed | BatchEnd::Refused => Err(reason(&collected.messages)),
    }
}

/// Lends a database under the name that its URI gives it, or that of its file; the second of a name gets a number.
fn lend(instance: &mut Instance, path: &Path, held: &Held) -> Result<(), String> {
    let stem = held
        .name()
        .map_or_else(|| logical_name(path), str::to_owned);
    let mut name = stem.clone();
    let mut number = 2;
    let is_taken = |name: &str, instance: &Instance| {
        instance
            .database(name)
            .map(|found| found.is_some_and(|found| found.path != path))
            .map_err(|error| format!("windlass_sql: {error}"))
    };
    while windlass_instance::is_system_database(&name) || is_taken(&name, instance)? {
        name = format!("{stem}_{number}");
        number += 1;
    }
    let lent = instance.lend(&name, path, held.database());
    lent.map(drop)
        .map_err(|error| format!("windlass_sql: {error}"))
}

/// The errors among the messages; all of them if there is none.
fn reason(messages: &[Message]) -> String {
    let errors = messages
        .iter()
        .filter(|message| message.severity.0 >= ERROR_SEVERITY)
        .map(|message| format!("Msg {}: {}", message.number, message.text));
    let errors: Vec<_> = errors.collect();
    match errors.is_empty() {
        true => "windlass_sql: the statements failed".to_owned(),
        false => errors.join("\n"),
    }
}

fn answer(collected: &Collected) -> Json {
    let rows = |result| Json::Array(json::rows(result));
    json!({
        "messages": collected.messages.iter().map(json::message).collect::<Vec<_>>(),
        "results": collected.results.iter().map(rows).collect::<Vec<_>>(),
        "rows_affected": collected.rows_affected,
    })
}
