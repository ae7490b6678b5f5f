//! `windlass extract`: extracts the tables of SQL Server backups, or their data files.

use serde_json::{Value as Json, json};
use windlass_bak::table::{Owner, Unsettled, UnsettledObject};
use windlass_base::message::table;
use windlass_device::DeviceAddress;
use windlass_sqlserver::{
    Destination, Error, Extracted, ExtractedTable, Format, Restored, Source, Step, extract,
    restore, sets_in, steps,
};

use super::{Outcome, disks, ended, existing_session, misused};
use crate::args::{Common, ExtractArguments, ExtractFormat};
use crate::output::{Console, Layout, Table, error_line, message_line, result_line};

/// Runs the command.
pub(crate) fn run(arguments: &ExtractArguments, common: &Common) -> Outcome {
    if arguments.format == ExtractFormat::Files && !arguments.table.is_empty() {
        return misused("--table has no meaning with --format files");
    }
    let mut console = Console::new(common.json, Layout::Table);
    let Some(mut session) = existing_session(common, &mut console) else {
        return Outcome::Failed;
    };
    crate::cancel::ends_reads(session.cancel_flag());
    let devices = match session.permit_extraction(&disks(&arguments.files), &arguments.to) {
        Ok(devices) => devices,
        Err(failure) => return ended::<()>(Err(failure), &mut console),
    };
    drop(session);
    let result = if arguments.format == ExtractFormat::Files {
        data_files(&devices, arguments, common)
    } else {
        tables(&devices, arguments, common)
    };
    result.unwrap_or_else(|error| {
        error_line(&error.to_string());
        Outcome::Failed
    })
}

/// Says that the first of several sets is read, if none was chosen.
fn tell_others(devices: &[DeviceAddress], arguments: &ExtractArguments) {
    let Some(first) = devices.first().filter(|_| arguments.set.is_none()) else {
        return;
    };
    // Of data files, and of what cannot be read, nothing is said here.
    let others = sets_in(first).map_or(0, |sets| sets.len().saturating_sub(1));
    if others > 0 {
        message_line(&table::oldest_set_taken(others).text);
    }
}

fn tables(
    devices: &[DeviceAddress],
    arguments: &ExtractArguments,
    common: &Common,
) -> Result<Outcome, Error> {
    let format = match arguments.format {
        ExtractFormat::Csv => Format::Csv,
        ExtractFormat::Parquet => Format::Parquet,
        ExtractFormat::Sqlite | ExtractFormat::Files => Format::Sqlite,
    };
    let mut source = Source::open(devices, arguments.set.unwrap_or(1))?;
    tell_others(devices, arguments);
    for (path, finding) in &source.findings {
        message_line(&format!("damage: {}: {finding}", path.display()));
    }
    if let Some((path, first)) = source.findings.first()
        && !arguments.continue_after_error
    {
        return Err(Error::Damaged {
            path: path.clone(),
            count: source.findings.len(),
            first: first.clone(),
        });
    }
    let extracted = extract(&mut source, &arguments.to, format, &arguments.table)?;
    for note in &source.notes {
        message_line(note);
    }
    if let Some(unsettled) = &extracted.unsettled {
        for line in log_lines(unsettled) {
            message_line(&line);
        }
    }
    if common.json {
        result_line(&as_json(&extracted).to_string());
    } else {
        print(&extracted);
    }
    for problem in problems(&extracted) {
        message_line(&problem);
    }
    let is_whole =
        extracted.problems.is_empty() && extracted.tables.iter().all(ExtractedTable::is_whole);
    Ok(if is_whole {
        Outcome::Succeeded
    } else {
        Outcome::Failed
    })
}

fn print(extracted: &Extracted) {
    let headings = ["schema", "table", "rows", "counted", "pages", "written as"];
    let mut table = Table::of_texts(&headings, &[2, 3, 4]);
    for found in &extracted.tables {
        table.texts(vec![
            found.schema.clone(),
            found.name.clone(),
            found.tally.rows.to_string(),
            found.counted_rows.to_string(),
            found.tally.pages.to_string(),
            found.written_as.clone().unwrap_or_else(|| "-".to_owned()),
        ]);
    }
    table.finish();
}

/// What the log of the backup says of its pages.
pub(super) fn log_lines(unsettled: &Unsettled) -> Vec<String> {
    if unsettled.is_settled() {
        return vec![format!(
            "The log in the backup has {} records: no transaction was open at its end, and no page lacks a change of rows in it.",
            unsettled.records
        )];
    }
    let mut lines: Vec<String> = Vec::new();
    for text in &unsettled.transactions {
        lines.push(format!("log: {text}"));
    }
    for object in &unsettled.objects {
        let Owner { schema, name, .. } = &object.owner;
        lines.push(format!("log: {schema}.{name}: {}", object.text()));
    }
    if unsettled.unknown_pages > 0 {
        lines.push(format!(
            "log: {} more such pages are of unknown objects",
            unsettled.unknown_pages
        ));
    }
    if let Some(doubt) = &unsettled.doubt {
        lines.push(format!(
            "Not checked: whether transactions were open at the end of the backup, because {doubt}."
        ));
    }
    lines
}

