//! `windlass inspect`: shows the layout of a SQL Server backup.

mod page;

use std::path::Path;

use serde_json::{Value as Json, json};
use windlass_bak::page::PAGE_BYTES;
use windlass_bak::{
    BackupType, Census, Container, Entry, FileCensus, ObjectCensus, SetListing, VersionWords,
    VirtualLog, Walked, page_type_name,
};
use windlass_instance::message_of::file_and_reason;
use windlass_instance::{is_of_windows, is_url, shown};
use windlass_io::output;
use windlass_sqlserver::BackupInput;

use super::{Outcome, disks, existing_session, misused, reported};
use crate::args::{Common, InspectArguments};
use crate::output::{Console, Layout, Table, error_line, message_line, result_json, result_line};

/// Runs the command.
pub(crate) fn inspect(arguments: &InspectArguments, common: &Common) -> Outcome {
    let named = Path::new(&arguments.file);
    if let Some(report) = &arguments.report
        && let (Ok(report), Ok(file)) = (report.canonicalize(), named.canonicalize())
        && report == file
    {
        return misused("--report names the backup itself");
    }
    let input = match opened(&arguments.file, common) {
        Ok(input) => input,
        Err(outcome) => return outcome,
    };
    let census = match Census::read(input) {
        Ok(census) => census,
        Err(error) => {
            error_line(&format!("{}: {error}", shown(&arguments.file)));
            return Outcome::Failed;
        }
    };
    if common.json {
        result_json(&as_json(&census).to_string());
    } else {
        print(&census, arguments);
    }
    for finding in &census.listing.findings {
        message_line(&format!("damage: {finding}"));
    }
    let unsure = unsure_objects(&census);
    for position in &unsure {
        message_line(&format!(
            "set {position}: pages of its system tables are damaged or missing: objects are missing in the list, or have \
             no name. windlass verify names the pages"
        ));
    }
    if let Some(path) = &arguments.report {
        let text = page::of(&census, named).to_html();
        if let Err(error) = output::write(path, text.as_bytes(), output::MODE_PUBLIC) {
            let path = path.display();
            error_line(&format!("cannot write '{path}': {error}"));
            return Outcome::Failed;
        }
    }
    if census.listing.findings.is_empty() && census.unplaced == 0 && unsure.is_empty() {
        Outcome::Succeeded
    } else {
        Outcome::Failed
    }
}

/// The sets that should have all system tables and have not: full backups in one file.
fn unsure_objects(census: &Census) -> Vec<u16> {
    let media = census.listing.media.as_ref();
    if media.is_some_and(|media| media.family_count > 1) {
        return Vec::new();
    }
    let is_full = |set: &&SetListing| {
        let found = set.configuration();
        found.is_some_and(|found| found.backup_type == BackupType::Database)
    };
    let full = census.listing.sets.iter().filter(is_full);
    full.map(|set| set.header.position)
        .filter(|position| census.unsure_objects.contains(position))
        .collect()
}

/// The backup. Only a URL and a name of Windows need the instance, for its credentials and drives.
fn opened(name: &str, common: &Common) -> Result<BackupInput, Outcome> {
    let device = match is_url(name) || is_of_windows(name) {
        true => {
            let mut console = Console::new(common.json, Layout::Table);
            let session = existing_session(common, &mut console);
            let devices = session
                .ok_or(Outcome::Failed)?
                .sql_server_devices(&disks(&[name.to_owned()]));
            let devices = reported(devices, &mut console).ok_or(Outcome::Failed)?;
            devices.into_iter().next()
        }
        false => None,
    };
    let opened = match &device {
        Some(device) => BackupInput::open(device),
        None => BackupInput::open_file(Path::new(name)),
    };
    opened.map_err(|error| {
        error_line(&match &device {
            Some(_) => format!("{}: {error}", shown(name)),
            None => file_and_reason(Path::new(name), &error),
        });
        Outcome::Failed
    })
}

fn print(census: &Census, arguments: &InspectArguments) {
    for line in summary(census) {
        result_line(&line);
    }
    for set in &census.listing.sets {
        print_set(census, set, arguments.objects);
    }
    if arguments.summary {
        return;
    }
    result_line("");
    let mut table = Table::of_texts(
        &["offset", "expanded offset", "block", "stream", "bytes"],
        &[0, 1, 4],
    );
    for entry in &census.entries {
        table.texts(entry_row(entry));
    }
    table.finish();
    if census.more_entries > 0 {
        result_line(&format!("and {} more", census.more_entries));
    }
}

