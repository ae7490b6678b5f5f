//! What SQL may not do by itself in a remote session: open files by their paths, and change what all sessions
//! of the process share.

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, ffi};

/// Settings of SQLite for the whole process, and the one that lets a script forge its schema.
const PRAGMAS: [&str; 5] = [
    "data_store_directory",
    "hard_heap_limit",
    "soft_heap_limit",
    "temp_store_directory",
    "writable_schema",
];

/// Watches over what a connection compiles from now on.
pub(super) fn watch(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.authorizer(Some(|context: AuthContext<'_>| {
        if is_allowed(&context.action) {
            Authorization::Allow
        } else {
            Authorization::Deny
        }
    }))
}

fn is_allowed(action: &AuthAction<'_>) -> bool {
    match action {
        // VACUUM attaches a database without a name. An expression for a name is unknown yet.
        AuthAction::Attach { filename } => filename.is_empty(),
        AuthAction::Unknown { code, .. } => *code != ffi::SQLITE_ATTACH,
        AuthAction::Pragma { pragma_name, .. } => {
            let mut guarded = PRAGMAS.iter();
            !guarded.any(|name| name.eq_ignore_ascii_case(pragma_name))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ErrorCode;

    use super::*;

    #[test]
    fn sql_opens_no_file_by_any_path_and_vacuum_still_works() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.db").display().to_string();
        let mut connection = Connection::open(folder.path().join("own.db")).unwrap();
        watch(&mut connection).unwrap();
        connection
            .execute_batch("CREATE TABLE t (a); VACUUM; PRAGMA journal_mode = WAL; SELECT 1")
            .unwrap();
        for text in [
            format!("ATTACH '{file}' AS x"),
            format!("ATTACH '{file}' || '' AS x"),
            "ATTACH ?1 AS x".to_owned(),
            "ATTACH ':memory:' AS x".to_owned(),
            format!("VACUUM INTO '{file}'"),
            "PRAGMA temp_store_directory = '/tmp'".to_owned(),
            "PRAGMA Writable_Schema = 1".to_owned(),
            "EXPLAIN ATTACH 'x' AS x".to_owned(),
        ] {
            let refused = connection.execute_batch(&text).unwrap_err();
            assert_eq!(
                refused.sqlite_error_code(),
                Some(ErrorCode::AuthorizationForStatementDenied),
                "{text}: {refused}"
            );
        }
        assert!(!std::path::Path::new(&file).exists());
    }
}