/// Everything that was not written, in words.
pub(super) fn problems(extracted: &Extracted) -> Vec<String> {
    let mut problems: Vec<String> = extracted
        .problems
        .iter()
        .map(|problem| format!("system tables: {problem}"))
        .collect();
    for table in &extracted.tables {
        let name = format!("{}.{}", table.schema, table.name);
        if let Some(refusal) = &table.refusal {
            problems.push(format!("{name}: not written, {refusal}"));
            continue;
        }
        if table.tally.rows != table.counted_rows {
            problems.push(format!(
                "{name}: {} rows were written, the server counted {}",
                table.tally.rows, table.counted_rows
            ));
        }
        if table.unnamed_columns > 0 {
            problems.push(format!(
                "{name}: the names of {} columns are not in the backup: they are numbered",
                table.unnamed_columns
            ));
        }
        let reported = &table.tally.problems;
        problems.extend(reported.texts.iter().map(|text| format!("{name}: {text}")));
        if reported.count > reported.texts.len() as u64 {
            let more = reported.count - reported.texts.len() as u64;
            problems.push(format!("{name}: and {more} more"));
        }
        let undecoded = &table.tally.undecoded;
        if undecoded.count > 0 {
            problems.push(format!(
                "{name}: {} values are given as their stored bytes because they were not understood",
                undecoded.count
            ));
            problems.extend(undecoded.texts.iter().map(|text| format!("{name}: {text}")));
        }
        for key in &table.foreign_keys_left_out {
            problems.push(format!("{name}: foreign key {key}: left out"));
        }
        if let Some(unsettled) = &table.unsettled {
            problems.push(format!("{name}: {}", unsettled.text()));
        }
        for column in &table.computed {
            problems.push(format!(
                "{name}: column {column} is computed and not stored: left out"
            ));
        }
        for column in &table.opaque {
            problems.push(format!(
                "{name}: column {column} is given as its stored bytes"
            ));
        }
    }
    problems
}

fn as_json(extracted: &Extracted) -> Json {
    let tables: Vec<Json> = extracted
        .tables
        .iter()
        .map(|table| {
            json!({
                "schema": table.schema,
                "table": table.name,
                "rows": table.tally.rows,
                "counted_rows": table.counted_rows,
                "pages": table.tally.pages,
                "written_as": table.written_as,
                "refusal": table.refusal.as_ref().map(ToString::to_string),
                "problems": table.tally.problems.texts,
                "problem_count": table.tally.problems.count,
                "undecoded": table.tally.undecoded.texts,
                "undecoded_count": table.tally.undecoded.count,
                "foreign_keys_left_out": table.foreign_keys_left_out,
                "computed_columns": table.computed,
                "unnamed_columns": table.unnamed_columns,
                "columns_as_bytes": table.opaque,
                "unsettled": table.unsettled.as_ref().map(unsettled_json),
            })
        })
        .collect();
    let log = extracted.unsettled.as_ref().map(|log| {
        json!({
            "records": log.records,
            "open_transactions": log.transactions,
            "objects": log.objects.iter().map(unsettled_json).collect::<Vec<Json>>(),
            "unknown_pages": log.unknown_pages,
            "not_checked": log.doubt,
        })
    });
    json!({ "tables": tables, "problems": extracted.problems, "log": log })
}

fn unsettled_json(object: &UnsettledObject) -> Json {
    json!({
        "schema": object.owner.schema,
        "name": object.owner.name,
        "open_pages": object.open_pages,
        "inserted": object.rows.inserted,
        "deleted": object.rows.deleted,
        "modified": object.rows.modified,
        "older_pages": object.older_pages,
    })
}

fn data_files(
    devices: &[DeviceAddress],
    arguments: &ExtractArguments,
    common: &Common,
) -> Result<Outcome, Error> {
    let steps = steps(devices, arguments.set.unwrap_or(1))?;
    tell_others(devices, arguments);
    let made = std::fs::create_dir(&arguments.to);
    made.map_err(|source| Error::File {
        path: arguments.to.clone(),
        source,
    })?;
    let destination = Destination {
        folder: Some(arguments.to.clone()),
        continue_after_error: arguments.continue_after_error,
        ..Destination::default()
    };
    let restored = restore(&steps, &destination).inspect_err(|_| {
        // It is empty: a failed restore leaves nothing.
        std::fs::remove_dir(&arguments.to).ok();
    })?;
    if common.json {
        result_line(&files_json(&restored).to_string());
    } else {
        print_files(&restored);
    }
    for (step, finding) in &restored.findings {
        let path = steps.get(*step).map(Step::path).unwrap_or_default();
        message_line(&format!("damage: {}: {finding}", path.display()));
    }
    Ok(if restored.findings.is_empty() {
        Outcome::Succeeded
    } else {
        Outcome::Failed
    })
}

fn print_files(restored: &Restored) {
    let headings = ["id", "logical name", "bytes", "extents", "written as"];
    let mut table = Table::of_texts(&headings, &[0, 2, 3]);
    for file in &restored.files {
        table.texts(vec![
            file.id.to_string(),
            file.logical_name.clone(),
            file.bytes.to_string(),
            file.extents.to_string(),
            file.path.display().to_string(),
        ]);
    }
    table.finish();
}

fn files_json(restored: &Restored) -> Json {
    let files: Vec<Json> = restored
        .files
        .iter()
        .map(|file| {
            json!({
                "id": file.id,
                "logical_name": file.logical_name,
                "is_log": file.is_log,
                "bytes": file.bytes,
                "extents": file.extents,
                "path": file.path.display().to_string(),
            })
        })
        .collect();
    json!({ "database": restored.database, "log_bytes": restored.log_bytes, "files": files })
}
