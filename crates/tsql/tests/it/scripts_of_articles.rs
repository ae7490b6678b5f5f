//! The statements of the articles that this product implements.

use windlass_tsql::ast::{
    Accelerator, AcceleratorMode, Algorithm, BackupOption, RestoreAction, RestoreOption, Statement,
    Switch,
};
use windlass_tsql::batch;

use crate::parsed;

const ZSTD: &str = r"
--Backup with no compression

BACKUP DATABASE StackOverflow50

TO DISK = N'd:\temp\StackOverflow50_nocompress.bak'

WITH STATS=5,NO_COMPRESSION;

--Backup with default compression (MS_XPRESS)

BACKUP DATABASE StackOverflow50

TO DISK = N'd:\temp\StackOverflow50_msxpress.bak'

WITH STATS=5,COMPRESSION;

--Backup with ZSTD Low compression (default for ZSTD)

BACKUP DATABASE StackOverflow50

TO DISK = N'd:\temp\StackOverflow50_zstd_low.bak'

WITH STATS=5,COMPRESSION (ALGORITHM = ZSTD, LEVEL = LOW);

BACKUP DATABASE StackOverflow50

TO DISK = N'NUL'

WITH STATS=5,COMPRESSION (ALGORITHM = ZSTD, LEVEL = HIGH);

------------------------------------------------------------------------------

--Restore operations

RESTORE HEADERONLY FROM DISK = N'd:\temp\StackOverflow50_nocompress.bak';

RESTORE FILELISTONLY FROM DISK = N'd:\temp\StackOverflow50_zstd_low.bak';

--RESTORE with ZSTD Low compression (default for ZSTD)

RESTORE DATABASE StackOverflow50_zstdlow

FROM DISK = N'd:\temp\StackOverflow50_zstd_low.bak'

WITH STATS=5,

MOVE 'StackOverflow2013_1' TO 'D:\SQLINSTALL\MSSQL17.SQL202520\MSSQL\DATA\StackOverflow2013_zstdlow_1.mdf',

MOVE 'StackOverflow2013_log' TO 'D:\SQLINSTALL\MSSQL17.SQL202520\MSSQL\DATA\StackOverflow2013_zstdlow_log.ldf'

;

";

#[test]
fn the_zstd_article() {
    // The page separates its statements by lines that hold a no-break space.
    let script = ZSTD.replace("\n\n", "\n\u{a0}\n");
    let statements = parsed(&script);
    assert_eq!(statements.len(), 7);
    let Statement::Restore(restore) = &statements[6].node else {
        panic!()
    };
    assert!(matches!(&restore.action, RestoreAction::Database { files, .. } if files.is_empty()));
    let moves = restore
        .options
        .iter()
        .filter(|o| matches!(o.node, RestoreOption::Move { .. }));
    assert_eq!(moves.count(), 2);
}

const QAT: &str = r"EXEC sp_configure 'show advanced options', 1;
GO
RECONFIGURE
GO
EXEC sp_configure 'hardware offload enabled', 1;
GO
RECONFIGURE
GO

ALTER SERVER CONFIGURATION SET HARDWARE_OFFLOAD = ON (ACCELERATOR = QAT); 

BACKUP DATABASE [SBODemoUS] TO  
DISK = N'C:\Luca\SBODemoUS31.bak', 
DISK = N'C:\Luca\SBODemoUS31a.bak',
DISK = N'C:\Luca\SBODemoUS31b.bak',
DISK = N'C:\Luca\SBODemoUS31c.bak'
WITH NOFORMAT
, NOINIT,  NAME = N'SBODemoUS-Full Database Backup', SKIP, NOREWIND, NOUNLOAD, 
COMPRESSION (ALGORITHM = QAT_DEFLATE) ,  STATS = 10
GO
";

#[test]
fn the_qat_article() {
    let batches = batch::split(QAT);
    assert_eq!(batches.len(), 5);
    let statements: Vec<_> = batches
        .iter()
        .flat_map(|batch| parsed(batch.text))
        .collect();
    assert_eq!(statements.len(), 6);
    let Statement::AlterServerConfiguration(configuration) = &statements[4].node else {
        panic!()
    };
    assert_eq!(configuration.hardware_offload, Switch::On);
    assert_eq!(
        configuration.accelerator,
        Some(Accelerator {
            mode: AcceleratorMode::Automatic
        })
    );
    let Statement::Backup(backup) = &statements[5].node else {
        panic!()
    };
    assert_eq!((backup.devices.len(), backup.options.len()), (4, 8));
    assert!(backup.options.iter().any(|option| matches!(option.node,
        BackupOption::Compression(Some(compression))
            if compression.algorithm == Algorithm::QatDeflate)));
}

#[test]
fn the_options_the_other_articles_speak_of() {
    parsed("BACKUP DATABASE x TO DISK = 'NUL' WITH NOCOMPRESSWRITE, THREADCOUNT = 3");
    parsed("BACKUP DATABASE x TO DISK = 'NUL' WITH NOWRITE, COMPRESSION");
    parsed(
        "BACKUP DATABASE x TO DISK = 'm' WITH BLOCKSIZE = 65536, BUFFERCOUNT = 50, MAXTRANSFERSIZE = 4194304",
    );
    parsed("ALTER DATABASE x SET TARGET_RECOVERY_TIME = 60 SECONDS");
    parsed("DBCC TRACEON (3213, 3605, -1)");
}

/// The saved articles, if the test data exists.
#[test]
fn the_articles_themselves_parse_from_their_first_statement_on() {
    let shared = std::env::var("WINDLASS_SHARED").map_or_else(
        |_| std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        std::path::PathBuf::from,
    );
    let article = |name: &str| std::fs::read_to_string(shared.join("seeds").join(name));
    let (Ok(zstd), Ok(qat)) = (
        article("000_82f888a7bd3e45f1.txt"),
        article("001_f5e85e5487702591.txt"),
    ) else {
        println!("SKIPPED: the articles are not in {}", shared.display());
        return;
    };
    let script = &zstd[zstd.find("--Backups to disk").unwrap()..zstd.find("References").unwrap()];
    assert_eq!(parsed(script).len(), 17);
    let script = &qat[qat.find("EXEC sp_configure").unwrap()..qat.find("Finally restart").unwrap()];
    assert_eq!(
        batch::split(script)
            .iter()
            .map(|batch| parsed(batch.text).len())
            .sum::<usize>(),
        5
    );
    let script = &qat[qat.find("BACKUP DATABASE [").unwrap()..qat.find("The results are").unwrap()];
    assert_eq!(
        batch::split(script)
            .iter()
            .map(|batch| parsed(batch.text).len())
            .sum::<usize>(),
        2
    );
}
