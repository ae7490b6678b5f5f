//! Media that INIT has overwritten: they keep the identity of their media set, and their positions begin again.

use crate::support::{on, registered, well};

#[test]
fn what_init_has_overwritten_is_no_newer_backup_that_is_lost() {
    let place = registered();
    let backup = ["backup", "app", "--to", "temp/a.bak"];
    let init = [&backup[..], &["--init"]].concat();
    well(&place, &init);
    for _ in 0..3 {
        well(&place, &[&backup[..], &["--differential"]].concat());
    }
    well(&place, &init);
    let check = on(&place, &["check", "--database", "app"]);
    assert_eq!(check.code, Some(0), "{}", check.out);
    let doctor = on(&place, &["doctor"]).out;
    assert!(!doctor.contains("overwritten"), "{doctor}");
    let metrics = on(&place, &["metrics"]).out;
    let line = "windlass_database_backups_lost{database=\"app\"} 0";
    assert!(metrics.contains(line), "{metrics}");
    // What is gone with the medium is newer than what is left elsewhere.
    well(
        &place,
        &["backup", "app", "--to", "temp/b.bak", "--copy-only"],
    );
    well(&place, &init);
    std::fs::remove_file(place.path("temp/a.bak")).expect("the medium");
    let check = on(&place, &["check", "--database", "app"]);
    assert!(check.out.contains("1 newer backup lost"), "{}", check.out);
}
