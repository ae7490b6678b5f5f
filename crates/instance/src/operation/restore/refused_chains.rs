//! Chains that do not fit: each is refused with SQL Server's number, and the target stays as it was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use windlass_base::checksum;

use crate::outcome::Collected;
use crate::{Instance, Session};

/// The target of a statement, before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Target {
    /// There is none.
    None,
    /// The full backup was restored WITH NORECOVERY.
    Full,
    /// And its differential.
    Differential,
    /// The full backup and the first log backup were restored WITH NORECOVERY.
    OneLog,
    /// And the second.
    TwoLogs,
    /// And it was recovered.
    Online,
    /// And has commits that are in no backup.
    Unsaved,
}

/// A target, a statement, and the numbers of its errors. `{at}` is the folder of the media, `{move}` where the files of
/// the target go, `{early}` a moment before the first log backup, `{lsn}` one of that time.
type Row = (Target, &'static str, &'static [u32]);

#[rustfmt::skip]
const ROWS: &[Row] = {
    use Target::{Differential, Full, None, OneLog, Online, TwoLogs, Unsaved};
    &[
        // Nothing to continue.
        (None, "RESTORE LOG Copy FROM DISK = '{at}/1.trn'", &[3118]),
        (None, "RESTORE LOG Copy FROM DISK = '{at}/1.trn' WITH NORECOVERY, {move}", &[3118]),
        (None, "RESTORE DATABASE Copy FROM DISK = '{at}/diff.bak' WITH {move}", &[3118]),
        (None, "RESTORE DATABASE Copy WITH RECOVERY", &[3118]),
        // Not of this kind.
        (None, "RESTORE DATABASE Copy FROM DISK = '{at}/1.trn' WITH {move}", &[3135]),
        (None, "RESTORE LOG Copy FROM DISK = '{at}/full.bak' WITH {move}", &[3135]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/diff.bak'", &[3135]),
        (Full, "RESTORE DATABASE Copy FROM DISK = '{at}/1.trn'", &[3135]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/simple.bak'", &[3135]),
        // A point in time for which a full backup is too late, or which its database has not.
        (None, "RESTORE DATABASE Copy FROM DISK = '{at}/full.bak' WITH {move}, STOPAT = '2020-01-01'", &[4338]),
        (None, "RESTORE DATABASE Copy FROM DISK = '{at}/full.bak' WITH {move}, STOPATMARK = 'lsn:{lsn}'", &[4338]),
        (None, "RESTORE DATABASE Copy FROM DISK = '{at}/simple.bak' WITH {simpleMove}, STOPAT = '2099-01-01'", &[3145]),
        (Full, "RESTORE DATABASE Copy FROM DISK = '{at}/diff.bak' WITH STOPAT = '2020-01-01'", &[4338]),
        // Media that are not whole.
        (None, "RESTORE DATABASE Copy FROM DISK = '{at}/striped_1.bak' WITH {move}", &[3132]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/striped_1.trn'", &[3132]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/1.trn' WITH FILE = 2", &[3287]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/nosuch.trn'", &[3201]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/changed.trn'", &[3189]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/cut.trn'", &[3256]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/empty.trn'", &[3254]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/text.trn'", &[3241]),
        // A gap.
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/2.trn'", &[4305]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/3.trn' WITH NORECOVERY", &[4305]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/later.trn'", &[4305]),
        (OneLog, "RESTORE LOG Copy FROM DISK = '{at}/3.trn'", &[4305]),
        (Differential, "RESTORE LOG Copy FROM DISK = '{at}/later.trn'", &[4305]),
        // Restored already.
        (TwoLogs, "RESTORE LOG Copy FROM DISK = '{at}/1.trn'", &[4326]),
        (Differential, "RESTORE LOG Copy FROM DISK = '{at}/1.trn'", &[4326]),
        // Another history.
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/other.trn'", &[4330]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/fork.trn'", &[4330]),
        (TwoLogs, "RESTORE LOG Copy FROM DISK = '{at}/fork.trn'", &[4330]),
        // Another base.
        (Full, "RESTORE DATABASE Copy FROM DISK = '{at}/diff2.bak'", &[3136]),
        (OneLog, "RESTORE DATABASE Copy FROM DISK = '{at}/diff.bak'", &[3136]),
        (Differential, "RESTORE DATABASE Copy FROM DISK = '{at}/diff.bak'", &[3136]),
        // A point behind which the target is already.
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/1.trn' WITH STOPAT = '2020-01-01'", &[4335]),
        (OneLog, "RESTORE LOG Copy FROM DISK = '{at}/2.trn' WITH STOPAT = '{early}'", &[4335]),
        (OneLog, "RESTORE LOG Copy FROM DISK = '{at}/2.trn' WITH STOPATMARK = 'lsn:{lsn}'", &[4335]),
        (OneLog, "RESTORE LOG Copy FROM DISK = '{at}/2.trn' WITH STOPBEFOREMARK = 'lsn:{lsn}'", &[4335]),
        // No point.
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/1.trn' WITH STOPATMARK = 'lsn:x'", &[4334]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/1.trn' WITH STOPAT = 'soon'", &[3217]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/1.trn' WITH STOPAT = '2026-01-01', STOPATMARK = 'x'", &[3031]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/1.trn' WITH RECOVERY, NORECOVERY", &[3031]),
        // Other places than those where the target waits.
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/1.trn' WITH MOVE 'Shop' TO '{at}/elsewhere.mdf'", &[3117]),
        (Full, "RESTORE LOG Copy FROM DISK = '{at}/1.trn' WITH MOVE 'nosuch' TO '{at}/elsewhere.mdf'", &[3234]),
        // A target that waits is no source, and nobody uses it.
        (Full, "BACKUP DATABASE Copy TO DISK = '{at}/x.bak'", &[927]),
        (OneLog, "BACKUP LOG Copy TO DISK = '{at}/x.trn'", &[927]),
        (TwoLogs, "USE Copy", &[927]),
        // A target that is online.
        (Online, "RESTORE LOG Copy FROM DISK = '{at}/3.trn'", &[3117]),
        (Online, "RESTORE DATABASE Copy FROM DISK = '{at}/diff.bak'", &[3117]),
        (Online, "RESTORE DATABASE Copy WITH RECOVERY", &[3153]),
        (Online, "RESTORE DATABASE Copy FROM DISK = '{at}/other.bak' WITH {otherMove}", &[3154]),
        (Online, "BACKUP LOG Copy TO DISK = '{at}/x.trn'", &[4214, 50235]),
        (Online, "BACKUP DATABASE Copy TO DISK = '{at}/x.bak' WITH DIFFERENTIAL", &[3035]),
        (Online, "RESTORE DATABASE New FROM DISK = '{at}/full.bak' WITH {move}", &[1834, 3156, 1834, 3156, 3119]),
        (Unsaved, "RESTORE DATABASE Copy FROM DISK = '{at}/full.bak' WITH {move}", &[3159]),
        (Unsaved, "RESTORE DATABASE Copy FROM DISK = '{at}/full.bak' WITH {move}, NORECOVERY", &[3159]),
        (Unsaved, "RESTORE LOG Copy FROM DISK = '{at}/3.trn'", &[3117]),
        // No chain.
        (None, "BACKUP LOG Simple TO DISK = '{at}/x.trn'", &[4208]),
        (None, "BACKUP LOG Fresh TO DISK = '{at}/x.trn'", &[4214]),
        (None, "BACKUP LOG Nosuch TO DISK = '{at}/x.trn'", &[911]),
    ]
};

struct World {
    folder: tempfile::TempDir,
    early: String,
    lsn: String,
}

impl World {
    fn at(&self) -> &Path {
        self.folder.path()
    }

    fn fill(&self, text: &str) -> String {
        let at = self.at().display().to_string();
        let moved = |data: &str, log: &str| {
            format!("MOVE '{data}' TO '{at}/copy.mdf', MOVE '{log}' TO '{at}/copy.ldf'")
        };
        text.replace("{move}", &moved("Shop", "Shop_log"))
            .replace("{otherMove}", &moved("Other", "Other_log"))
            .replace("{simpleMove}", &moved("Simple", "Simple_log"))
            .replace("{at}", &at)
            .replace("{early}", &self.early)
            .replace("{lsn}", &self.lsn)
    }

    /// Runs batches in a session of their own; the databases are closed afterwards.
    fn run(&self, text: &str) -> Collected {
        let mut said = Collected::default();
        let instance = Instance::open(Some(&self.at().join("instance"))).unwrap();
        let mut session = Session::new(instance);
        for batch in self.fill(text).split("GO\n") {
            let _end = session.execute_batch(batch, 1, &mut said);
        }
        assert!(session.instance().close_engine_databases().is_empty());
        said
    }

    #[track_caller]
    fn succeed(&self, text: &str) -> Collected {
        let said = self.run(text);
        assert!(!said.has_failed(), "{text}: {:?}", said.messages);
        said
    }

    /// One value that a query answers.
    fn ask(&self, text: &str) -> String {
        let said = self.succeed(text);
        let results = said.results.last().expect("a result");
        results.rows[0][0].to_string()
    }

    fn make(name: &str) -> String {
        let file = name.to_lowercase();
        format!(
            "CREATE DATABASE {name} ON (NAME = {name}, FILENAME = '{{at}}/{file}.mdf') \
             LOG ON (NAME = {name}_log, FILENAME = '{{at}}/{file}.ldf')
GO
USE {name}
GO
CREATE TABLE t(n INTEGER)
GO
USE master
GO
"
        )
    }

    fn insert(&self, database: &str, number: u32) {
        self.succeed(&format!(
            "USE {database}\nGO\nINSERT INTO t VALUES ({number})"
        ));
    }

    /// All media that the rows name.
    fn new() -> Self {
        let mut world = Self {
            folder: tempfile::tempdir().unwrap(),
            early: String::new(),
            lsn: String::new(),
        };
        for name in ["Shop", "Other"] {
            world.succeed(&Self::make(name));
            world.succeed(&format!("ALTER DATABASE {name} SET RECOVERY FULL"));
        }
        world.succeed(&Self::make("Simple"));
        world.succeed(&Self::make("Fresh"));
        world.succeed(
            "ALTER DATABASE Fresh SET RECOVERY FULL
BACKUP DATABASE Simple TO DISK = '{at}/simple.bak'
BACKUP DATABASE Other TO DISK = '{at}/other.bak'",
        );
        world.insert("Other", 1);
        world.succeed("BACKUP LOG Other TO DISK = '{at}/other.trn'");
        world.insert("Shop", 0);
        world.succeed("BACKUP DATABASE Shop TO DISK = '{at}/full.bak'");
        world.lsn = world.ask(
            "SELECT CAST(max(first_lsn) AS varchar(30)) FROM msdb.dbo.backupset WHERE database_name = 'Shop'",
        );
        std::thread::sleep(std::time::Duration::from_millis(20));
        world.early = world.ask("SELECT CONVERT(varchar(30), sysdatetime(), 121)")[..23].to_owned();
        std::thread::sleep(std::time::Duration::from_millis(20));
        for number in 1..=3 {
            world.insert("Shop", number);
            world.succeed(&format!("BACKUP LOG Shop TO DISK = '{{at}}/{number}.trn'"));
            if number == 2 {
                world.succeed("BACKUP DATABASE Shop TO DISK = '{at}/diff.bak' WITH DIFFERENTIAL");
            }
        }
        world.succeed(
            "BACKUP LOG Shop TO DISK = '{at}/striped_1.trn', DISK = '{at}/striped_2.trn' WITH COPY_ONLY
BACKUP DATABASE Shop TO DISK = '{at}/striped_1.bak', DISK = '{at}/striped_2.bak' WITH COPY_ONLY
BACKUP DATABASE Shop TO DISK = '{at}/full2.bak'",
        );
        world.insert("Shop", 4);
        // What happens while the log is not kept is in no log backup.
        world.succeed(
            "BACKUP DATABASE Shop TO DISK = '{at}/diff2.bak' WITH DIFFERENTIAL
ALTER DATABASE Shop SET RECOVERY SIMPLE",
        );
        world.insert("Shop", 5);
        world.succeed(
            "ALTER DATABASE Shop SET RECOVERY FULL
BACKUP DATABASE Shop TO DISK = '{at}/full3.bak'",
        );
        world.insert("Shop", 6);
        world.succeed("BACKUP LOG Shop TO DISK = '{at}/later.trn'");
        world.fork();
        world.damage();
        world
    }

    /// A log of a database that was restored from the full backup and went its own way.
    fn fork(&self) {
        self.succeed(
            "RESTORE DATABASE Fork FROM DISK = '{at}/full.bak' \
             WITH MOVE 'Shop' TO '{at}/fork.mdf', MOVE 'Shop_log' TO '{at}/fork.ldf'
BACKUP DATABASE Fork TO DISK = '{at}/fork.bak'",
        );
        self.insert("Fork", 77);
        self.succeed("BACKUP LOG Fork TO DISK = '{at}/fork.trn'");
    }

    fn damage(&self) {
        let at = |name: &str| self.at().join(name);
        let mut bytes = std::fs::read(at("1.trn")).unwrap();
        let middle = bytes.len() / 2;
        std::fs::write(at("cut.trn"), &bytes[..middle]).unwrap();
        bytes[middle] ^= 4;
        std::fs::write(at("changed.trn"), bytes).unwrap();
        std::fs::write(at("empty.trn"), "").unwrap();
        std::fs::write(at("text.trn"), "no medium".repeat(1000)).unwrap();
    }

    /// Brings the target into a state, from the state before.
    fn reach(&self, target: Target) {
        let full =
            "RESTORE DATABASE Copy FROM DISK = '{at}/full.bak' WITH NORECOVERY, REPLACE, {move}";
        match target {
            Target::None => {}
            Target::Full => drop(self.succeed(full)),
            Target::Differential => {
                self.succeed("RESTORE DATABASE Copy FROM DISK = '{at}/diff.bak' WITH NORECOVERY");
            }
            Target::OneLog => {
                self.succeed(full);
                self.succeed("RESTORE LOG Copy FROM DISK = '{at}/1.trn' WITH NORECOVERY");
            }
            Target::TwoLogs => {
                self.succeed("RESTORE LOG Copy FROM DISK = '{at}/2.trn' WITH NORECOVERY");
            }
            Target::Online => drop(self.succeed("RESTORE DATABASE Copy WITH RECOVERY")),
            Target::Unsaved => {
                self.succeed("BACKUP DATABASE Copy TO DISK = '{at}/copy.bak'");
                self.insert("Copy", 88);
            }
        }
    }

    /// All files but those of the instance, and what it knows of its databases.
    fn state(&self, target: Target) -> (BTreeMap<PathBuf, u64>, String, String) {
        let entries = std::fs::read_dir(self.at()).unwrap().flatten();
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        // The files of a database that is online change when it is opened and closed.
        let is_online = target >= Target::Online;
        let names = files.map(|file| file.path()).filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_media = name.ends_with(".bak") || name.ends_with(".trn");
            is_media || name.starts_with("copy") && !is_online || name.contains("elsewhere")
        });
        let sums = names.map(|path| {
            let bytes = std::fs::read(&path).unwrap();
            (path, checksum(&bytes))
        });
        let sums = sums.collect();
        let known = self.ask(
            "SELECT STRING_AGG(name + ' ' + state_desc + ' ' + recovery_model_desc, ', ') FROM sys.databases \
             WHERE database_id > 4",
        );
        let content = match is_online {
            true => self.ask("USE Copy\nGO\nSELECT STRING_AGG(n, ' ') FROM t"),
            false => String::new(),
        };
        (sums, known, content)
    }
}

