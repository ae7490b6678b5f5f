//! Minimum results of whole runs, as ratios between rows of one table.

use windlass_bench::floor::Floor;

use crate::Variant;

const LOW: &str = "backup zstd:low";
const LOW_RESTORE: &str = "restore zstd:low";
const COPY_THEN_ZSTD: &str = "peer .backup + zstd -T0 -1";
const ZSTD: &str = "peer zstd -T0 -3 of the file";

/// Whether a floor compares this row.
pub(crate) fn need(name: &str) -> bool {
    [LOW, LOW_RESTORE, COPY_THEN_ZSTD, ZSTD].contains(&name)
}

/// Skips floors whose rows were not measured.
pub(crate) fn of(variants: &[Variant], is_utf_16: bool) -> Vec<Floor> {
    let find = |name: &str| variants.iter().find(|variant| variant.name == name);
    let mut floors = Vec::new();
    let mut floor = |text: &str, value: Option<f64>, bound, at_most| {
        floors.extend(value.map(|value| Floor {
            text: text.to_owned(),
            value,
            bound,
            at_most,
        }));
    };
    let faster = |name: &str, than: &str| Some(find(than)?.seconds() / find(name)?.seconds());
    let larger = |name: &str, than: &str| {
        Some(find(name)?.result_bytes()? as f64 / find(than)?.result_bytes()? as f64)
    };
    let rate = match is_utf_16 {
        true => 3.0,
        false => 1.6,
    };
    floor(
        "ZSTD LOW speed / .backup + zstd -T0 -1",
        faster(LOW, COPY_THEN_ZSTD),
        rate,
        false,
    );
    floor(
        "ZSTD LOW size / .backup + zstd -T0 -1",
        larger(LOW, COPY_THEN_ZSTD),
        1.0,
        true,
    );
    if !is_utf_16 {
        floor(
            "ZSTD LOW speed / zstd -T0 -3",
            faster(LOW, ZSTD),
            1.0,
            false,
        );
        floor("ZSTD LOW size / zstd -T0 -3", larger(LOW, ZSTD), 1.03, true);
    }
    floor(
        "restore speed / backup, ZSTD LOW",
        faster(LOW_RESTORE, LOW),
        2.0,
        false,
    );
    floors
}
