//! Writes a media family as one object.
//!
//! Bytes are gathered in buffers of one part, which are sent while the next one fills. What fits one part is one
//! request. The last part is sent before anything gets its name, and the end of the set is in it.
//!
//! The answer to a completion can be lost, and a repeated completion then looks like a refusal. So each run
//! gives its object an id, and afterwards looks whose object has the name.
//!
//! An object replaces the one that was found when the run began, and no other: there is a look before the first of several
//! gets its name, one more before each, and the completion has the condition, where the store knows any.

mod completion;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};
use object_store::{
    Attribute, Attributes, MultipartUpload, ObjectStore as _, PutMultipartOptions, PutPayload,
};
use tokio::task::JoinHandle;
use windlass_io::PooledBuffer;

use super::claim::Claim;
use super::condition::Decided;
use super::part::Part;
use super::store::runtime;
use super::url::StoreKind;
use super::{Found, ObjectAddress, failure};
use crate::error::{Error, Operation};
use crate::{DeviceWriter, Start, WriteCounters, WriteTuning};
use completion::{Holder, taken};

/// Shortest part of an upload but the last.
const PART_BYTES_MIN: usize = 5 << 20;

/// Longest part.
const PART_BYTES_MAX: usize = 5 << 30;

/// Most parts of an upload.
pub const PARTS_MAX: u32 = 10_000;

/// How long a failed run waits for its upload to be aborted.
const ABORT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a buffer is waited for that the network layer has not let go of.
const BUFFER_TIMEOUT: Duration = Duration::from_millis(500);

