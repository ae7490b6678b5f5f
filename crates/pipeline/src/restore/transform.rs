//! Second stage of a restore or verification: turns chunks back into frames, or rejects them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crossbeam_channel::{Receiver, Sender};
use windlass_base::{blake3, checksum};
use windlass_codec::{Algorithm, Decoder, Filter};
use windlass_crypt::SetKey;
use windlass_io::{BufferPool, PooledBuffer};
use windlass_media::{ChunkHeader, Run};

use super::read::StoredChunk;
use crate::control::{Control, timed};
use crate::coverage::{Coverage, Refusal};
use crate::error::{Damage, Error};
use crate::fault::FaultPoint;
use crate::live::Meter;
use crate::report::{DamagedChunks, Stage, StageCounters};
use crate::request::OnDamage;
use crate::sealing;
use crate::totals::Totals;

/// A verified range of the database.
#[derive(Debug)]
pub(super) struct Restored {
    pub(super) file_id: u16,
    pub(super) runs: Vec<Run>,
    pub(super) bytes: PooledBuffer,
}

/// What the transform threads share.
pub(super) struct Transform<'a> {
    pub(super) output: &'a BufferPool,
    /// The key of an encrypted set.
    pub(super) key: Option<&'a SetKey>,
    /// Whether the chunks of an encrypted set are checked without decrypting them.
    pub(super) is_sealed: bool,
    /// Whether each payload must match the digest in its signed header.
    pub(super) is_signed: bool,
    pub(super) on_damage: OnDamage,
    pub(super) seen: Seen,
}

/// The chunks seen so far, one bit per chunk of the set, and their totals.
#[derive(Debug)]
pub(super) struct Seen {
    expected: u64,
    ordinals: Mutex<Vec<u64>>,
    pub(super) totals: Totals,
    damaged: Mutex<DamagedChunks>,
    /// Families whose chunk headers are those that were signed.
    signed_families: AtomicUsize,
}

impl Seen {
    /// For a set of `expected` chunks; the caller has checked that this many fit on the media.
    pub(super) fn new(expected: u64) -> Self {
        let words = usize::try_from(expected.div_ceil(64)).unwrap_or(0);
        Self {
            expected,
            ordinals: Mutex::new(vec![0; words]),
            totals: Totals::default(),
            damaged: Mutex::default(),
            signed_families: AtomicUsize::new(0),
        }
    }