#[test]
fn what_does_not_fit_is_refused_with_its_number_and_the_target_stays_as_it_was() {
    assert!(ROWS.len() >= 50);
    let world = World::new();
    let mut rows: Vec<&Row> = ROWS.iter().collect();
    rows.sort_by_key(|(target, ..)| *target);
    let mut reached = None;
    let mut wrong = Vec::new();
    for (target, statement, expected) in rows {
        if reached != Some(*target) {
            world.reach(*target);
            reached = Some(*target);
        }
        let before = world.state(*target);
        let said = world.run(statement);
        let numbers: Vec<u32> = said
            .messages
            .iter()
            .filter(|message| message.is_error() && message.number != 3013)
            .map(|message| message.number)
            .collect();
        let is_unchanged = before == world.state(*target);
        if !numbers.ends_with(expected) || !is_unchanged || !said.has_failed() {
            wrong.push(format!(
                "{target:?}: {statement}: {numbers:?} instead of {expected:?}, unchanged: {is_unchanged}: {:?}",
                said.messages
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // After all of that the chain still leads to its end.
    world.succeed(
        "RESTORE DATABASE Copy FROM DISK = '{at}/full.bak' WITH NORECOVERY, REPLACE, {move}
RESTORE LOG Copy FROM DISK = '{at}/1.trn' WITH NORECOVERY
RESTORE LOG Copy FROM DISK = '{at}/2.trn' WITH NORECOVERY
RESTORE LOG Copy FROM DISK = '{at}/3.trn'",
    );
    assert_eq!(world.ask("USE Copy\nGO\nSELECT max(n) FROM t"), "3");
}
