//! The figures published in the articles, for comparison with Windlass's as ratios. The machines differ,
//! so only ratios within one article are comparable.

use windlass_codec::Compression;

/// A line of "Improving Backup efficiency on SQL Server 2025 with the new ZSTD algorithm" (Pythian):
/// a database of 50 GB, SQL Server 2025, Core i7-13700HX, solid-state disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ZstdArticle {
    pub(crate) compression: Compression,
    /// MB/s to a file.
    pub(crate) disk_rate: f64,
    /// MB/s to NUL.
    pub(crate) nul_rate: f64,
    /// CPU use while backing up to a file, in percent.
    pub(crate) cpu_percent: f64,
    /// Size of the file in GB.
    pub(crate) gigabytes: f64,
}

/// Size of that article's database in GB.
const ZSTD_DATABASE_GIGABYTES: f64 = 50.0;

impl ZstdArticle {
    const ALL: [Self; 5] = [
        Self::line(Compression::NONE, 1882.0, 4124.0, 4.0, 50.0),
        Self::line(Compression::MS_XPRESS, 179.0, 179.0, 17.0, 13.8),
        Self::line(Compression::ZSTD_LOW, 362.0, 357.0, 15.0, 13.5),
        Self::line(Compression::ZSTD_MEDIUM, 226.0, 265.0, 15.0, 11.0),
        Self::line(Compression::ZSTD_HIGH, 43.0, 45.0, 11.0, 10.4),
    ];

    const fn line(
        compression: Compression,
        disk_rate: f64,
        nul_rate: f64,
        cpu_percent: f64,
        gigabytes: f64,
    ) -> Self {
        Self {
            compression,
            disk_rate,
            nul_rate,
            cpu_percent,
            gigabytes,
        }
    }

    /// The article's line for a compression; `None` for `QAT_DEFLATE`.
    pub(crate) fn of(compression: Compression) -> Option<Self> {
        let same = |line: &Self| line.compression == compression;
        Self::ALL.into_iter().find(same)
    }

    /// The line with which others are compared.
    pub(crate) fn baseline() -> Self {
        Self::ALL[1]
    }

    /// Compression ratio: database size divided by file size.
    pub(crate) fn ratio(&self) -> f64 {
        ZSTD_DATABASE_GIGABYTES / self.gigabytes
    }
}

/// "Making SQL Server Database Backups Faster with the Intel QuickAssist Technology": seconds,
/// means of ten backups to four files, QAT in software.
pub(crate) const QAT_SECONDS: [(Compression, f64); 2] = [
    (Compression::MS_XPRESS, 4.783),
    (Compression::QAT_DEFLATE, 2.423),
];

/// Number of files of those backups.
pub(crate) const QAT_FILES: usize = 4;

/// "SQL Server Backup I/O Performance" (Linchi Shea, 2007): files, MB/s without BLOCKSIZE, MB/s with
/// BLOCKSIZE = 65536.
pub(crate) const DEVICES: [(usize, f64, f64); 2] = [(1, 61.0, 57.0), (8, 73.0, 90.0)];

/// The same article's first machine: MB/s of a backup to one file, of the best striped backup, and
/// of a plain sequential write to the same drive.
pub(crate) const DEVICES_OF_120: [f64; 3] = [70.0, 100.0, 120.0];

/// "Optimizing backup speed" (SQL Backup Pro, 2013): the read ceiling in MB/s.
pub(crate) const STAGES_CEILING: f64 = 103.0;

/// The same: compression level, and MB/s of reading and compressing with 1, 2 and 3 threads.
pub(crate) const STAGES_TRANSFORM: [(&str, [f64; 3]); 2] = [
    ("level 1", [60.0, 99.0, 103.0]),
    ("level 2", [80.0, 103.0, 103.0]),
];

/// The same: threads and MB/s of whole backups at level 2.
pub(crate) const STAGES_FULL: [(usize, f64); 2] = [(2, 77.0), (3, 71.0)];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratios_are_those_that_the_articles_conclude() {
        let low = ZstdArticle::of(Compression::ZSTD_LOW).unwrap();
        assert!((low.disk_rate / ZstdArticle::baseline().disk_rate - 2.02).abs() < 0.01);
        assert!((low.ratio() - 3.70).abs() < 0.01);
        assert!(ZstdArticle::of(Compression::QAT_DEFLATE).is_none());
        assert!((QAT_SECONDS[0].1 / QAT_SECONDS[1].1 - 1.97).abs() < 0.01);
    }
}