/// Where the id of the run is kept with the object.
pub(super) fn write_id_attribute(kind: StoreKind) -> Attribute {
    Attribute::Metadata(match kind {
        // Names of Azure's metadata are identifiers of C#.
        StoreKind::Azure => "windlass_write_id".into(),
        StoreKind::S3 | StoreKind::Google => "windlass-write-id".into(),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Writing,
    /// Everything but the completion is done.
    Prepared,
    Named,
    Settled,
    Failed,
}

/// An earlier object of the name.
#[derive(Debug, Clone)]
enum Earlier {
    /// There must be none, until the end.
    Excluded,
    /// There was none, or it has been deleted since.
    Absent,
    /// It is lost when this one gets the name.
    Replaced(Found),
}

/// Writes one object.
#[derive(Debug)]
pub(crate) struct ObjectWriter {
    address: ObjectAddress,
    name: String,
    earlier: Earlier,
    write_id: String,
    part_bytes: usize,
    depth: usize,
    gathering: Vec<u8>,
    gathers_data: bool,
    position: u64,
    spare: (Sender<Vec<u8>>, Receiver<Vec<u8>>),
    /// Buffers made, with the one that is gathering.
    buffers: usize,
    upload: Option<Box<dyn MultipartUpload>>,
    claim: Option<Claim>,
    /// On which the object gets its name.
    condition: Decided,
    parts: u32,
    done: (
        Sender<object_store::Result<()>>,
        Receiver<object_store::Result<()>>,
    ),
    /// Parts that have not been answered.
    sending: Vec<JoinHandle<()>>,
    in_flight: usize,
    counters: WriteCounters,
    state: State,
}

impl ObjectWriter {
    pub(crate) fn open(
        address: &ObjectAddress,
        name: &str,
        start: Start,
        tuning: WriteTuning,
    ) -> Result<Self, Error> {
        let fail = |error: io::Error| Error::new(Operation::Open, name, error);
        if let Start::Append { .. } = start {
            let reason =
                "an object cannot be appended to; use FORMAT to overwrite it, or name another one";
            return Err(fail(io::Error::new(io::ErrorKind::Unsupported, reason)));
        }
        let earlier = match &address.listed {
            Some(listed) => Some(listed.clone()),
            None => address.found().map_err(fail)?,
        };
        let earlier = match (start, earlier) {
            (Start::Create, None) => Earlier::Excluded,
            (Start::Create, Some(_)) => return Err(fail(taken())),
            (_, None) => Earlier::Absent,
            (_, Some(found)) => Earlier::Replaced(found),
        };
        let part_bytes = tuning.part_bytes.clamp(PART_BYTES_MIN, PART_BYTES_MAX);
        Ok(Self {
            address: address.clone(),
            name: name.to_owned(),
            earlier,
            write_id: windlass_base::Guid::random().to_string(),
            part_bytes,
            depth: tuning.depth.max(1),
            // Memory that is not used is not taken.
            gathering: Vec::with_capacity(part_bytes),
            gathers_data: false,
            position: 0,
            spare: crossbeam_channel::unbounded(),
            buffers: 1,
            upload: None,
            claim: None,
            condition: Decided::default(),
            parts: 0,
            done: crossbeam_channel::unbounded(),
            sending: Vec::new(),
            in_flight: 0,
            counters: WriteCounters::default(),
            state: State::Writing,
        })
    }

    fn failed(&mut self, error: io::Error) -> Error {
        self.state = State::Failed;
        Error::new(Operation::Write, &self.name, error)
    }

    fn check_usable(&self) -> Result<(), Error> {
        if self.state == State::Failed {
            let earlier = io::Error::other("an earlier write to this device failed");
            return Err(Error::new(Operation::Write, &self.name, earlier));
        }
        Ok(())
    }

    fn attributes(&self) -> Attributes {
        let class = self.address.settings.storage_class.clone();
        let class = class.map(|class| (Attribute::StorageClass, class));
        let kind = self.address.url.kind();
        let own = (write_id_attribute(kind), self.write_id.clone());
        std::iter::once(own).chain(class).collect()
    }

    fn gather(&mut self, bytes: &[u8], are_data: bool) -> Result<(), Error> {
        self.check_usable()?;
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.gathering.len() == self.part_bytes {
                self.send()?;
            }
            let count = rest.len().min(self.part_bytes - self.gathering.len());
            self.gathering.extend_from_slice(&rest[..count]);
            self.gathers_data |= are_data;
            self.position += count as u64;
            rest = &rest[count..];
        }
        Ok(())
    }

    /// Waits for an answer; `false` if none is awaited.
    fn complete_one(&mut self) -> Result<bool, Error> {
        if self.in_flight == 0 {
            return Ok(false);
        }
        let (begun, in_flight) = (Instant::now(), self.in_flight as u32);
        // The writer itself has a sender, so that there is one.
        let answer = self.done.1.recv();
        let waited = begun.elapsed();
        self.counters.busy += waited;
        self.counters.in_flight += waited * in_flight;
        self.in_flight -= 1;
        self.sending.retain(|part| !part.is_finished());
        match answer {
            Ok(Ok(())) => Ok(true),
            Ok(Err(error)) => Err(self.failed(failure::reported(&error))),
            Err(lost) => Err(self.failed(io::Error::other(lost))),
        }
    }

    /// An empty buffer for the next part.
    fn fresh(&mut self) -> Vec<u8> {
        let wanted = self.depth + 1;
        let spare = match self.spare.1.try_recv() {
            Ok(spare) => Some(spare),
            Err(_) if self.buffers < wanted => None,
            Err(_) => self.spare.1.recv_timeout(BUFFER_TIMEOUT).ok(),
        };
        let mut memory = spare.unwrap_or_else(|| {
            self.buffers += 1;
            Vec::new()
        });
        memory.clear();
        memory.reserve_exact(self.part_bytes);
        memory
    }

    /// Starts sending the gathered bytes as the next part.
    fn send(&mut self) -> Result<(), Error> {
        if self.parts == PARTS_MAX {
            let reason = format!(
                "the object has {PARTS_MAX} parts of {} MB, the most that a store takes; use more \
                 stripes, or a larger MAXTRANSFERSIZE",
                self.part_bytes >> 20
            );
            return Err(self.failed(io::Error::new(io::ErrorKind::FileTooLarge, reason)));
        }
        while self.in_flight >= self.depth {
            self.complete_one()?;
        }
        let mut upload = match self.upload.take() {
            Some(upload) => upload,
            None => self.begin()?,
        };
        let fresh = self.fresh();
        let memory = std::mem::replace(&mut self.gathering, fresh);
        let holds_data = std::mem::take(&mut self.gathers_data);
        self.counters.count(memory.len() as u64, holds_data);
        let back = self.spare.0.clone();
        let payload = PutPayload::from_bytes(Bytes::from_owner(Part { memory, back }));
        let part = upload.put_part(payload);
        self.upload = Some(upload);
        self.parts += 1;
        let done = self.done.0.clone();
        let runtime = runtime().map_err(|error| self.failed(error))?;
        self.sending.push(runtime.spawn(async move {
            let answer = part.await;
            // The writer may be gone.
            let _sent = done.send(answer);
        }));
        self.in_flight += 1;
        Ok(())
    }

    fn begin(&mut self) -> Result<Box<dyn MultipartUpload>, Error> {
        let is_excluded = matches!(self.earlier, Earlier::Excluded);
        if self.address.url.kind() == StoreKind::Google && is_excluded {
            let claim = Claim::take(&self.address, &self.write_id);
            self.claim = Some(claim.map_err(|error| self.failed(error))?);
        }
        let options = PutMultipartOptions {
            tags: self.address.settings.tag_set(),
            attributes: self.attributes(),
            ..PutMultipartOptions::default()
        };
        let store = self.address.conditional(&self.condition);
        let begun = store.and_then(|store| {
            let key = self.address.key()?;
            wait(store.put_multipart_opts(&key, options))
        });
        begun.map_err(|error| self.failed(error))
    }

    /// Gives up what is not complete, as far as the store can be reached.
    fn abort(&mut self) {
        for part in self.sending.drain(..) {
            part.abort();
        }
        if let (Some(mut upload), Ok(runtime)) = (self.upload.take(), runtime()) {
            // What is left is invisible, and removed by the rule for unfinished uploads of the bucket.
            let _aborted = runtime
                .block_on(async { tokio::time::timeout(ABORT_TIMEOUT, upload.abort()).await });
        }
        if let Some(claim) = self.claim.take() {
            claim.release();
        }
    }
}

/// Runs a request on the threads for the network and waits for it.
fn wait<T>(request: impl Future<Output = object_store::Result<T>>) -> io::Result<T> {
    let answer = runtime()?.block_on(request);
    answer.map_err(|error| failure::reported(&error))
}

impl DeviceWriter for ObjectWriter {
    fn position(&self) -> u64 {
        self.position
    }

    fn append_blocks(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.gather(bytes, false)
    }

    fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.gather(bytes, true)
    }

    fn append_in_place(&mut self, buffer: &Arc<PooledBuffer>, bytes: usize) -> Result<(), Error> {
        self.append(&buffer[..bytes])
    }

    /// Waits for the parts that were sent. The last one is short and cannot be sent before it is the last.
    fn sync(&mut self) -> Result<(), Error> {
        while self.complete_one()? {}
        self.check_usable()
    }

    /// Nothing is visible before the completion, which follows everything.
    fn barrier(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), Error> {
        self.check_usable()?;
        if self.upload.is_some() && !self.gathering.is_empty() {
            self.send()?;
        }
        self.sync()?;
        let checked = self.check_earlier();
        checked.map_err(|error| Error::new(Operation::Rename, &self.name, error))?;
        self.state = State::Prepared;
        Ok(())
    }

    /// An earlier object is never kept; that it is to be kept tells that there are several.
    fn take_name(&mut self, keeps_earlier: bool) -> Result<(), Error> {
        let fail = |writer: &Self, error| Error::new(Operation::Rename, &writer.name, error);
        self.take_object_name(keeps_earlier)
            .map_err(|error| fail(self, error))
    }

    fn is_named_at_once(&self) -> bool {
        !matches!(self.earlier, Earlier::Replaced(_))
    }

    fn give_back_name(&mut self) -> bool {
        let own = match self.holder() {
            Ok(Holder::Ours(_)) if matches!(self.earlier, Earlier::Replaced(_)) => return false,
            Ok(Holder::Ours(own) | Holder::Short(own)) => own,
            // It has not got the name, or another run has overwritten it.
            Ok(Holder::Earlier | Holder::Another | Holder::Nobody) => return true,
            Err(_) => return self.state != State::Named,
        };
        let removed = self.address.delete_found(&own);
        if removed.is_ok() {
            self.state = State::Prepared;
        }
        removed.is_ok()
    }

    fn keep(mut self: Box<Self>) -> Option<String> {
        let is_named = self.state == State::Named;
        if is_named {
            self.state = State::Settled;
        }
        is_named.then(|| self.name.clone())
    }

    fn settle(mut self: Box<Self>) {
        self.state = State::Settled;
    }

    fn counters(&self) -> WriteCounters {
        self.counters
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if self.state != State::Settled {
            self.abort();
        }
    }
}