fn entry_row(entry: &Entry) -> Vec<String> {
    let tag = entry.tag.to_string();
    let (block, stream) = if entry.is_stream {
        (String::new(), tag)
    } else {
        (tag, String::new())
    };
    vec![
        entry.place.file.to_string(),
        entry.place.stream.to_string(),
        block,
        stream,
        entry.bytes.to_string(),
    ]
}

fn summary(census: &Census) -> Vec<String> {
    let walked = &census.listing.walked;
    let mut lines = vec![match walked.container {
        Container::Tape => format!("plain tape format, {} bytes", walked.file_bytes),
        Container::Compressed => format!(
            "compressed container{}: {} bytes in {} records expand to {} bytes",
            codec(walked),
            walked.file_bytes,
            walked.records,
            walked.stream_bytes
        ),
    }];
    if let Some(media) = &census.listing.media {
        lines.push(format!(
            "media set {}, family {} of {}, blocks of {} bytes, written by {}",
            media.media_set,
            media.family_number,
            media.family_count,
            media.block_bytes,
            media.software
        ));
    }
    if census.fillers + census.unplaced > 0 {
        lines.push(format!(
            "{} extents are only padding, {} cannot be placed",
            census.fillers, census.unplaced
        ));
    }
    lines
}

/// How the container is compressed, if it is not as usual.
fn codec(walked: &Walked) -> String {
    match (walked.algorithm, walked.words) {
        (Some(algorithm), Some(words)) if words != VersionWords(2, 3) => {
            format!(" of {algorithm} (version words {words})")
        }
        _ => String::new(),
    }
}

/// What a set is, in a line.
fn set_line(set: &SetListing) -> String {
    let complete = match set.is_complete {
        true => "complete",
        false => "not complete",
    };
    match set.configuration() {
        Some(found) => format!(
            "{} of '{}', SQL Server {}.{}.{}, {complete}",
            found.backup_type.description(),
            found.database,
            found.version.0,
            found.version.1,
            found.version.2
        ),
        None => format!("without configuration, {complete}"),
    }
}

/// The name of an object with its schema.
fn object_name(object: &ObjectCensus) -> String {
    let owner = &object.owner;
    match owner.schema.as_str() {
        "" => owner.name.clone(),
        schema => format!("{schema}.{}", owner.name),
    }
}

fn print_set(census: &Census, set: &SetListing, listed: usize) {
    let position = set.header.position;
    result_line("");
    result_line(&format!("set {position}: {}", set_line(set)));
    let objects = census.objects.get(&position);
    let units = match objects {
        Some(_) => 0,
        None => listed,
    };
    let files = census.files.range((position, 0)..=(position, u16::MAX));
    for (&(_, id), file) in files {
        let name = set
            .configuration()
            .and_then(|found| found.files.iter().find(|file| file.id == id))
            .map_or("", |file| &file.logical_name);
        print_file(id, name, file, units);
    }
    if let Some(objects) = objects {
        print_objects(objects, listed);
    }
    let log: u64 = set.logs.iter().map(VirtualLog::stored_bytes).sum();
    result_line(&format!(
        "log: {log} bytes in {} virtual log files",
        set.logs.len()
    ));
}

fn print_objects(objects: &[ObjectCensus], listed: usize) {
    let headings = ["object", "type", "rows", "indexes", "long values", "bytes"];
    let mut table = Table::of_texts(&headings, &[2, 3, 4, 5]);
    for object in objects.iter().take(listed) {
        table.texts(vec![
            object_name(object),
            object.owner.kind.clone(),
            object.row_pages.to_string(),
            object.index_pages.to_string(),
            object.long_pages.to_string(),
            object.bytes().to_string(),
        ]);
    }
    table.finish();
    if objects.len() > listed {
        result_line(&format!("and {} more objects", objects.len() - listed));
    }
}

fn print_file(id: u16, name: &str, file: &FileCensus, units: usize) {
    let [sums, torn, neither] = file.protection;
    result_line(&format!(
        "file {id} '{name}': {} extents; {sums} pages with a checksum, {torn} with torn-page bits, {neither} with neither, {} never formatted",
        file.extents, file.unformatted
    ));
    let mut table = Table::of_texts(&["page type", "", "pages", "bytes"], &[0, 2, 3]);
    for (&page_type, &pages) in &file.types {
        table.texts(vec![
            page_type.to_string(),
            page_type_name(page_type).to_owned(),
            pages.to_string(),
            (pages * PAGE_BYTES as u64).to_string(),
        ]);
    }
    table.finish();
    if units == 0 {
        return;
    }
    let mut largest: Vec<(u64, u64)> = file.units.iter().map(|(&id, &pages)| (id, pages)).collect();
    largest.sort_by_key(|&(id, pages)| (std::cmp::Reverse(pages), id));
    let mut table = Table::of_texts(&["allocation unit", "pages", "bytes"], &[0, 1, 2]);
    for &(unit, pages) in largest.iter().take(units) {
        table.texts(vec![
            unit.to_string(),
            pages.to_string(),
            (pages * PAGE_BYTES as u64).to_string(),
        ]);
    }
    table.finish();
}

