//! Expands several records at once.

use std::ops::Range;

use windlass_codec::xpress::BlockDecoder;
use windlass_codec::{Algorithm, Decoder, Filter};

use crate::checksum::record_checksum;
use crate::error::{Damage, Finding, Place};

/// Maximum number of threads that expand records.
const THREADS_MAX: usize = 8;

/// Records below which another thread is not worth its start: 256 KB.
const RECORDS_PER_THREAD: usize = 4;

/// The first bytes of a Zstandard frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// A data record that is read but not yet expanded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    /// Its offset in the file.
    pub(super) file: u64,
    /// Its stored checksum.
    pub(super) checksum: u32,
    /// Its payload, among those of the batch.
    pub(super) payload: Range<usize>,
    /// Its length when it is expanded.
    pub(super) bytes: usize,
}

/// The decoders of one thread.
#[derive(Debug, Default)]
struct Worker {
    xpress: Box<BlockDecoder>,
    others: Decoder,
}

/// The algorithm that a payload names itself. `MS_XPRESS` and DEFLATE do not.
pub(super) fn algorithm_of(payload: &[u8]) -> Option<Algorithm> {
    payload.starts_with(&ZSTD_MAGIC).then_some(Algorithm::Zstd)
}

/// The decoders of all threads, made when they are first needed.
#[derive(Debug)]
pub(super) struct Workers {
    threads: usize,
    made: Vec<Worker>,
}

impl Default for Workers {
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            threads: threads.min(THREADS_MAX),
            made: Vec::new(),
        }
    }
}

impl Workers {
    /// Expands records to `out`, which has their lengths together. A damaged record is zeros and a
    /// finding, whose place in the stream counts from the start of `out`.
    pub(super) fn expand(
        &mut self,
        records: &[Record],
        payloads: &[u8],
        out: &mut [u8],
        findings: &mut Vec<Finding>,
    ) {
        let wanted = (records.len() / RECORDS_PER_THREAD).clamp(1, self.threads);
        let share = records.len().div_ceil(wanted).max(1);
        if self.made.len() < wanted {
            self.made.resize_with(wanted, Worker::default);
        }
        if let ([worker, ..], 1) = (self.made.as_mut_slice(), wanted) {
            findings.extend(worker.expand(records, payloads, out, 0));
            return;
        }
        std::thread::scope(|scope| {
            let (mut rest, mut begins) = (out, 0);
            let mut running = Vec::new();
            for (worker, part) in self.made.iter_mut().zip(records.chunks(share)) {
                let bytes = part.iter().map(|record| record.bytes).sum::<usize>();
                let inside = bytes.min(rest.len());
                let (own, others) = std::mem::take(&mut rest).split_at_mut(inside);
                rest = others;
                let at = begins;
                begins += bytes as u64;
                running.push(scope.spawn(move || worker.expand(part, payloads, own, at)));
            }
            for thread in running {
                match thread.join() {
                    Ok(found) => findings.extend(found),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
    }
}

/// Expands a payload with the right checksum to exactly `out`, and returns what it is compressed with.
pub(super) fn try_expand(
    checksum: u32,
    payload: &[u8],
    out: &mut [u8],
) -> Result<Algorithm, Damage> {
    let (found, expected) = (checksum, record_checksum(payload));
    if found != expected {
        return Err(Damage::RecordChecksum { expected, found });
    }
    let decoded = Worker::default().decode(payload, out);
    decoded.map_err(|reason| Damage::RecordContent { reason })
}

impl Worker {
    fn expand(
        &mut self,
        records: &[Record],
        payloads: &[u8],
        mut out: &mut [u8],
        mut begins: u64,
    ) -> Vec<Finding> {
        let mut findings = Vec::new();
        for record in records {
            let inside = record.bytes.min(out.len());
            let (block, rest) = std::mem::take(&mut out).split_at_mut(inside);
            out = rest;
            let payload = payloads.get(record.payload.clone()).unwrap_or_default();
            let place = Place {
                stream: begins,
                file: record.file,
            };
            begins += record.bytes as u64;
            let (found, expected) = (record.checksum, record_checksum(payload));
            if found != expected {
                let damage = Damage::RecordChecksum { expected, found };
                findings.push(Finding { place, damage });
            }
            if let Err(reason) = self.decode(payload, block) {
                block.fill(0);
                let damage = Damage::RecordContent { reason };
                findings.push(Finding { place, damage });
            }
        }
        findings
    }

    /// Expands a payload, and returns its algorithm: a Zstandard frame names itself, `MS_XPRESS` begins with a
    /// complete Huffman table, and what is neither may be a stream of DEFLATE of exactly the right length.
    fn decode(&mut self, payload: &[u8], block: &mut [u8]) -> Result<Algorithm, String> {
        let named = algorithm_of(payload);
        let damage = match named {
            Some(_) => None,
            None => match self.xpress.decode_block(payload, block) {
                Ok(()) => return Ok(Algorithm::MsXpress),
                Err(damage) => Some(damage.to_string()),
            },
        };
        let algorithm = named.unwrap_or(Algorithm::QatDeflate);
        match self.others.decode(algorithm, Filter::NONE, payload, block) {
            Ok(()) => Ok(algorithm),
            Err(error) => Err(damage.unwrap_or_else(|| error.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records, their payloads, and what they expand to.
    fn batch(count: usize) -> (Vec<Record>, Vec<u8>, Vec<u8>) {
        use windlass_codec::{Compression, Encoder, Stored};

        let (mut records, mut payloads, mut plain) = (Vec::new(), Vec::new(), Vec::new());
        let mut encoder = Encoder::new(Compression::ZSTD_LOW, 4096).unwrap();
        for number in 0..count {
            let bytes = 512 * (1 + number % 8);
            let content = vec![number as u8; bytes];
            let mut payload = vec![0; bytes];
            let Stored::Compressed {
                bytes: length,
                filter: Filter::NONE,
            } = encoder.encode(&content, &mut payload).unwrap()
            else {
                panic!("it shrinks");
            };
            payload.truncate(length);
            records.push(Record {
                file: 1000 + number as u64,
                checksum: record_checksum(&payload),
                payload: payloads.len()..payloads.len() + length,
                bytes,
            });
            payloads.extend(payload);
            plain.extend(content);
        }
        (records, payloads, plain)
    }

    #[test]
    fn every_number_of_threads_expands_the_same_and_finds_the_same_in_order() {
        for count in [0, 1, 3, 4, 7, 8, 64, 65] {
            let (mut records, payloads, plain) = batch(count);
            for damaged in [2, 5, 60] {
                if let Some(record) = records.get_mut(damaged) {
                    record.checksum ^= 1;
                }
            }
            let mut expected = None;
            for threads in 1..=5 {
                let mut workers = Workers {
                    threads,
                    made: Vec::new(),
                };
                let (mut out, mut findings) = (vec![0xFF; plain.len()], Vec::new());
                workers.expand(&records, &payloads, &mut out, &mut findings);
                assert!(out == plain, "{count} records, {threads} threads");
                let places: Vec<Place> = findings.iter().map(|found| found.place).collect();
                assert!(places.is_sorted());
                assert_eq!(*expected.get_or_insert(findings.clone()), findings);
            }
            let found = expected.map_or(0, |findings| findings.len());
            assert_eq!(found, [2, 5, 60].iter().filter(|at| **at < count).count());
        }
    }
}
