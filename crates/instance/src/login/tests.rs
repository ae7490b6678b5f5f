//! Sessions of logins with each role: what they may do, and what they are told.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{Principal, authenticate};
use crate::{Collected, Instance, Session};

const PASSWORD: &str = "correct horse";

/// An instance with a mapped drive, a database, and a login for each role, named after it; `nobody` has none.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        for folder in ["d", "backups", "outside"] {
            std::fs::create_dir(place.path(folder)).unwrap();
        }
        let app = rusqlite::Connection::open(place.path("d/app.db")).unwrap();
        app.execute_batch("CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2)")
            .unwrap();
        drop(app);
        let drive = place.path("d").display().to_string();
        let mut script = format!(
            "EXEC sp_windlass_drive 'd', '{drive}'; EXEC sp_attach_single_file_db 'app', 'D:\\app.db';
             CREATE LOGIN nobody WITH PASSWORD = '{PASSWORD}';"
        );
        for role in super::Role::ALL {
            let name = role.name();
            let _ = write!(
                script,
                "CREATE LOGIN {name}_1 WITH PASSWORD = '{PASSWORD}';
                 ALTER SERVER ROLE {name} ADD MEMBER {name}_1;"
            );
        }
        assert_eq!(answer(&mut place.administrator(), &script), "");
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn administrator(&self) -> Session {
        Session::new(Instance::open(Some(&self.path("instance"))).unwrap())
    }

    fn session(&self, login: &str) -> Session {
        let mut session = self.administrator();
        let principal = authenticate(session.instance().catalog(), login, PASSWORD).unwrap();
        session.act_as(principal).unwrap();
        session
    }

    /// Reads a file that must exist.
    fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }
}

/// The rows that a batch returns, or `!` and the number of its first error.
fn answer(session: &mut Session, text: &str) -> String {
    let mut sink = Collected::default();
    session.execute_batch(text, 1, &mut sink);
    let error = sink.messages.iter().find(|message| message.is_error());
    if let Some(error) = error {
        return format!("!{} {}", error.number, error.text);
    }
    let rows = sink.results.iter().flat_map(|result| &result.rows);
    let rows = rows.map(|row| {
        let cells: Vec<String> = row.iter().map(ToString::to_string).collect();
        cells.join(" | ")
    });
    rows.collect::<Vec<_>>().join(" / ")
}

#[track_caller]
fn refused(session: &mut Session, rows: &[(&str, u32)]) {
    for (text, number) in rows {
        let answer = answer(session, text);
        assert!(
            answer.starts_with(&format!("!{number} ")),
            "{text}: {answer}"
        );
    }
}

#[track_caller]
fn allowed(session: &mut Session, texts: &[&str]) {
    for text in texts {
        let answer = answer(session, text);
        assert!(!answer.starts_with('!'), "{text}: {answer}");
    }
}

#[test]
fn a_login_without_a_role_sees_constants_and_itself() {
    let place = Place::new();
    let mut session = place.session("nobody");
    assert_eq!(
        answer(
            &mut session,
            "SELECT 1 + 1, SUSER_SNAME(), SYSTEM_USER, ORIGINAL_LOGIN(), IS_SRVROLEMEMBER('public'),
                 IS_SRVROLEMEMBER('dbcreator'), IS_SRVROLEMEMBER('nosuch'), HAS_DBACCESS('app')"
        ),
        "2 | nobody | nobody | nobody | 1 | 0 | NULL | 0"
    );
    allowed(
        &mut session,
        &[
            "DECLARE @t TABLE (a int); INSERT INTO @t VALUES (1); SELECT * FROM @t",
            "SELECT 1 AS a INTO #t; UPDATE #t SET a = 2; DROP TABLE #t",
            "EXEC sp_executesql N'SELECT @@VERSION'",
        ],
    );
    refused(
        &mut session,
        &[
            ("SELECT * FROM msdb.dbo.backupset", 229),
            ("SELECT * FROM sys.databases", 229),
            ("SELECT * FROM sys.sql_logins", 229),
            ("IF EXISTS (SELECT * FROM sys.databases) PRINT 'x'", 229),
            ("EXEC sp_executesql N'SELECT * FROM sys.databases'", 229),
            ("EXEC ('SELECT * FROM sys.databases')", 229),
            ("EXEC sp_databases", 229),
            ("USE app", 916),
            ("SELECT * FROM app.dbo.t", 916),
            ("BACKUP DATABASE app TO DISK = 'D:\\a.bak'", 262),
            ("RESTORE HEADERONLY FROM DISK = 'D:\\a.bak'", 262),
            ("PRAGMA database_list", 262),
            ("ALTER LOGIN nobody WITH PASSWORD = 'another horse'", 15151),
        ],
    );
    assert!(!place.exists("d/a.bak"));
}

