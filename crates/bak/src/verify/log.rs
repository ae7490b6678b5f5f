//! Checks the log of a set: virtual log files without gaps, and consecutive log blocks from the
//! first LSN to the last.

use std::collections::BTreeMap;

use windlass_base::Lsn;

use super::Checked;
use crate::error::{Damage, Finding, Place};
use crate::fields::Fields;
use crate::listing::SetListing;
use crate::mtf::configuration::{Configuration, FileKind};
use crate::mtf::log::{BLOCK_HEADER_BYTES, LOG_SECTOR_BYTES, LogBlock, VirtualLog};

/// Offset of the first virtual log file: after the header page of the log file.
const FIRST_VIRTUAL_LOG_AT: u64 = 0x2000;

/// The bits of a sector's first byte that are its parity.
const PARITY_BITS: u8 = 0xC0;

/// The log of a set.
#[derive(Debug, Default)]
pub(super) struct LogCheck {
    logs: Vec<VirtualLog>,
    /// How far the log of each virtual log file has been read: the offset in the log file after the
    /// last good block.
    reached: BTreeMap<u32, u64>,
    blocks: u64,
}

impl LogCheck {
    /// Adds a virtual log file.
    pub(super) fn add(&mut self, log: &VirtualLog) {
        self.logs.push(log.clone());
    }

    /// Checks the next piece of the log, at `offset` of the log file.
    pub(super) fn piece(
        &mut self,
        log: &VirtualLog,
        offset: u64,
        place: Place,
        piece: &[u8],
        findings: &mut Vec<Finding>,
    ) {
        let sector = LOG_SECTOR_BYTES as usize;
        let next = self.reached.entry(log.sequence).or_insert(log.first_byte);
        for (index, bytes) in piece.chunks(sector).enumerate() {
            let within = index as u64 * LOG_SECTOR_BYTES;
            let at = offset.saturating_add(within);
            let place = Place {
                stream: place.stream + within,
                file: if place.file == place.stream {
                    place.file + within
                } else {
                    place.file
                },
            };
            let fields = Fields(bytes);
            if at == *next {
                let expected = lsn_at(log, at);
                let block = LogBlock(fields);
                let found = Lsn {
                    slot: expected.slot,
                    ..block.lsn()
                };
                let length = block.bytes();
                let is_good = found == expected
                    && length >= LOG_SECTOR_BYTES
                    && length.is_multiple_of(LOG_SECTOR_BYTES)
                    && bytes.len() >= BLOCK_HEADER_BYTES;
                if !is_good {
                    let damage = Damage::LogBlock { expected, found };
                    findings.push(Finding { place, damage });
                    // The start of the next block is unknown; reports this only once.
                    *next = u64::MAX;
                    continue;
                }
                self.blocks += 1;
                *next = at + length;
            }
            let has_parity = fields.u8(0) & PARITY_BITS == log.parity & PARITY_BITS;
            if log.parity != 0 && !has_parity && *next != u64::MAX {
                let lsn = lsn_at(log, at);
                let damage = Damage::LogParity { lsn };
                findings.push(Finding { place, damage });
            }
        }
    }

    /// Compares the log with the set's configuration.
    pub(super) fn finish(
        mut self,
        set: &SetListing,
        configuration: &Configuration,
        checked: &mut Checked,
        damages: &mut Vec<Damage>,
    ) {
        checked.log_blocks += self.blocks;
        let mut by_file: BTreeMap<u16, Vec<&VirtualLog>> = BTreeMap::new();
        for log in &self.logs {
            by_file.entry(log.file).or_default().push(log);
        }
        for file in &configuration.files {
            if file.kind == FileKind::Log {
                let logs = by_file.remove(&file.id).unwrap_or_default();
                checked.virtual_logs += logs.len() as u64;
                check_gaps(file.id, file.bytes, logs, damages);
            }
        }
        self.logs.retain(|log| log.stored_bytes() > 0);
        self.logs.sort_by_key(|log| log.sequence);
        let first = self.logs.first().map(|log| lsn_at(log, log.first_byte));
        let mut expected = Lsn {
            slot: 0,
            ..configuration.first_lsn
        };
        if let Some(found) = first
            && found != expected
            && set.is_complete
        {
            damages.push(Damage::LogBlock { expected, found });
        }
        for log in &self.logs {
            expected = lsn_at(log, log.end_byte);
            let reached = self.reached.get(&log.sequence).copied();
            match reached {
                // Reported when it was found.
                Some(u64::MAX) => {}
                Some(reached) if reached == log.end_byte => {}
                reached => {
                    let found = lsn_at(log, reached.unwrap_or(log.first_byte));
                    damages.push(Damage::LogEnds { expected, found });
                }
            }
        }
        let last = Lsn {
            slot: 0,
            ..configuration.last_lsn
        };
        if !self.logs.is_empty() && expected != last && set.is_complete {
            damages.push(Damage::LogEnds {
                expected: last,
                found: expected,
            });
        }
    }
}

/// Looks for gaps between the virtual log files of a log file.
fn check_gaps(file: u16, ends: u64, mut logs: Vec<&VirtualLog>, damages: &mut Vec<Damage>) {
    logs.sort_by_key(|log| log.offset);
    let mut expected = FIRST_VIRTUAL_LOG_AT;
    for log in &logs {
        if log.offset != expected {
            let found = log.offset;
            damages.push(Damage::VirtualLogGap {
                file,
                expected,
                found,
            });
        }
        expected = log.offset.saturating_add(log.bytes);
    }
    if expected != ends {
        damages.push(Damage::VirtualLogGap {
            file,
            expected: ends,
            found: expected,
        });
    }
}

/// The LSN at an offset of the log file within a virtual log file.
fn lsn_at(log: &VirtualLog, offset: u64) -> Lsn {
    Lsn {
        vlf: log.sequence,
        block: (offset.saturating_sub(log.offset) / LOG_SECTOR_BYTES) as u32,
        slot: 0,
    }
}