fn as_json(census: &Census) -> Json {
    let listing = &census.listing;
    let walked = &listing.walked;
    let entries: Vec<Json> = census.entries.iter().map(entry_json).collect();
    let unsure = unsure_objects(census);
    let sets: Vec<Json> = listing
        .sets
        .iter()
        .map(|set| set_json(census, set, unsure.contains(&set.header.position)))
        .collect();
    let findings: Vec<String> = listing.findings.iter().map(ToString::to_string).collect();
    json!({
        "container": match walked.container {
            Container::Tape => "TAPE",
            Container::Compressed => "MSSQLBAK",
        },
        "file_bytes": walked.file_bytes,
        "stream_bytes": walked.stream_bytes,
        "records": walked.records,
        "algorithm": walked.algorithm.map(|algorithm| algorithm.to_string()),
        "version_words": walked.words.map(|words| [words.0, words.1]),
        "media": listing.media.as_ref().map(|media| json!({
            "media_set": media.media_set.to_string(),
            "family_number": media.family_number,
            "family_count": media.family_count,
            "block_bytes": media.block_bytes,
            "software": media.software,
        })),
        "parts": census.picture.parts().iter().map(|(kind, bytes)| {
            json!({"part": kind.name(), "bytes": bytes})
        }).collect::<Vec<Json>>(),
        "filler_extents": census.fillers,
        "unplaced_extents": census.unplaced,
        "sets": sets,
        "map": entries,
        "more_entries": census.more_entries,
        "findings": findings,
    })
}

fn entry_json(entry: &Entry) -> Json {
    json!({
        "offset": entry.place.file,
        "stream_offset": entry.place.stream,
        "kind": if entry.is_stream { "stream" } else { "block" },
        "name": entry.tag.to_string(),
        "bytes": entry.bytes,
    })
}

fn set_json(census: &Census, set: &SetListing, is_unsure: bool) -> Json {
    let position = set.header.position;
    let found = set.configuration();
    let files: Vec<Json> = census
        .files
        .range((position, 0)..=(position, u16::MAX))
        .map(|(&(_, id), file)| file_json(id, file))
        .collect();
    json!({
        "position": position,
        "type": found.map(|found| found.backup_type.description()),
        "database": found.map(|found| found.database.clone()),
        "version": found.map(|found| format!("{}.{}.{}", found.version.0, found.version.1, found.version.2)),
        "is_complete": set.is_complete,
        "log_bytes": set.logs.iter().map(VirtualLog::stored_bytes).sum::<u64>(),
        "virtual_logs": set.logs.len(),
        "files": files,
        "objects": census.objects.get(&position).map(|objects| {
            objects.iter().map(object_json).collect::<Vec<Json>>()
        }),
        "lacks_objects": is_unsure,
    })
}

fn object_json(object: &ObjectCensus) -> Json {
    json!({
        "object": object.owner.object.cast_signed(),
        "schema": object.owner.schema,
        "name": object.owner.name,
        "type": object.owner.kind,
        "row_pages": object.row_pages,
        "index_pages": object.index_pages,
        "long_value_pages": object.long_pages,
        "bytes": object.bytes(),
    })
}

fn file_json(id: u16, file: &FileCensus) -> Json {
    let types: Vec<Json> = file
        .types
        .iter()
        .map(|(&page_type, &pages)| {
            json!({"type": page_type, "name": page_type_name(page_type), "pages": pages})
        })
        .collect();
    let units: Vec<Json> = file
        .units
        .iter()
        .map(|(&unit, &pages)| json!({"unit": unit.to_string(), "pages": pages}))
        .collect();
    let [sums, torn, neither] = file.protection;
    json!({
        "file": id,
        "extents": file.extents,
        "unformatted_pages": file.unformatted,
        "pages_with_checksum": sums,
        "pages_with_torn_bits": torn,
        "pages_with_neither": neither,
        "page_types": types,
        "allocation_units": units,
    })
}
