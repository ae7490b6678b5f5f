//! What the log names as changed since a full backup, in random histories with log backups: every extent that differs is
//! among it.

use windlass_base::{EXTENT_BYTES, Guid};

use super::*;

/// Rows that lie behind those of the other histories, each in a page of its own.
const ROWS: u64 = 400;

impl History {
    fn pad(&mut self) {
        let application = self.application.as_ref().unwrap();
        let pad = format!(
            "CREATE TABLE pad(a INTEGER PRIMARY KEY, b BLOB);
             WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < {ROWS})
               INSERT INTO pad SELECT v, randomblob(3000) FROM n"
        );
        application.execute_batch(&pad).unwrap();
    }

    fn touch(&mut self) {
        let a = self.random.below(ROWS);
        let touch = match self.random.below(6) {
            0 => format!("DELETE FROM pad WHERE a > {ROWS} - {a} / 3"),
            1 => format!("INSERT INTO pad(b) SELECT randomblob(2000) FROM pad LIMIT {a} / 4"),
            _ => format!("UPDATE pad SET b = randomblob(length(b)) WHERE a = {a}"),
        };
        let application = self.application.as_ref().unwrap();
        application.execute_batch(&touch).unwrap();
    }

    /// Whether the log says what has changed since `base`, and how many extents it does not name; then, sometimes, there is
    /// another base.
    fn compare(&mut self, base: &mut Option<(Guid, Vec<u8>)>) -> Option<usize> {
        let options = SnapshotOptions {
            spool: Some(self.options().folder),
            after: self.last_lsn(),
            is_new_base: self.random.below(3) == 0 || base.is_none(),
            ..SnapshotOptions::default()
        };
        if let Some(follower) = &mut self.follower {
            follower.step(true).unwrap();
        } else if !options.spool.as_ref().unwrap().exists() {
            return None;
        }
        let snapshot = SqliteSnapshot::open(&self.path(), &options).unwrap();
        let mut image = vec![0; snapshot.files()[0].size_bytes as usize];
        snapshot.read(1, 0, &mut image).unwrap();
        let to = snapshot.wal_position().unwrap_or_default();
        let folder = options.spool.as_ref().unwrap();
        let ranges = base.as_ref().and_then(|(guid, old)| {
            let size_bytes = image.len() as u64;
            let ranges = spool::changed_since(folder, *guid, &to, size_bytes).unwrap()?;
            let is_in = |at: usize| ranges.iter().any(|range| range.contains(&(at as u64)));
            let mut unnamed = 0;
            for (index, extent) in image.chunks(EXTENT_BYTES).enumerate() {
                let at = index * EXTENT_BYTES;
                let before = old.get(at..(at + extent.len()).min(old.len()));
                let is_same = before == Some(extent);
                assert!(
                    is_same || is_in(at),
                    "extent {index} has changed: {ranges:?}"
                );
                unnamed += usize::from(!is_in(at));
            }
            Some(unnamed)
        });
        if options.is_new_base {
            let guid = Guid::random();
            snapshot.complete(guid).unwrap();
            *base = Some((guid, image));
        }
        snapshot.close().unwrap();
        ranges
    }
}

#[test]
fn random_histories_name_every_extent_that_has_changed() {
    let (count, seeds) = seeds(60);
    let (mut answers, mut unnamed, mut refusals) = (0, 0, 0);
    for seed in seeds {
        let mut history = History::new(seed);
        history.logs = Some(Vec::new());
        history.pad();
        let mut base = None;
        for _ in 0..60 + history.random.below(60) {
            match history.random.below(8) {
                0 | 1 => history.follower_step(),
                2 => history.application_step(),
                3 => match history.compare(&mut base) {
                    Some(more) => (answers, unnamed) = (answers + 1, unnamed + more),
                    None => refusals += 1,
                },
                _ => history.touch(),
            }
        }
    }
    println!("{answers} answers, {unnamed} extents not named, {refusals} refusals");
    assert!(count.is_some_and(|count| count < 30) || answers > 50 && unnamed > 500);
}
