//! Logins and server roles: the statements, SQL Server's answers to mistakes, and what the views show.

use crate::support::{Place, ask, on, sql, succeed};

#[test]
fn logins_are_made_changed_and_dropped_and_the_views_show_them() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE LOGIN Ada WITH PASSWORD = N'correct horse', DEFAULT_DATABASE = [master],
             DEFAULT_LANGUAGE = [us_english], CHECK_EXPIRATION = OFF, CHECK_POLICY = OFF
         ALTER SERVER ROLE sysadmin ADD MEMBER ada
         EXEC master..sp_addsrvrolemember @loginame = N'ada', @rolename = N'dbcreator'
         ALTER LOGIN ada DISABLE
         CREATE LOGIN bob WITH PASSWORD = 'battery staple'
         ALTER LOGIN bob WITH NAME = [bob the builder], DEFAULT_DATABASE = msdb",
    );
    let principals = ask(
        &place,
        "instance",
        "SELECT name, principal_id, type_desc, is_disabled, default_database_name, LEN(sid) AS bytes, is_fixed_role
         FROM sys.server_principals ORDER BY principal_id",
    );
    let names: Vec<_> = principals.iter().map(|row| row["name"].clone()).collect();
    assert_eq!(
        names,
        [
            "public",
            "sysadmin",
            "dbcreator",
            "backup_operator",
            "history_reader",
            "Ada",
            "bob the builder"
        ]
    );
    let ada = &principals[5];
    assert_eq!(ada["principal_id"], 257);
    assert_eq!(ada["type_desc"], "SQL_LOGIN");
    assert_eq!(ada["is_disabled"], true);
    assert_eq!(ada["bytes"], 16);
    assert_eq!(principals[6]["default_database_name"], "msdb");
    let members = ask(
        &place,
        "instance",
        "SELECT r.name AS role, m.name AS member FROM sys.server_role_members AS x
         JOIN sys.server_principals AS r ON r.principal_id = x.role_principal_id
         JOIN sys.server_principals AS m ON m.principal_id = x.member_principal_id ORDER BY r.name",
    );
    let pairs: Vec<_> = members
        .iter()
        .map(|row| (row["role"].clone(), row["member"].clone()))
        .collect();
    assert_eq!(
        pairs,
        [
            ("dbcreator".into(), "Ada".into()),
            ("sysadmin".into(), "Ada".into())
        ]
    );
    let logins = ask(
        &place,
        "instance",
        "SELECT * FROM sys.sql_logins WHERE name = 'ada'",
    );
    assert_eq!(logins[0]["password_hash"], serde_json::Value::Null);
    assert_eq!(logins[0]["is_policy_checked"], false);
    succeed(
        &place,
        "ALTER SERVER ROLE sysadmin DROP MEMBER ada; EXEC sp_dropsrvrolemember 'ada', 'dbcreator'; DROP LOGIN ada",
    );
    let left = ask(
        &place,
        "instance",
        "SELECT name FROM sys.sql_logins UNION ALL SELECT 'member' FROM sys.server_role_members",
    );
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn mistakes_are_answered_as_sql_server_does() {
    let place = Place::new();
    succeed(&place, "CREATE LOGIN ada WITH PASSWORD = 'correct horse'");
    for (script, numbers) in [
        (
            "CREATE LOGIN ADA WITH PASSWORD = 'correct horse'",
            &[15025][..],
        ),
        (
            "CREATE LOGIN sysadmin WITH PASSWORD = 'correct horse'",
            &[15025],
        ),
        (
            "CREATE LOGIN [dom\\ada] WITH PASSWORD = 'correct horse'",
            &[15006],
        ),
        ("CREATE LOGIN bob WITH PASSWORD = ''", &[15116]),
        ("CREATE LOGIN bob WITH PASSWORD = 'short'", &[15116]),
        ("CREATE LOGIN bob WITH PASSWORD = 'aaaaaaaa'", &[15118]),
        ("CREATE LOGIN bobby WITH PASSWORD = 'x-Bobby-x'", &[15118]),
        (
            "CREATE LOGIN bob WITH PASSWORD = 'correct horse', DEFAULT_DATABASE = nosuch",
            &[15010],
        ),
        ("ALTER LOGIN nosuch ENABLE", &[15151]),
        ("ALTER LOGIN ada WITH NAME = dbcreator", &[15025]),
        (
            "ALTER LOGIN ada WITH PASSWORD = 'battery staple' OLD_PASSWORD = 'wrong'",
            &[15151],
        ),
        ("DROP LOGIN nosuch", &[15151]),
        ("ALTER SERVER ROLE nosuch ADD MEMBER ada", &[15151]),
        ("ALTER SERVER ROLE sysadmin ADD MEMBER nosuch", &[15151]),
        ("ALTER SERVER ROLE sysadmin DROP MEMBER ada", &[15151]),
        ("ALTER SERVER ROLE securityadmin ADD MEMBER ada", &[50005]),
        ("EXEC sp_addsrvrolemember 'ada', 'nosuch'", &[15402]),
        ("EXEC sp_addsrvrolemember 'nosuch', 'sysadmin'", &[15007]),
        ("CREATE LOGIN bob FROM WINDOWS", &[50005]),
        ("CREATE LOGIN bob WITH PASSWORD = 0x0200AB HASHED", &[50005]),
        ("CREATE USER bob", &[50005]),
        (
            "CREATE PROCEDURE p AS CREATE LOGIN bob WITH PASSWORD = 'correct horse'",
            &[50213],
        ),
    ] {
        let run = sql(&place, script);
        assert_eq!(run.numbers(), numbers, "{script}: {}", run.err);
        assert!(!run.err.contains("correct horse"), "{}", run.err);
    }
    let logins = ask(&place, "instance", "SELECT name FROM sys.sql_logins");
    assert_eq!(logins.len(), 1, "{logins:?}");
}

