//! Minimum results of the codecs, as ratios between rows of one run.

use windlass_bench::floor::{self, Floor};

use crate::Row;
use crate::contender::UNFILTERED;

/// Prints which minimums are reached on a database with UTF-16 text, or on others; skips those whose
/// rows were not measured.
pub(crate) fn print(rows: &[Row], is_utf_16: bool) {
    floor::print(&floors(rows, is_utf_16));
}

/// A codec's smallest speed and largest size.
struct Wanted {
    name: &'static str,
    speed: f64,
    size: f64,
}

/// On UTF-16 text, beside `MS_XPRESS`.
const BESIDE_XPRESS: [Wanted; 4] = [
    wanted("ZSTD:LOW", 3.5, 0.86),
    wanted("ZSTD:MEDIUM", 2.0, 0.77),
    wanted("ZSTD:HIGH", 0.4, 0.7),
    wanted("QAT_DEFLATE", 1.9, 1.0),
];

/// On other data, beside the same codec without filters: those cost nothing where they do not pay.
const BESIDE_UNFILTERED: [Wanted; 4] = [
    wanted("ZSTD:LOW", 0.99, 1.01),
    wanted("ZSTD:MEDIUM", 0.99, 1.01),
    wanted("ZSTD:HIGH", 0.99, 1.01),
    wanted("QAT_DEFLATE", 0.99, 1.01),
];

const fn wanted(name: &'static str, speed: f64, size: f64) -> Wanted {
    Wanted { name, speed, size }
}

fn floors(rows: &[Row], is_utf_16: bool) -> Vec<Floor> {
    let find = |name: &str| rows.iter().find(|row| row.name == name);
    let mut floors = Vec::new();
    let mut floor = |text: String, value, bound, at_most| {
        floors.push(Floor {
            text,
            value,
            bound,
            at_most,
        });
    };
    let Some(xpress) = find("MS_XPRESS") else {
        return floors;
    };
    let list = match is_utf_16 {
        true => &BESIDE_XPRESS,
        false => &BESIDE_UNFILTERED,
    };
    for wanted in list {
        let unfiltered = format!("{}{UNFILTERED}", wanted.name);
        let beside = match is_utf_16 {
            true => Some(xpress),
            false => find(&unfiltered),
        };
        if let (Some(row), Some(beside)) = (find(wanted.name), beside) {
            let text = |what| format!("{} {what} / {}", wanted.name, beside.name);
            let speed = row.encode_rate / beside.encode_rate;
            floor(text("speed"), speed, wanted.speed, false);
            floor(text("size"), beside.ratio / row.ratio, wanted.size, true);
        }
    }
    if let Some(isal) = find("ISA-L level 1") {
        let speed = isal.encode_rate / xpress.encode_rate;
        floor(
            "QAT_DEFLATE by ISA-L / MS_XPRESS".to_owned(),
            speed,
            2.0,
            false,
        );
    }
    if let Some(peer) = rows.iter().find(|row| row.name.starts_with("wimlib")) {
        let mut beside = |text: &str, value, at_most| floor(text.to_owned(), value, 1.0, at_most);
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
