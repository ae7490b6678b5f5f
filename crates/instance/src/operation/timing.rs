//! The arithmetic of the closing message.

use std::time::Duration;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_base::page::pages_of;
use windlass_pipeline::{FilePages, Probe, ProbeReport};

/// The pages of all files together.
pub(super) fn pages(files: &[FilePages]) -> u64 {
    files.iter().map(|file| file.pages).sum()
}

/// Message 3014: seconds and rate with three decimal places, the rate truncated, as on SQL Server.
pub(super) fn closing(operation: &str, pages: u64, bytes: u64, elapsed: Duration) -> Message {
    let (seconds, rate) = seconds_and_rate(bytes, elapsed);
    table::successfully_processed(operation, pages, seconds, rate)
}

/// The closing message of a measuring run; must not read like that of a backup.
pub(super) fn probed(report: &ProbeReport) -> Message {
    let (seconds, rate) = seconds_and_rate(report.processed_bytes, report.elapsed);
    let pages = pages_of(report.processed_bytes);
    let (option, done) = match report.probe {
        Probe::Read => ("NOCOMPRESSWRITE", "read"),
        Probe::Transform => ("NOWRITE", "read and compressed"),
    };
    table::probed(option, done, pages, seconds, rate)
}

fn seconds_and_rate(bytes: u64, elapsed: Duration) -> (String, String) {
    let millis = elapsed.as_millis().max(1);
    // Thousandths of a megabyte per second.
    let rate = u128::from(bytes) * 1_000_000 / (1 << 20) / millis;
    (
        format!("{}.{:03}", millis / 1000, millis % 1000),
        format!("{}.{:03}", rate / 1000, rate % 1000),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_cut_off_after_three_places() {
        let message = closing(
            "BACKUP DATABASE",
            378,
            378 * 8192,
            Duration::from_millis(37),
        );
        assert_eq!(
            message.text,
            "BACKUP DATABASE successfully processed 378 pages in 0.037 seconds (79.814 MB/sec)."
        );
        assert!(
            closing("x", 0, 0, Duration::ZERO)
                .text
                .contains("0.001 seconds (0.000")
        );
    }
}