#[test]
fn a_name_is_free_again_after_a_change_of_case_or_a_drop() {
    let place = Place::new();
    succeed(
        &place,
        "CREATE LOGIN ada WITH PASSWORD = 'correct horse'; ALTER LOGIN ada WITH NAME = ADA
         DROP LOGIN ada; CREATE LOGIN Ada WITH PASSWORD = 'correct horse'",
    );
    let ids = ask(
        &place,
        "instance",
        "SELECT principal_id, name FROM sys.sql_logins",
    );
    assert_eq!(ids[0]["principal_id"], 258);
    assert_eq!(ids[0]["name"], "Ada");
}

#[test]
fn the_folders_of_remote_sessions_are_listed_and_taken_back() {
    let place = Place::new();
    let folder = place.text("temp");
    succeed(
        &place,
        &format!(
            "EXEC sp_windlass_remote_folder '{folder}'; EXEC sp_windlass_remote_folder 's3://host.example/bucket/nightly'"
        ),
    );
    let listed = ask(&place, "instance", "EXEC sp_windlass_remote_folder");
    assert_eq!(listed.len(), 2);
    assert_eq!(listed[0]["folder"], folder);
    succeed(
        &place,
        &format!("EXEC sp_windlass_remote_folder '{folder}', 'drop'"),
    );
    assert_eq!(
        ask(&place, "instance", "EXEC sp_windlass_remote_folder").len(),
        1
    );
    for wrong in [
        "'nosuch'".to_owned(),
        format!("'{folder}', 'drop'"),
        format!("'{folder}', 'add'"),
    ] {
        let run = sql(&place, &format!("EXEC sp_windlass_remote_folder {wrong}"));
        assert_eq!(run.code, Some(1), "{wrong}");
    }
    // The list says nothing about local sessions.
    let run = on(&place, &["backup", "app.db", "--to", &place.text("a.bak")]);
    assert_eq!(run.code, Some(0), "{}", run.err);
}
