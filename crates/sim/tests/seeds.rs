//! A short fixed set of seeds; `windlass-sim --seeds 100000` runs many.

#[test]
fn every_crash_leaves_the_acknowledged_commits() {
    let mut total = windlass_sim::Outcome::default();
    for seed in 0..500 {
        match windlass_sim::run(seed, false) {
            Ok(outcome) => total.add(&outcome),
            Err(reason) => panic!("seed {seed}: {reason}"),
        }
    }
    assert!(
        total.in_flight_kept > 5 && total.offline > 5 && total.restores > 50,
        "{total}"
    );
}
