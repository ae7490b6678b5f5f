//! Gives an object its name, and finds out who has it then.

use std::io;

use bytes::Bytes;
use object_store::{ObjectStore as _, PutOptions, PutPayload};

use super::{Earlier, ObjectWriter, State, wait};
use crate::object::again::{Failed, repeated};
use crate::object::condition::Condition;
use crate::object::{Found, found};

/// Whose object has the name.
pub(super) enum Holder {
    Ours(Found),
    /// Ours, of which the store has lost something.
    Short(Found),
    /// Still the one that is to be replaced.
    Earlier,
    Another,
    Nobody,
}

impl ObjectWriter {
    /// Completes the object, after another look if it `is_one_of_several`: the others took a while since the first. That it
    /// has the name is seen, not taken from the answer, if the key may look.
    pub(super) fn take_object_name(&mut self, is_one_of_several: bool) -> io::Result<()> {
        if is_one_of_several {
            self.check_earlier()?;
        }
        let completed = self.complete();
        if self.address.is_write_only() {
            return self.take_unseen(completed);
        }
        let holder = match completed {
            Ok(()) => self.seen()?,
            Err(error) => match self.holder() {
                Ok(own @ (Holder::Ours(_) | Holder::Short(_))) => own,
                _ if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(Holder::Nobody) => return Err(raced(&error)),
                Ok(Holder::Earlier) => return Err(kept(&error)),
                Ok(Holder::Another) | Err(_) => Holder::Another,
            },
        };
        match holder {
            Holder::Ours(_) => {}
            Holder::Short(found) => return Err(self.take_back(&found)),
            _ if matches!(self.earlier, Earlier::Excluded) => return Err(taken()),
            _ => return Err(came_meanwhile()),
        }
        self.state = State::Named;
        self.upload = None;
        if let Some(claim) = self.claim.take() {
            claim.release();
        }
        self.address.check_lock()
    }

    /// Refuses to replace another object than the one that was found when the run began. Where there must be none, the
    /// condition of the completion tells, or the claim.
    pub(super) fn check_earlier(&mut self) -> io::Result<()> {
        let earlier = match &self.earlier {
            Earlier::Excluded => return Ok(()),
            _ if self.address.is_write_only() => return Ok(()),
            Earlier::Absent => None,
            Earlier::Replaced(found) => Some(found.clone()),
        };
        match (earlier, self.look()?) {
            (None, None) => Ok(()),
            (Some(earlier), Some(now)) if now.is_same(&earlier) => Ok(()),
            (Some(_), None) => {
                self.earlier = Earlier::Absent;
                Ok(())
            }
            (_, Some(_)) => Err(came_meanwhile()),
        }
    }

    /// On which the object may get its name; `None` if the store cannot be told.
    fn wanted(&self) -> Option<Condition> {
        let kind = self.address.url.kind();
        let condition = match &self.earlier {
            Earlier::Excluded => return Some(Condition::absent(kind)),
            _ if self.address.is_write_only() => None,
            Earlier::Absent => Some(Condition::absent(kind)),
            Earlier::Replaced(found) => Condition::still(kind, found),
        };
        condition.map(Condition::dispensable)
    }

    /// Lets the object appear.
    fn complete(&mut self) -> io::Result<()> {
        if let Some(condition) = self.wanted() {
            self.condition.get_or_init(|| condition);
        }
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
            attributes: self.attributes(),
            tags: self.address.settings.tag_set(),
            ..PutOptions::default()
        };
        let store = self.address.conditional(&self.condition)?;
        let payload = PutPayload::from_bytes(Bytes::from(memory));
        let key = self.address.key()?;
        wait(store.put_opts(&key, payload, options)).map(drop)
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
        let Some(now) = self.look()? else {
            return Ok(Holder::Nobody);
        };
        if now.write_id.as_deref() == Some(self.write_id.as_str()) {
            return Ok(match now.bytes == self.position {
                true => Holder::Ours(now),
                false => Holder::Short(now),
            });
        }
        Ok(match &self.earlier {
            Earlier::Replaced(earlier) if now.is_same(earlier) => Holder::Earlier,
            _ => Holder::Another,
        })
    }

    /// Who has the name after a completion that the store has confirmed: not every store shows the object at once.
    fn seen(&self) -> io::Result<Holder> {
        repeated(|| match self.holder() {
            Ok(Holder::Nobody) => Err(Failed::Passing(vanished())),
            Ok(Holder::Earlier) => Err(Failed::Passing(without_effect())),
            Ok(holder) => Ok(holder),
            Err(error) => Err(Failed::ForGood(io::Error::new(
                error.kind(),
                format!("the object was completed, but not found again: {error}"),
            ))),
        })
    }

    /// Takes back an object of which the store has lost something; returns what to say.
    fn take_back(&self, found: &Found) -> io::Error {
        let (has, of) = (found.bytes, self.position);
        let state = match self.address.delete_found(found) {
            Ok(_) => "it has been deleted again".to_owned(),
            Err(error) => format!("it could not be deleted ({error})"),
        };
        let earlier = match self.earlier {
            Earlier::Replaced(_) => ", and the object that it replaced is gone",
            Earlier::Excluded | Earlier::Absent => "",
        };
        io::Error::other(format!(
            "the store has {has} of the {of} bytes of the object that it was sent: a part was lost there, so that it is no \
             backup; {state}{earlier}. Make the backup again"
        ))
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

/// A refusal although the object that is to be replaced is still there.
fn kept(error: &io::Error) -> io::Error {
    io::Error::other(format!(
        "{error}; the earlier object still has that name. Make the backup again"
    ))
}

/// A completion that was confirmed, while the object to be replaced stays.
fn without_effect() -> io::Error {
    io::Error::other(
        "the store has confirmed the object, and still has the earlier one of this name. Make the backup again",
    )
}

/// A completion that was confirmed, of which nothing is there.
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

/// The object that another program put there while this one was made, over what was found or where there was none.
fn came_meanwhile() -> io::Error {
    let reason = "another object has been put there in the meantime, and is kept: only what was there at the beginning is \
                  replaced. See whose it is; then try again, or name another one";
    io::Error::new(io::ErrorKind::AlreadyExists, reason)
}
