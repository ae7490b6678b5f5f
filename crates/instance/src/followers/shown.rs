//! What a follower tells of itself: a file in the folder of its spool, for every process.
//!
//! The file says something only while the follower runs: then the spool is locked. Nothing here can make a follower fail.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use serde_json::{Value as Json, json};
use windlass_base::time_text;
use windlass_catalog::DatabaseRecord;
use windlass_source::sqlite::{FollowOptions, FollowStatus, Following, WhenFull, is_followed};

use crate::instance::place_of_log;

const NAME: &str = "status.json";

/// Size of the file, enough for all its data.
const WRITTEN_BYTES: usize = 3584;
const READ_BYTES_MAX: u64 = 8192;
const TEXT_CHARACTERS_MAX: usize = 500;

/// The file of a follower.
pub(super) struct Board {
    file: Option<File>,
    database: String,
}

impl Board {
    pub(super) fn open(folder: &Path, database: &str) -> Self {
        let path = folder.join(NAME);
        drop(windlass_io::own::remove(&path));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(0o600);
        Self {
            file: options.open(path).ok(),
            database: database.to_owned(),
        }
    }

    pub(super) fn show(&self, status: &FollowStatus, options: &FollowOptions, is_gap_open: bool) {
        let Some(file) = &self.file else {
            return;
        };
        let short = |text: &Option<String>| {
            text.as_ref()
                .map(|text| text.chars().take(TEXT_CHARACTERS_MAX).collect::<String>())
        };
        let is_known = |time_us: u64| (time_us > 0).then(|| time_text(time_us));
        let shown = json!({
            "database_name": self.database,
            "held": status.following.to_string(),
            "is_full": matches!(status.following, Following::Held | Following::SpoolFull),
            "is_capturing": matches!(status.following, Following::Mark | Following::Zero | Following::LetGo),
            "commit_number": status.commit_number,
            "last_time": is_known(status.time_us),
            "lag_bytes": status.lag_bytes,
            "lag_ms": status.lag_us / 1000,
            "log_bytes": status.log_bytes,
            "spool_bytes": status.spool_bytes,
            "spool_bytes_max": options.spool_bytes_max,
            "when_full": match options.when_full {
                WhenFull::Gap => "gap",
                WhenFull::Hold => "hold",
            },
            "let_goes": status.let_goes,
            "proofs": status.proofs,
            "gaps": status.gaps,
            "last_gap": short(&status.last_gap),
            "last_gap_time": is_known(status.last_gap_us),
            "is_gap_open": is_gap_open,
            "error": short(&status.last_error),
            "cpu_ms": status.cpu_us / 1000,
        });
        // A single write of less than a page, padded to full length, is seen whole or not at all.
        let text = format!("{:<WRITTEN_BYTES$}\n", shown.to_string());
        drop(file.write_all_at(text.as_bytes(), 0));
    }
}

/// A database whose log is kept.
#[derive(Debug, Clone)]
pub struct FollowerShown {
    pub database: String,
    /// Whether a follower runs.
    pub is_followed: bool,
    /// What it tells, if it runs: the columns of `sys.dm_db_log_followers`.
    pub told: Json,
}

/// The databases among `records` whose log is kept, in an instance's folder.
pub fn followers_of(folder: &Path, records: &[DatabaseRecord]) -> Vec<FollowerShown> {
    let shown = records.iter().filter_map(|record| {
        let place = place_of_log(folder, record).filter(|place| place.is_dir())?;
        let told = told(&place);
        Some(FollowerShown {
            database: record.name.clone(),
            is_followed: told["is_followed"] == 1,
            told,
        })
    });
    shown.collect()
}

/// What the follower of a spool tells, and whether it runs.
pub(crate) fn told(place: &Path) -> Json {
    let is_followed = is_followed(place).unwrap_or(false);
    let text = windlass_io::own::read(&place.join(NAME), READ_BYTES_MAX).ok();
    let told = text
        .filter(|_| is_followed)
        .and_then(|text| serde_json::from_slice(&text).ok());
    let mut told = match told {
        Some(Json::Object(told)) => told,
        _ => serde_json::Map::new(),
    };
    told.insert("is_followed".to_owned(), u8::from(is_followed).into());
    Json::Object(told)
}
