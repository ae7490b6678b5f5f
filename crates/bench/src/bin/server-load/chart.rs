//! How long a client waits for BACKUP of a small database, by the kind of checkpoints and the size of the pool.

use std::path::Path;
use std::time::Instant;

use anyhow::ensure;
use windlass_bench::median;

use crate::served::{Served, create, sql};

const ROUNDS: u32 = 5;
const MEGABYTES: u64 = 10;

/// Measures, and prints a table.
pub(crate) fn run(program: &Path, folder: &Path, pools: &[u64]) -> anyhow::Result<()> {
    let instance = folder.join("instance");
    let served = Served::start(program, &instance)?;
    create(&served, folder, MEGABYTES)?;
    served.stop()?;
    println!("pool MB   automatic ms   indirect ms   ratio");
    for pool in pools {
        sql(
            program,
            &instance,
            &format!(
                "EXEC sp_configure 'show advanced options', 1; RECONFIGURE; \
                 EXEC sp_configure 'max server memory (MB)', {pool}; RECONFIGURE"
            ),
        )?;
        let served = Served::start(program, &instance)?;
        let mut client = served.client("shop")?;
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            for (kind, seconds) in [0, 60].into_iter().enumerate() {
                served.sql(&format!(
                    "ALTER DATABASE shop SET TARGET_RECOVERY_TIME = {seconds} SECONDS"
                ))?;
                let dirty =
                    format!("UPDATE accounts SET balance = balance + 1 WHERE id % 1000 = {round}");
                ensure!(client.run(&dirty)?, "the update failed");
                let begun = Instant::now();
                ensure!(
                    client.run("BACKUP DATABASE shop TO DISK = 'NUL' WITH COPY_ONLY")?,
                    "the backup failed"
                );
                times[kind].push(begun.elapsed().as_secs_f64() * 1000.0);
            }
        }
        let [automatic, indirect] = times.map(median);
        println!(
            "{pool:7}   {automatic:12.1}   {indirect:11.1}   {:5.1}",
            automatic / indirect
        );
        drop(client);
        served.stop()?;
    }
    Ok(())
}