#[test]
fn who_may_read_the_history_may_do_nothing_else() {
    let place = Place::new();
    let mut session = place.session("history_reader_1");
    allowed(
        &mut session,
        &[
            "SELECT * FROM msdb.dbo.backupset",
            "SELECT * FROM sys.databases",
            "EXEC sp_databases",
            "EXEC sp_configure",
            "SELECT * FROM sys.dm_exec_requests",
        ],
    );
    refused(
        &mut session,
        &[
            ("BACKUP DATABASE app TO DISK = 'D:\\a.bak'", 262),
            ("RESTORE VERIFYONLY FROM DISK = 'D:\\a.bak'", 262),
            ("USE app", 916),
            ("DELETE FROM msdb.dbo.backupset", 229),
            ("EXEC sp_delete_backuphistory '2030-01-01'", 15247),
            ("EXEC xp_dirtree 'D:\\'", 15247),
        ],
    );
}

#[test]
fn who_may_back_up_reads_no_data_and_restores_nothing() {
    let place = Place::new();
    let mut session = place.session("backup_operator_1");
    allowed(
        &mut session,
        &[
            "BACKUP DATABASE app TO DISK = 'D:\\a.bak'",
            "RESTORE VERIFYONLY FROM DISK = 'D:\\a.bak'",
            "RESTORE HEADERONLY FROM DISK = 'D:\\a.bak'",
            "RESTORE FILELISTONLY FROM DISK = 'D:\\a.bak'",
            "RESTORE LABELONLY FROM DISK = 'D:\\a.bak'",
        ],
    );
    let by = "SELECT user_name FROM msdb.dbo.backupset";
    assert_eq!(answer(&mut session, by), "backup_operator_1");
    refused(
        &mut session,
        &[
            (
                "RESTORE DATABASE app FROM DISK = 'D:\\a.bak' WITH REPLACE",
                3110,
            ),
            (
                "RESTORE DATABASE x FROM DISK = 'D:\\a.bak' WITH MOVE 'app' TO 'D:\\x.db'",
                3110,
            ),
            ("USE app", 916),
            ("CREATE DATABASE x", 262),
            ("DROP DATABASE app", 3701),
            ("ALTER DATABASE app SET RECOVERY SIMPLE", 5011),
            ("DBCC CHECKDB (app)", 7983),
            ("CREATE LOGIN x WITH PASSWORD = 'battery staple'", 15247),
            (
                "ALTER SERVER ROLE sysadmin ADD MEMBER backup_operator_1",
                15151,
            ),
            (
                "EXEC sp_addsrvrolemember 'backup_operator_1', 'sysadmin'",
                15247,
            ),
            ("EXEC sp_addumpdevice 'disk', 'x', 'D:\\x.bak'", 15247),
            ("RECONFIGURE", 5812),
        ],
    );
}

#[test]
fn who_may_create_databases_restores_them_and_changes_their_data_but_not_the_server() {
    let place = Place::new();
    let mut session = place.session("dbcreator_1");
    allowed(
        &mut session,
        &[
            "BACKUP DATABASE app TO DISK = 'D:\\a.bak'",
            "RESTORE DATABASE copy FROM DISK = 'D:\\a.bak' WITH MOVE 'app' TO 'D:\\copy.db'",
            "USE copy; INSERT INTO t VALUES (3); CREATE TABLE u (a int); CREATE INDEX i ON t (a)",
            "USE app; UPDATE t SET a = 9 WHERE a = 1",
            "USE master; DROP DATABASE copy",
            "CREATE DATABASE made; EXEC xp_dirtree 'D:\\'",
            "BACKUP DATABASE made TO DISK = 'D:\\made.bak'; RESTORE DATABASE made FROM DISK = 'D:\\made.bak'
                 WITH REPLACE",
        ],
    );
    assert_eq!(answer(&mut session, "USE app SELECT sum(a) FROM t"), "11");
    refused(
        &mut session,
        &[
            (
                "USE master; EXEC ('CREATE PROCEDURE sp_trap AS SELECT 1')",
                262,
            ),
            ("EXEC sp_configure 'recovery interval', 5", 15247),
            (
                "CREATE MASTER KEY ENCRYPTION BY PASSWORD = 'battery staple'",
                15247,
            ),
            ("EXEC xp_delete_file 0, 'D:\\', 'bak', '2030-01-01'", 15247),
            (
                "EXEC sqlbackup '-SQL \"BACKUP DATABASE app TO DISK = [D:\\b.bak]\"'",
                15247,
            ),
            ("ALTER LOGIN sysadmin_1 DISABLE", 15151),
            ("DBCC TRACEON (3004)", 2571),
        ],
    );
}

