//! Bytes, rates and durations in human-readable form.

use std::fmt;
use std::time::Duration;

/// Prints bytes with a binary unit: `512 B`, `64.0 KB`, `1.5 MB`, `2.0 GB`.
///
/// Units are SQL Server's: 1 KB is 1024 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KB", "MB", "GB", "TB", "PB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        while value >= 1024.0 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        write!(f, "{value:.1} {}", UNITS[unit])
    }
}

/// A number of things: `1 file`, `2 files`. `one` is the word for one of them, whose plural ends with s.
pub fn counted(count: impl TryInto<u64>, one: &str) -> String {
    match count.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    }
}

/// Megabytes (2^20) per second; zero when no time has passed.
pub fn megabytes_per_second(bytes: u64, elapsed: Duration) -> f64 {
    let seconds = elapsed.as_secs_f64();
    if seconds > 0.0 {
        bytes as f64 / f64::from(1 << 20) / seconds
    } else {
        0.0
    }
}

/// Parses a size with an optional unit: `1048576`, `64K`, `1MB`, `4 MiB`, `2g`.
///
/// Units are powers of 1024. `None` if the text is not such a size or does not fit.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits_end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(digits_end);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_read_and_print_with_units() {
        assert_eq!(parse_bytes("64K"), Some(65536));
        assert_eq!(parse_bytes("4 MiB"), Some(4 << 20));
        assert_eq!(parse_bytes("99999999999999G"), None);
        assert_eq!(parse_bytes("x"), None);
        assert_eq!(Bytes(1_572_864).to_string(), "1.5 MB");
        assert_eq!(Bytes(512).to_string(), "512 B");
        assert_eq!(counted(1_u32, "file"), "1 file");
        assert_eq!(counted(0_usize, "file"), "0 files");
    }
}
