//! The tables of a catalog.
//!
//! LSNs are stored as integers if they fit 64 bits, otherwise as text of their decimal digits; GUIDs as
//! upper-case text; dates as `YYYY-MM-DD hh:mm:ss`, local time.

/// The version of the layout, stored in SQLite's `user_version`; 0 is a new catalog.
pub(crate) const VERSION: u32 = 4;

/// The first layout, and what each later version adds to it, by the version that has it.
pub(crate) const LAYOUTS: &[(u32, &str)] = &[
    (1, include_str!("schema.sql")),
    (
        2,
        concat!(include_str!("logins.sql"), include_str!("agent/agent.sql")),
    ),
    (
        3,
        concat!(
            include_str!("drill.sql"),
            include_str!("agent/remote.sql"),
            include_str!("marks.sql"),
            include_str!("credential.sql")
        ),
    ),
    (4, include_str!("failure.sql")),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rusqlite::Connection;
    use windlass_base::checksum;

    use super::*;

    /// Of the layouts up to [`VERSION`].
    const CHECKSUM: u64 = 0x88E6_89AE_060F_4DD7;

    fn all() -> String {
        LAYOUTS.iter().map(|(_, text)| *text).collect()
    }

    #[test]
    fn another_layout_has_another_version() {
        let found = checksum(all().as_bytes());
        assert_eq!(
            found, CHECKSUM,
            "a layout has changed: instances that exist cannot be used with it. Raise VERSION, add what is \
             new to LAYOUTS, and put {found:#x} here"
        );
        let last = LAYOUTS.iter().map(|(version, _)| *version).max();
        assert_eq!(last, Some(VERSION));
        assert!(LAYOUTS.is_sorted_by_key(|(version, _)| *version));
    }

    #[test]
    fn the_views_of_the_history_show_every_column_but_our_own() {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(&all()).unwrap();
        let columns = |table: &str| -> BTreeSet<String> {
            let text = "SELECT name FROM pragma_table_info(?1)";
            let mut statement = connection.prepare(text).unwrap();
            let names = statement.query_map([table], |row| row.get(0)).unwrap();
            names.map(Result::unwrap).collect()
        };
        for (table, view, own) in [
            (
                "own_backupset",
                "backupset",
                &[
                    "duration_ms",
                    "is_by_path",
                    "is_discarded",
                    "is_forgotten",
                    "missing_reason",
                    "missing_since",
                ][..],
            ),
            ("own_backupfile", "backupfile", &[]),
        ] {
            let hidden: Vec<_> = columns(table).difference(&columns(view)).cloned().collect();
            assert_eq!(hidden, own);
            assert!(columns(view).is_subset(&columns(table)));
        }
    }
}
