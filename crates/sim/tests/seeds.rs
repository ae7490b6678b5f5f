//! A short fixed set of seeds; `windlass-sim --seeds 100000` runs many.

use windlass_sim::{Outcome, Steps};

fn run(seeds: impl IntoIterator<Item = u64>) -> Outcome {
    let mut total = Outcome::default();
    for seed in seeds {
        match windlass_sim::run(seed, Steps::Silent) {
            Ok(outcome) => total.add(&outcome),
            Err(reason) => panic!("seed {seed}: {reason}"),
        }
    }
    total
}

#[test]
fn every_crash_leaves_the_acknowledged_commits() {
    let total = run(0..400);
    let seen = [
        total.in_flight_kept,
        total.offline,
        total.restores,
        total.differentials,
        total.log_full,
        total.disk_full,
        total.failed_syncs,
        total.recoveries_cut,
        total.several_files,
        total.stale_refused,
        total.log_backups,
        total.rolled_forward,
        total.rolled_upon_differential,
        total.stopped_at_commit,
    ];
    assert!(seen.iter().all(|&count| count > 5), "{total}");
    // How many depends on the clock.
    assert!(total.stopped_at_time > 0, "{total}");
}

/// Faults hit every opening except the last, when the disk works and the database must open.
#[test]
fn seeds_that_once_failed_run() {
    run([1_096_532]);
}
