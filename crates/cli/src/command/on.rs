//! `windlass sql --on x.bak`: the tables of a SQL Server backup as a temporary SQLite file, for queries.
//!
//! Only the tables that the queries name are extracted. The file is in a private folder, which is removed when the
//! command ends, or by the next one if it was killed; nothing that a script does there reaches the backup.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use windlass_bak::table::{Database, Table};
use windlass_device::DeviceAddress;
use windlass_instance::scratch::Scratch;
use windlass_sqlserver::{
    Error, ExtractedTable, Format, Source, extract_within, is_data_file, sets_in,
};

use super::extract::{log_lines, problems};
use crate::output::message_line;

/// The largest SQLite file that is made for queries.
const BYTES_MAX: u64 = 4 << 30;

/// How the folders are named.
const PREFIX: &str = "windlass-sql-";

/// The tables of a backup, until it is dropped.
#[derive(Debug)]
pub(super) struct Extract {
    /// Removes itself.
    _folder: Scratch,
    pub(super) file: PathBuf,
    /// Whether every row of the tables is there.
    pub(super) is_whole: bool,
}

/// The place of the file that [`extracted`] makes.
#[derive(Debug)]
pub(super) struct Place(Scratch);

impl Place {
    pub(super) fn new() -> Result<Self, String> {
        let folder = std::env::temp_dir();
        let made = Scratch::begin(&folder, PREFIX);
        made.map(Self)
            .map_err(|error| format!("cannot make a folder in {}: {error}", folder.display()))
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Extracts the tables that the queries name; all of them if they name none.
pub(super) fn extracted(
    place: Place,
    devices: &[DeviceAddress],
    set: Option<u16>,
    queries: &[String],
) -> Result<Extract, String> {
    let position = match set {
        Some(position) => position,
        None => only_set(devices)?,
    };
    let mut source = Source::open(devices, position).map_err(|error| error.to_string())?;
    if let Some((path, finding)) = source.findings.first() {
        return Err(format!(
            "{}: damaged: {finding}. windlass extract --continue-after-error extracts what can be read",
            path.display()
        ));
    }
    let database = Database::open(&mut source).map_err(|error| error.to_string())?;
    let wanted = wanted(&database.tables, queries);
    let file = place
        .path()
        .join(format!("{}.db", file_name(&source.database)));
    let made = extract_within(&mut source, &file, Format::Sqlite, &wanted, Some(BYTES_MAX));
    let mut made = made.map_err(|error| match error {
        Error::Sqlite(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) => format!(
            "the tables take more than {} GB, or there is no more room in {}: extract them with windlass extract, \
             and query that file",
            BYTES_MAX >> 30,
            place.path().display()
        ),
        error => error.to_string(),
    })?;
    for note in &source.notes {
        message_line(note);
    }
    if let Some(unsettled) = made.unsettled.as_ref().filter(|found| !found.is_settled()) {
        for line in log_lines(unsettled) {
            message_line(&line);
        }
    }
    // A query needs no foreign keys, and most are left out when only the tables of the query are extracted.
    for table in &mut made.tables {
        table.foreign_keys_left_out.clear();
    }
    for problem in problems(&made) {
        message_line(&problem);
    }
    Ok(Extract {
        _folder: place.0,
        file,
        is_whole: made.problems.is_empty() && made.tables.iter().all(ExtractedTable::is_whole),
    })
}

/// The position of the set on the media of the first device, if it is the only one.
fn only_set(devices: &[DeviceAddress]) -> Result<u16, String> {
    let told = |error: Error| error.to_string();
    let Some(first) = devices.first() else {
        return Ok(1);
    };
    if is_data_file(first).map_err(told)? {
        return Ok(1);
    }
    match sets_in(first).map_err(told)?.as_slice() {
        [(only, _)] => Ok(*only),
        [] => Ok(1),
        sets => {
            let sets: Vec<String> = sets
                .iter()
                .map(|(position, kind)| format!("{position} ({})", kind.description()))
                .collect();
            Err(format!(
                "{}: it has several backup sets: {}. Choose one with --set",
                first.name,
                sets.join(", ")
            ))
        }
    }
}

/// The name of the database as that of a file.
fn file_name(database: &str) -> String {
    let name: String = database
        .chars()
        .map(|letter| {
            if letter.is_alphanumeric() || letter == '_' {
                letter
            } else {
                '_'
            }
        })
        .take(100)
        .collect();
    match name.as_str() {
        "" => "backup".to_owned(),
        _ => name,
    }
}

/// The tables that the queries name, as `schema.name`. None stands for all.
fn wanted(tables: &[Table], queries: &[String]) -> Vec<String> {
    let words: HashSet<String> = queries.iter().flat_map(|query| words(query)).collect();
    let named = tables
        .iter()
        .filter(|table| words.contains(&table.name.to_lowercase()));
    named
        .map(|table| format!("{}.{}", table.schema, table.name))
        .collect()
}

/// The words of a query and what stands in brackets or quotation marks, in lower case.
fn words(query: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut letters = query.chars().peekable();
    while let Some(letter) = letters.next() {
        let end = match letter {
            '[' => ']',
            '"' => '"',
            letter if is_word(letter) => {
                let mut word = letter.to_string();
                while let Some(next) = letters.next_if(|next| is_word(*next)) {
                    word.push(next);
                }
                words.push(word.to_lowercase());
                continue;
            }
            _ => continue,
        };
        let mut word = String::new();
        while let Some(next) = letters.next() {
            // The end twice is one of the name.
            if next == end && letters.next_if_eq(&end).is_none() {
                break;
            }
            word.push(next);
        }
        let of_schema = word.rsplit('.').next().map(str::to_lowercase);
        words.extend(of_schema);
        words.push(word.to_lowercase());
    }
    words
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || "_@#$".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_query_are_its_names_with_and_without_brackets() {
        let found = words(
            "SELECT o.* FROM dbo.Orders o JOIN [Order Details] d ON 1=1, \"a\"\"b\", [HR.Staff], [x]]y]",
        );
        for name in [
            "orders",
            "order details",
            "a\"b",
            "staff",
            "hr.staff",
            "x]y",
            "dbo",
            "o",
        ] {
            assert!(found.iter().any(|word| word == name), "{name}: {found:?}");
        }
        assert_eq!(words("[never ends"), ["never ends", "never ends"]);
    }
}