    pub(super) fn note_signed_family(&self) {
        self.signed_families.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn signed_families(&self) -> usize {
        self.signed_families.load(Ordering::Relaxed)
    }

    fn mark(&self, ordinal: u64) -> Result<(), Damage> {
        let unexpected = Damage::UnexpectedChunk {
            ordinal,
            count: self.expected,
        };
        if ordinal >= self.expected {
            return Err(unexpected);
        }
        let mut ordinals = self.ordinals.lock().unwrap_or_else(PoisonError::into_inner);
        let bit = 1 << (ordinal % 64);
        match ordinals.get_mut((ordinal / 64) as usize) {
            Some(word) if *word & bit == 0 => {
                *word |= bit;
                Ok(())
            }
            _ => Err(unexpected),
        }
    }

    /// Removes a mark set by this thread.
    fn unmark(&self, ordinal: u64) {
        let mut ordinals = self.ordinals.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(word) = ordinals.get_mut((ordinal / 64) as usize) {
            *word &= !(1 << (ordinal % 64));
        }
    }

    /// Records a chunk whose header is readable and whose payload is not.
    fn record(&self, device: &str, header: &ChunkHeader, damage: Damage, coverage: &Coverage) {
        // Its content is damaged, not missing. A chunk already seen stays seen.
        let is_new = self.mark(header.ordinal).is_ok();
        let is_first = coverage
            .lose(header.kind, header.file_id, &header.runs)
            .is_ok();
        let mut damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        damaged.count += 1;
        damaged.known += u64::from(is_new);
        if is_first {
            coverage.name(header.file_id, &header.runs, &mut damaged.ranges);
        }
        damaged
            .first
            .get_or_insert_with(|| (device.to_owned(), damage));
    }

    /// Takes the recorded damage; called when all threads have finished.
    pub(super) fn damaged(&self) -> DamagedChunks {
        std::mem::take(&mut *self.damaged.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Transform<'_> {
    /// Verifies and decodes chunks until the queue is closed; passes good ones to `restored`, if
    /// present. One call per thread.
    pub(super) fn run(
        &self,
        chunks: &Receiver<StoredChunk>,
        restored: Option<&Sender<Restored>>,
        control: &Control<'_>,
    ) -> Result<StageCounters, Error> {
        let mut meter = Meter::begin(&control.live, Stage::Transform);
        let mut decoder = Decoder::new();
        while !control.is_stopped() {
            let Ok(chunk) = timed(&mut meter.counters.wait_input, || chunks.recv()) else {
                break;
            };
            if !control.goes_on(FaultPoint::RestoreTransform)? {
                break;
            }
            let (raw_bytes, stored_bytes) = (
                u64::from(chunk.header.raw_bytes),
                u64::from(chunk.header.stored_bytes),
            );
            meter.counters.calls += 1;
            meter.counters.bytes_in += stored_bytes;
            meter.counters.bytes_out += raw_bytes;
            // Uncompressed chunks need no decoding buffer.
            let output = match chunk.header.codec == Algorithm::None.id() {
                true => None,
                false => match timed(&mut meter.counters.wait_output, || self.output.take()) {
                    Some(buffer) => Some(buffer),
                    None => break,
                },
            };
            let frame = timed(&mut meter.counters.busy, || {
                self.examine(chunk, output, &mut decoder, &control.coverage)
            })?;
            if let (Some(sender), Some(frame)) = (restored, frame)
                && timed(&mut meter.counters.wait_output, || {
                    sender.send(frame).is_err()
                })
            {
                break;
            }
            meter.announce();
            control.advance(raw_bytes, stored_bytes);
        }
        Ok(meter.end())
    }

    /// Verifies and accounts for a chunk; `None` if it is damaged and damage is tolerated.
    fn examine(
        &self,
        chunk: StoredChunk,
        output: Option<PooledBuffer>,
        decoder: &mut Decoder,
        coverage: &Coverage,
    ) -> Result<Option<Restored>, Error> {
        let StoredChunk {
            header,
            payload,
            offset,
            device,
        } = chunk;
        let decoded = self.decode(&header, payload, offset, output, decoder);
        let accounted = decoded.and_then(|bytes| {
            self.account(&header, offset, coverage)?;
            Ok(bytes)
        });
        match (accounted, self.on_damage) {
            (Ok(bytes), _) => Ok(Some(Restored {
                file_id: header.file_id,
                runs: header.runs,
                bytes,
            })),
            (Err(damage), OnDamage::Stop) => Err(Error::SetDamaged {
                device: device.to_string(),
                damage,
            }),
            (Err(damage), OnDamage::Continue) => {
                self.seen.record(&device, &header, damage, coverage);
                Ok(None)
            }
        }
    }

    /// Verifies a chunk and returns its raw bytes. `output` receives decompressed data.
    pub(super) fn decode(
        &self,
        header: &ChunkHeader,
        mut payload: PooledBuffer,
        offset: u64,
        output: Option<PooledBuffer>,
        decoder: &mut Decoder,
    ) -> Result<PooledBuffer, Damage> {
        let ordinal = header.ordinal;
        let stored = &mut payload[..header.stored_bytes as usize];
        compare(
            ordinal,
            offset,
            "stored",
            checksum(stored),
            header.stored_checksum,
        )?;
        if self.is_signed && header.payload_digest != Some(blake3(stored)) {
            return Err(Damage::UnsignedPayload { ordinal, offset });
        }
        if self.is_sealed {
            return match header.tag.is_some() {
                true => Ok(payload),
                false => Err(Damage::Unauthentic { ordinal, offset }),
            };
        }
        let raw_checksum = sealing::open(self.key, header, stored, offset)?;
        let bytes = match output {
            None => payload,
            Some(mut output) => {
                let raw = &mut output[..header.raw_bytes as usize];
                let (algorithm, filter) = method(header, offset)?;
                decoder
                    .decode(algorithm, filter, stored, raw)
                    .map_err(|reason| Damage::Undecodable {
                        ordinal,
                        offset,
                        reason,
                    })?;
                output
            }
        };
        let raw = bytes
            .get(..header.raw_bytes as usize)
            .ok_or(Damage::ForeignChunk { ordinal, offset })?;
        compare(ordinal, offset, "uncompressed", checksum(raw), raw_checksum)?;
        Ok(bytes)
    }

    /// Accounts for an intact chunk: its number and its content must be new.
    pub(super) fn account(
        &self,
        header: &ChunkHeader,
        offset: u64,
        coverage: &Coverage,
    ) -> Result<(), Damage> {
        let ordinal = header.ordinal;
        self.seen.mark(ordinal)?;
        let held = coverage.hold(header.kind, header.file_id, &header.runs);
        held.map_err(|refusal| {
            self.seen.unmark(ordinal);
            match refusal {
                Refusal::Twice => Damage::Overlap { ordinal, offset },
                Refusal::Misplaced => Damage::ForeignChunk { ordinal, offset },
            }
        })?;
        self.seen.totals.count(header);
        Ok(())
    }
}

/// How a chunk was compressed. The numbers are covered by a checksum: one that is not known is not rot.
fn method(header: &ChunkHeader, offset: u64) -> Result<(Algorithm, Filter), Damage> {
    let unknown = |part, number| Damage::UnknownMethod {
        ordinal: header.ordinal,
        offset,
        part,
        number,
    };
    let algorithm = Algorithm::from_id(header.codec);
    let filter = Filter::from_id(header.filter);
    Ok((
        algorithm.ok_or(unknown("codec", header.codec.into()))?,
        filter.ok_or(unknown("filter", header.filter))?,
    ))
}

fn compare(
    ordinal: u64,
    offset: u64,
    part: &'static str,
    found: u64,
    expected: u64,
) -> Result<(), Damage> {
    if found == expected {
        Ok(())
    } else {
        Err(Damage::Checksum {
            ordinal,
            offset,
            part,
            found,
            expected,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_a_set_is_seen_once_and_can_be_taken_back_alone() {
        let seen = Seen::new(130);
        for ordinal in [0, 63, 64, 65, 128, 129] {
            seen.mark(ordinal).unwrap();
        }
        for ordinal in [0, 63, 64, 65, 128, 129, 130, 192, u64::MAX] {
            let again = seen.mark(ordinal);
            let is_refused = matches!(
                again,
                Err(Damage::UnexpectedChunk { ordinal: reported, count: 130 }) if reported == ordinal
            );
            assert!(is_refused, "{ordinal}");
        }
        seen.unmark(64);
        seen.unmark(129);
        for ordinal in [0, 63, 65, 128] {
            assert!(seen.mark(ordinal).is_err(), "{ordinal} was not taken back");
        }
        for ordinal in [64, 129] {
            seen.mark(ordinal).unwrap();
            assert!(seen.mark(ordinal).is_err());
        }
    }
}
