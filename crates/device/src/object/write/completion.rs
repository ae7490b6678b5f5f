//! Gives an object its name, and finds out who has it then.

use std::io;

use bytes::Bytes;
use object_store::{ObjectStore as _, PutMode, PutOptions, PutPayload};

use super::{Earlier, ObjectWriter, State, wait};
use crate::object::again::{Failed, repeated};
use crate::object::{Found, found};

/// Whose object has the name.
pub(super) enum Holder {
    Ours(Found),
    Another,
    Nobody,
}

impl ObjectWriter {
    /// Completes the object. That it has the name is seen, not taken from the answer, if the key may look.
    pub(super) fn take_object_name(&mut self) -> io::Result<()> {
        let completed = self.complete();
        if self.address.is_write_only() {
            return self.take_unseen(completed);
        }
        let is_named = match completed {
            Ok(()) => self.is_seen()?,
            Err(error) => match self.holder() {
                Ok(Holder::Ours(_)) => true,
                _ if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(Holder::Nobody) => return Err(raced(&error)),
                Ok(Holder::Another) | Err(_) => false,
            },
        };
        if !is_named {
            return Err(taken());
        }
        self.state = State::Named;
        self.upload = None;
        if let Some(claim) = self.claim.take() {
            claim.release();
        }
        self.address.check_lock()
    }

    /// Lets the object appear.
    fn complete(&mut self) -> io::Result<()> {
        if let Some(mut upload) = self.upload.take() {
            if self.claim.is_some() && self.look()?.is_some() {
                self.upload = Some(upload);
                return Err(taken());
            }
            let completed = wait(upload.complete());
            if completed.is_err() {
                // To be aborted, if it was not completed in spite of the answer.
                self.upload = Some(upload);
            }
            return completed.map(drop);
        }
        let memory = std::mem::take(&mut self.gathering);
        self.counters.count(memory.len() as u64, self.gathers_data);
        let options = PutOptions {
            mode: match self.earlier == Earlier::Excluded {
                true => PutMode::Create,
                false => PutMode::Overwrite,
            },
            attributes: self.attributes(),
            tags: self.address.settings.tag_set(),
            ..PutOptions::default()
        };
        let stores = self.address.stores()?;
        let payload = PutPayload::from_bytes(Bytes::from(memory));
        let key = self.address.key()?;
        wait(stores.patient.put_opts(&key, payload, options)).map(drop)
    }

    /// The object that has the name now.
    fn look(&self) -> io::Result<Option<Found>> {
        let stores = self.address.stores()?;
        found(
            &self.address.key()?,
            &*stores.patient,
            self.address.url.kind(),
        )
    }

    pub(super) fn holder(&self) -> io::Result<Holder> {
        let is_own = |now: &Found| {
            now.write_id.as_deref() == Some(&self.write_id) && now.bytes == self.position
        };
        Ok(match self.look()? {
            Some(now) if is_own(&now) => Holder::Ours(now),
            Some(_) => Holder::Another,
            None => Holder::Nobody,
        })
    }

    /// Whether the object that has the name is the one of a completion that the store has confirmed: not every store shows it
    /// at once.
    fn is_seen(&self) -> io::Result<bool> {
        repeated(|| match self.holder() {
            Ok(Holder::Ours(_)) => Ok(true),
            Ok(Holder::Another) => Ok(false),
            Ok(Holder::Nobody) => Err(Failed::Passing(vanished())),
            Err(error) => Err(Failed::ForGood(io::Error::new(
                error.kind(),
                format!("the object was completed, but not found again: {error}"),
            ))),
        })
    }

    /// Believes the store's answer: the key may not look.
    fn take_unseen(&mut self, completed: io::Result<()>) -> io::Result<()> {
        match completed {
            Ok(()) => {
                self.state = State::Named;
                self.upload = None;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let reason = "there is an object of this name already: another backup, or this one, if an answer of the \
                              store was lost. A key that may only write cannot tell; look with another one";
                Err(io::Error::new(error.kind(), reason))
            }
            Err(error) => Err(error),
        }
    }
}

/// A refusal because of an object that is not there: that of another request which was being done.
fn raced(error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "{error}; no object has that name now: another request for it was under way, or it has been deleted \
         since. Make the backup again"
    ))
}

/// A completion that was confirmed, and has no effect.
fn vanished() -> io::Error {
    io::Error::other(
        "the store has confirmed the object, and has none of this name: it was lost there, or somebody has deleted it. Make \
         the backup again",
    )
}

pub(super) fn taken() -> io::Error {
    let reason = "another object has been put there in the meantime; use FORMAT to overwrite it, or name \
                  another one";
    io::Error::new(io::ErrorKind::AlreadyExists, reason)
}