#[test]
fn a_remote_administrator_does_everything_but_reach_other_files() {
    let place = Place::new();
    let mut session = place.session("sysadmin_1");
    allowed(
        &mut session,
        &[
            "CREATE LOGIN x WITH PASSWORD = 'battery staple'; DROP LOGIN x",
            "EXEC sp_configure 'show advanced options', 1; RECONFIGURE",
            "EXEC sp_windlass_drive; EXEC sp_windlass_remote_folder",
            "EXEC sp_addumpdevice 'disk', 'dev', 'D:\\dev.bak'; BACKUP DATABASE app TO dev",
            "EXEC xp_create_subdir 'D:\\sub'; BACKUP DATABASE app TO DISK = 'D:\\sub\\a.bak'",
            "BACKUP DATABASE app TO DISK = 'NUL'",
        ],
    );
    let outside = place.path("outside").display().to_string();
    let own = place.path("instance").display().to_string();
    std::os::unix::fs::symlink(place.path("outside"), place.path("d/link")).unwrap();
    for text in [
        format!("BACKUP DATABASE app TO DISK = '{outside}/a.bak'"),
        "BACKUP DATABASE app TO DISK = 'a.bak'".to_owned(),
        "BACKUP DATABASE app TO DISK = 'D:\\link\\a.bak'".to_owned(),
        format!("BACKUP DATABASE app TO DISK = '{outside}/../d/../outside/a.bak'"),
        format!(
            "BACKUP DATABASE app TO DISK = 'D:\\m.bak' MIRROR TO DISK = '{outside}/m.bak' WITH FORMAT"
        ),
        "BACKUP DATABASE app TO URL = 's3://host/bucket/a.bak'".to_owned(),
        "RESTORE HEADERONLY FROM DISK = '/etc/passwd'".to_owned(),
        format!(
            "RESTORE DATABASE x FROM DISK = 'D:\\sub\\a.bak' WITH MOVE 'app' TO '{outside}/x.db'"
        ),
        format!("CREATE DATABASE x ON (NAME = x, FILENAME = '{outside}/x.mdf')"),
        format!("CREATE DATABASE x ON (FILENAME = '{own}/windlass.catalog') FOR ATTACH"),
        format!("EXEC sp_attach_single_file_db 'x', '{own}/windlass.catalog'"),
        format!("EXEC sp_addumpdevice 'disk', 'other', '{outside}/x.bak'"),
        format!("CREATE CERTIFICATE c FROM FILE = '{own}/service.key'"),
        format!("EXEC xp_dirtree '{outside}'"),
        format!("EXEC xp_fileexist '{own}/service.key'"),
        format!("EXEC xp_create_subdir '{outside}/made'"),
        format!("EXEC xp_delete_file 0, '{outside}', 'bak', '2030-01-01'"),
    ] {
        refused(&mut session, &[(&text, 50210)]);
    }
    refused(
        &mut session,
        &[
            ("EXEC sp_windlass_drive 'e', '/'", 50211),
            ("EXEC sp_windlass_drive 'd', ''", 50211),
            (
                "EXEC sp_windlass_export 'app', '/tmp/windlass-escaped.db'",
                50211,
            ),
            ("EXEC sp_windlass_remote_folder '/'", 50211),
            ("EXEC sp_windlass_restore_folder '/srv'", 50211),
            ("USE app; ATTACH '/etc/passwd' AS x", 50212),
            ("USE app; VACUUM INTO '/tmp/windlass-escaped.db'", 50212),
        ],
    );
    let left: Vec<_> = std::fs::read_dir(place.path("outside")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(!Path::new("a.bak").exists());
}

#[test]
fn a_device_and_a_script_of_the_local_administrator_lead_no_remote_session_out() {
    let place = Place::new();
    let outside = place.path("outside").display().to_string();
    let mut local = place.administrator();
    allowed(
        &mut local,
        &[&format!(
            "EXEC sp_addumpdevice 'disk', 'away', '{outside}/away.bak'; BACKUP DATABASE app TO away"
        )],
    );
    let mut session = place.session("backup_operator_1");
    refused(
        &mut session,
        &[
            ("BACKUP DATABASE app TO away", 50210),
            ("RESTORE HEADERONLY FROM away", 50210),
        ],
    );
    // The list counts from the next statement on, both ways.
    let folder = format!("EXEC sp_windlass_remote_folder '{outside}'");
    allowed(&mut local, &[&folder]);
    allowed(&mut session, &["BACKUP DATABASE app TO away"]);
    allowed(&mut local, &[&format!("{folder}, 'drop'")]);
    refused(&mut session, &[("BACKUP DATABASE app TO away", 50210)]);
}

#[test]
fn changes_of_roles_hold_from_the_next_statement_on() {
    let place = Place::new();
    let mut local = place.administrator();
    let mut session = place.session("nobody");
    let read = "SELECT count(*) FROM msdb.dbo.backupset";
    refused(&mut session, &[(read, 229)]);
    allowed(
        &mut local,
        &["ALTER SERVER ROLE history_reader ADD MEMBER nobody"],
    );
    assert_eq!(answer(&mut session, read), "0");
    allowed(&mut local, &["ALTER LOGIN nobody DISABLE"]);
    refused(&mut session, &[(read, 229)]);
    allowed(
        &mut local,
        &["ALTER LOGIN nobody ENABLE; ALTER LOGIN nobody WITH NAME = somebody"],
    );
    assert_eq!(answer(&mut session, read), "0");
    assert_eq!(session.principal().name(), "somebody");
    allowed(
        &mut local,
        &["DROP LOGIN somebody; CREATE LOGIN somebody WITH PASSWORD = 'battery staple'"],
    );
    refused(&mut session, &[(read, 229)]);
}

#[test]
fn procedures_and_cursors_run_with_the_rights_of_the_caller() {
    let place = Place::new();
    let mut local = place.administrator();
    allowed(
        &mut local,
        &[
            "CREATE PROCEDURE sp_ours AS BACKUP DATABASE app TO DISK = 'D:\\p.bak'",
            "USE app; EXEC ('CREATE PROCEDURE inner_one AS SELECT a FROM t')",
        ],
    );
    let mut session = place.session("nobody");
    refused(
        &mut session,
        &[
            ("EXEC sp_ours", 262),
            ("EXEC app.dbo.inner_one", 916),
            ("INSERT INTO #t EXEC sp_databases", 229),
            (
                "SELECT 1 AS a INTO #t; INSERT INTO #t EXEC ('SELECT database_id FROM sys.databases')",
                229,
            ),
            (
                "DECLARE c CURSOR FOR SELECT name FROM sys.databases OPEN c",
                229,
            ),
            (
                "BEGIN TRY EXEC sp_ours END TRY BEGIN CATCH THROW END CATCH",
                3013,
            ),
        ],
    );
    assert!(!place.exists("d/p.bak"));
    let mut operator = place.session("backup_operator_1");
    allowed(&mut operator, &["EXEC sp_ours"]);
    refused(&mut operator, &[("EXEC app.dbo.inner_one", 916)]);
}

#[test]
fn the_own_password_is_changed_by_who_knows_it() {
    let place = Place::new();
    let mut session = place.session("nobody");
    refused(
        &mut session,
        &[
            (
                "ALTER LOGIN nobody WITH PASSWORD = 'battery staple' OLD_PASSWORD = 'guessed it'",
                15151,
            ),
            (
                "ALTER LOGIN nobody WITH PASSWORD = 'short' OLD_PASSWORD = 'correct horse'",
                15116,
            ),
            (
                "ALTER LOGIN sysadmin_1 WITH PASSWORD = 'battery staple' OLD_PASSWORD = 'correct horse'",
                15151,
            ),
        ],
    );
    allowed(
        &mut session,
        &["ALTER LOGIN nobody WITH PASSWORD = 'battery staple' OLD_PASSWORD = 'correct horse'"],
    );
    let local = place.administrator();
    let catalog = local.instance().catalog();
    assert!(authenticate(catalog, "nobody", "battery staple").is_ok());
    assert!(authenticate(catalog, "nobody", PASSWORD).is_err());
}

#[test]
fn the_local_administrator_needs_no_login_and_names_any_file() {
    let place = Place::new();
    let mut session = place.administrator();
    let name = session.instance().identity().user.clone();
    session.act_as(Principal::administrator(&name)).unwrap();
    let outside = place.path("outside/a.bak").display().to_string();
    allowed(
        &mut session,
        &[
            &format!("BACKUP DATABASE app TO DISK = '{outside}'"),
            "USE app; ATTACH ':memory:' AS x; USE master",
        ],
    );
    let own = answer(
        &mut session,
        "SELECT IS_SRVROLEMEMBER('sysadmin'), IS_SRVROLEMEMBER('dbcreator', 'dbcreator_1'),
             IS_SRVROLEMEMBER('dbcreator', 'nobody'), SUSER_ID(), SUSER_SNAME(0x01), SUSER_NAME(SUSER_ID('nobody'))",
    );
    assert_eq!(own, "1 | 1 | 0 | 1 | sa | nobody");
}
