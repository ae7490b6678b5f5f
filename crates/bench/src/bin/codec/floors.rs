//! Minimum results of the codecs, as ratios between rows of one run.

use crate::Row;

/// One requirement: the quotient of two rows and its bound.
struct Floor {
    text: &'static str,
    value: f64,
    bound: f64,
    at_most: bool,
}

/// Prints which minimums are reached; skips those whose rows were not measured.
pub(crate) fn print(rows: &[Row]) {
    println!("\n| floor | bound | measured | |");
    println!("|---|---|---|---|");
    for floor in floors(rows) {
        let (sign, reached) = if floor.at_most {
            ("<=", floor.value <= floor.bound)
        } else {
            (">=", floor.value >= floor.bound)
        };
        println!(
            "| {} | {sign} {:.2} | {:.3} | {} |",
            floor.text,
            floor.bound,
            floor.value,
            if reached { "reached" } else { "MISSED" }
        );
    }
}

fn floors(rows: &[Row]) -> Vec<Floor> {
    let find = |name: &str| rows.iter().find(|row| row.name.starts_with(name));
    let mut floors = Vec::new();
    let Some(xpress) = find("MS_XPRESS") else {
        return floors;
    };
    let mut speed = |text, name, bound| {
        if let Some(row) = find(name) {
            let value = row.encode_rate / xpress.encode_rate;
            floors.push(Floor {
                text,
                value,
                bound,
                at_most: false,
            });
        }
    };
    speed("ZSTD LOW speed / MS_XPRESS", "ZSTD:LOW", 2.0);
    speed("ZSTD MEDIUM speed / MS_XPRESS", "ZSTD:MEDIUM", 0.6);
    speed("ZSTD HIGH speed / MS_XPRESS", "ZSTD:HIGH", 0.2);
    speed("QAT_DEFLATE speed / MS_XPRESS", "QAT_DEFLATE", 1.9);
    speed("QAT_DEFLATE by ISA-L / MS_XPRESS", "ISA-L level 1", 2.0);
    let mut size = |text, name, bound| {
        if let Some(row) = find(name) {
            let value = xpress.ratio / row.ratio;
            floors.push(Floor {
                text,
                value,
                bound,
                at_most: true,
            });
        }
    };
    size("ZSTD LOW size / MS_XPRESS", "ZSTD:LOW", 1.0);
    size("ZSTD MEDIUM size / MS_XPRESS", "ZSTD:MEDIUM", 0.8);
    size("ZSTD HIGH size / MS_XPRESS", "ZSTD:HIGH", 0.76);
    if let Some(peer) = find("wimlib") {
        let mut beside = |text, value, at_most| {
            floors.push(Floor {
                text,
                value,
                bound: 1.0,
                at_most,
            });
        };
        beside(
            "MS_XPRESS encode / wimlib",
            xpress.encode_rate / peer.encode_rate,
            false,
        );
        beside("MS_XPRESS size / wimlib", peer.ratio / xpress.ratio, true);
        beside(
            "MS_XPRESS decode / wimlib, each its own payload",
            xpress.decode_rate / peer.decode_rate,
            false,
        );
        if let Some(ours) = rows.iter().find(|row| row.name.ends_with("our decoder")) {
            let value = ours.decode_rate / peer.decode_rate;
            beside("MS_XPRESS decode / wimlib, wimlib's payload", value, false);
        }
    }
    floors
}
