//! Scripts as SQL Server Management Studio generates them.

use crate::support::{Place, sql, succeed};

const ATTACH: &str = "EXEC sp_attach_single_file_db 'app', 'd:\\app.db'\n";

#[test]
fn the_script_of_back_up_with_verification_runs_as_it_is() {
    let place = Place::new();
    succeed(&place, ATTACH);
    let run = succeed(
        &place,
        "BACKUP DATABASE [app] TO  DISK = N'd:\\app.bak' WITH NOFORMAT, INIT,  NAME = N'app-Full Database Backup', SKIP, NOREWIND, NOUNLOAD,  STATS = 10, CHECKSUM
GO
declare @backupSetId as int
select @backupSetId = position from msdb..backupset where database_name=N'app' and backup_set_id=(select max(backup_set_id) from msdb..backupset where database_name=N'app' )
if @backupSetId is null begin raiserror(N'Verify failed. Backup information for database ''app'' not found.', 16, 1) end
RESTORE VERIFYONLY FROM  DISK = N'd:\\app.bak' WITH  FILE = @backupSetId,  NOUNLOAD,  NOREWIND
GO
",
    );
    assert!(
        run.err.contains("The backup set on file 1 is valid."),
        "{}",
        run.err
    );
    let run = sql(
        &place,
        "declare @backupSetId as int
select @backupSetId = position from msdb..backupset where database_name=N'nosuch' and backup_set_id=(select max(backup_set_id) from msdb..backupset where database_name=N'nosuch' )
if @backupSetId is null begin raiserror(N'Verify failed. Backup information for database ''nosuch'' not found.', 16, 1) end",
    );
    assert_eq!(run.numbers(), [50000]);
}

#[test]
fn the_script_of_restore_with_single_user_runs_as_it_is_and_says_what_it_does_not_do() {
    let place = Place::new();
    succeed(&place, ATTACH);
    succeed(&place, "BACKUP DATABASE app TO DISK = 'd:\\app.bak'");
    let run = succeed(
        &place,
        "USE [master]
ALTER DATABASE [app] SET SINGLE_USER WITH ROLLBACK IMMEDIATE
RESTORE DATABASE [app] FROM  DISK = N'd:\\app.bak' WITH  FILE = 1,  NOUNLOAD,  REPLACE,  STATS = 5
ALTER DATABASE [app] SET MULTI_USER

GO
ALTER DATABASE [app] SET RECOVERY SIMPLE WITH NO_WAIT
ALTER DATABASE app SET RECOVERY SIMPLE
",
    );
    assert!(run.numbers().contains(&50200), "{}", run.err);
    assert!(
        run.err.contains("RESTORE DATABASE successfully processed"),
        "{}",
        run.err
    );
    assert_eq!(
        sql(&place, "ALTER DATABASE nosuch SET SINGLE_USER")
            .numbers()
            .len(),
        1
    );
    assert_eq!(
        sql(&place, "ALTER DATABASE app SET SINGLE_USER WITH PATIENCE").numbers(),
        [50005]
    );
}
