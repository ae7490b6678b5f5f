//! The functions that the views call: what is known of files, requests and open databases, as JSON.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use rusqlite::Connection;
use rusqlite::functions::{Context, FunctionFlags};
use serde_json::{Value as Json, json};
use windlass_base::message::table;
use windlass_tsql::ast::Statement;

use super::storage::storage;
use crate::engine::OpenDatabases;
use crate::sessions::Sessions;
use crate::{DataType, Identity, accelerator, agent, followers};

/// Adds them to the catalog's connection of a session.
pub(super) fn add(
    reader: &Connection,
    folder: Option<PathBuf>,
    engines: OpenDatabases,
    sessions: Sessions,
    database: &str,
) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8;
    let constant = flags | FunctionFlags::SQLITE_DETERMINISTIC;
    let database = database.to_owned();
    reader.create_scalar_function("windlass_database", 0, constant, move |_| {
        Ok(database.clone())
    })?;
    reader.create_scalar_function("windlass_accelerator_status", 3, flags, |context| {
        Ok(accelerator::status(
            context.get(0)?,
            context.get(1)?,
            context.get(2)?,
        ))
    })?;
    let server = Identity::of_instance(folder.as_deref()).server;
    reader.create_scalar_function("windlass_server", 0, constant, move |_| Ok(server.clone()))?;
    let (of_agent, kept) = (folder.clone(), folder.clone());
    reader.create_scalar_function("windlass_agent", 0, flags, move |_| {
        Ok(of_agent.as_deref().is_some_and(agent::is_running))
    })?;
    let (own, place) = (sessions.clone(), folder.clone());
    let requests =
        move |_: &Context<'_>| Ok(crate::requests::with_sessions(folder.as_deref(), &own));
    reader.create_scalar_function("windlass_requests", 0, flags, requests)?;
    let listed = move |_: &Context<'_>| Ok(crate::requests::sessions(place.as_deref(), &sessions));
    reader.create_scalar_function("windlass_sessions", 0, flags, listed)?;
    let opened = Instant::now();
    let uptime = move |_: &Context<'_>| Ok(i64::try_from(opened.elapsed().as_millis()).ok());
    reader.create_scalar_function("windlass_uptime_ms", 0, flags, uptime)?;
    reader.create_scalar_function("windlass_messages", 0, constant, |_| Ok(messages()))?;
    reader.create_scalar_function("windlass_parameters", 1, constant, |context| {
        Ok(parameters(&context.get::<String>(0)?))
    })?;
    reader.create_scalar_function("windlass_file_bytes", 1, flags, |context| {
        Ok(metadata(context)?.and_then(|file| i64::try_from(file.len()).ok()))
    })?;
    reader.create_scalar_function("windlass_disk_bytes", 1, flags, |context| {
        let bytes = |file: std::fs::Metadata| i64::try_from(file.blocks().saturating_mul(512)).ok();
        Ok(metadata(context)?.and_then(bytes))
    })?;
    let followed = kept.clone();
    reader.create_scalar_function("windlass_follower", 1, flags, move |context| {
        let made_for: String = context.get(0)?;
        let place = followed
            .as_deref()
            .map(|folder| folder.join("follow").join(made_for));
        Ok(place.map(|place| followers::told(&place).to_string()))
    })?;
    reader.create_scalar_function("windlass_kept_log", 1, flags, move |context| {
        let made_for: Option<String> = context.get(0)?;
        let place = made_for.zip(kept.as_deref());
        Ok(place.is_some_and(|(made_for, folder)| folder.join("follow").join(made_for).is_dir()))
    })?;
    let own = engines.clone();
    reader.create_scalar_function("windlass_buffers", 0, flags, move |_| Ok(own.buffers()))?;
    let own = engines.clone();
    reader.create_scalar_function("windlass_engine", 1, flags, move |context| {
        let log: Option<String> = context.get(0)?;
        Ok(log.and_then(|log| own.described(Path::new(&log))))
    })?;
    let figures = move |_: &Context<'_>| Ok(engines.figures());
    reader.create_scalar_function("windlass_engine_figures", 0, flags, figures)
}

fn metadata(context: &Context<'_>) -> rusqlite::Result<Option<std::fs::Metadata>> {
    let path: Option<String> = context.get(0)?;
    Ok(path.and_then(|path| std::fs::metadata(path).ok()))
}

/// Number, severity and text of every message; parameters as SQL Server shows them.
fn messages() -> String {
    let mut seen = std::collections::BTreeMap::new();
    let shared = [table::NOT_BUILT, table::UNSUPPORTED, table::NOTES];
    for entry in table::ALL.iter().chain(shared.into_iter().flatten()) {
        seen.entry(entry.number).or_insert(entry);
    }
    let rows = seen.into_values();
    let rows = rows.map(|entry| json!([entry.number, entry.severity, entry.pattern()]));
    Json::Array(rows.collect()).to_string()
}

/// The parameters of a procedure, for `sys.parameters`.
fn parameters(definition: &str) -> String {
    let statements = windlass_tsql::parse_batch(definition).unwrap_or_default();
    let Some(Statement::DefineProcedure(procedure)) =
        statements.first().map(|statement| &statement.node)
    else {
        return "[]".to_owned();
    };
    let rows = procedure.parameters.iter().map(|parameter| {
        let ty = DataType::of(&parameter.data_type, 1).unwrap_or(DataType::Variant);
        let storage = storage(ty);
        json!({
            "name": parameter.variable.name,
            "type": storage.system_type_id,
            "bytes": storage.bytes,
            "precision": storage.precision,
            "scale": storage.scale,
            "is_output": i32::from(parameter.is_output),
        })
    });
    Json::Array(rows.collect()).to_string()
}
