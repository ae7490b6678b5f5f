//! The layout of keys with which many machines share a bucket:
//! `<prefix>/<server>/<database>/<kind>/<time>-<guid>/<stripe>-of-<stripes>.bak`.
//!
//! A backup to a folder of a store is laid out so. Each object appears when it is complete, under a name that no other run
//! uses; so no writer can harm another, a set is whole when all of its stripes are listed, and a listing alone tells of which
//! database, of what kind and how old it is. There is no other index that could contradict it.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::tag;

/// The tags of the folders; the file name follows.
const FOLDERS: &str = "<SERVER>/<DATABASE>/<TYPE>/<UTC>-<GUID>/";

/// The form of `<UTC>`.
pub(crate) const UTC_FORM: &str = "%Y%m%dT%H%M%SZ";

/// The name, with tags, of a stripe in a folder of a store.
pub(crate) fn name_in(folder: &str, stripe: usize, stripes: usize) -> String {
    let folder = folder.trim_end_matches('/');
    format!("{folder}/{FOLDERS}{stripe}-of-{stripes}.bak")
}

/// What the key of an object says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Laid<'k> {
    pub(crate) server: &'k str,
    pub(crate) database: &'k str,
    /// `FULL`, `DIFF` or `LOG`.
    pub(crate) kind: &'k str,
    /// Time and identity of the run.
    pub(crate) run: &'k str,
    /// When it began: seconds since 1970, UTC.
    pub(crate) began: i64,
    pub(crate) stripe: u16,
    pub(crate) stripes: u16,
}

impl<'k> Laid<'k> {
    /// Reads a key, of which everything before the last six parts is a prefix; `None` if it is of another layout.
    pub(crate) fn of(key: &'k str) -> Option<Self> {
        let mut parts = key.rsplitn(6, '/');
        let file = parts.next()?.strip_suffix(".bak")?;
        let (run, kind) = (parts.next()?, parts.next()?);
        let (database, server) = (parts.next()?, parts.next()?);
        let (stripe, stripes) = file.split_once("-of-")?;
        let (stripe, stripes) = (stripe.parse().ok()?, stripes.parse().ok()?);
        let (time, guid) = run.split_once('-')?;
        let is_whole = (1..=stripes).contains(&stripe)
            && matches!(kind, "FULL" | "DIFF" | "LOG")
            && guid.len() == 32
            && !server.is_empty()
            && !database.is_empty();
        let began = DateTime::strptime(UTC_FORM.trim_end_matches('Z'), time.strip_suffix('Z')?);
        let began = began.ok()?.to_zoned(TimeZone::UTC).ok()?;
        is_whole.then(|| Self {
            server,
            database,
            kind,
            run,
            began: began.timestamp().as_second(),
            stripe,
            stripes,
        })
    }

    /// Whether it can be of the database `name`.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        self.database.eq_ignore_ascii_case(&tag::safe(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "20261125T170509Z-00112233445566778899AABBCCDDEEFF";

    #[test]
    fn a_key_of_the_layout_says_what_it_is_and_others_say_nothing() {
        let key = format!("backups/prod/db1/app/DIFF/{RUN}/2-of-4.bak");
        let laid = Laid::of(&key).unwrap();
        assert_eq!(
            (laid.server, laid.database, laid.kind),
            ("db1", "app", "DIFF")
        );
        assert_eq!((laid.run, laid.stripe, laid.stripes), (RUN, 2, 4));
        assert_eq!(laid.began, 1_795_626_309);
        assert!(Laid::of(&format!("db1/app/FULL/{RUN}/1-of-1.bak")).is_some());
        for other in [
            format!("app/FULL/{RUN}/1-of-1.bak"),
            format!("db1/app/FULL/{RUN}/1-of-1.txt"),
            format!("db1/app/FULL/{RUN}/0-of-1.bak"),
            format!("db1/app/FULL/{RUN}/2-of-1.bak"),
            format!("db1/app/OTHER/{RUN}/1-of-1.bak"),
            format!("db1//FULL/{RUN}/1-of-1.bak"),
            "db1/app/FULL/20261345T170509Z-00112233445566778899AABBCCDDEEFF/1-of-1.bak".to_owned(),
            "db1/app/FULL/20261125T170509Z-0011/1-of-1.bak".to_owned(),
            "a.bak".to_owned(),
        ] {
            assert_eq!(Laid::of(&other), None, "{other}");
        }
    }

    #[test]
    fn the_name_of_a_stripe_is_read_as_it_was_made() {
        let tags = crate::tag::Tags {
            server: "db/1".to_owned(),
            database: Some("a/b".to_owned()),
            kind: Some("FULL"),
            utc: Some("20261125T170509Z".to_owned()),
            guid: Some(windlass_base::Guid::random()),
            ..crate::tag::Tags::default()
        };
        let name = tags.expand(&name_in("s3://h:1/bucket/x/", 1, 2)).unwrap();
        let laid = Laid::of(&name).unwrap();
        assert_eq!(
            (laid.server, laid.database, laid.stripes),
            ("db_1", "a_b", 2)
        );
    }
}
