//! Object lock: what a store keeps from being deleted or replaced, whoever asks.

use std::fmt;
use std::io;

use http::{HeaderMap, Method, StatusCode};
use jiff::Timestamp;

use super::settings::{LockMode, ObjectLock};
use super::signed::{Answer, ask, coded_path, elements, put};
use super::url::StoreKind;
use super::{ObjectAddress, failure};

/// A lock that an object has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Locked {
    /// The mode, and until when: seconds since 1970, UTC.
    pub retention: Option<(LockMode, i64)>,
    pub legal_hold: bool,
}

impl Locked {
    /// Whether it holds at a time, in seconds since 1970.
    fn holds(&self, now: i64) -> bool {
        self.legal_hold || self.retention.is_some_and(|(_, until)| until > now)
    }

    fn has(&self, wanted: &ObjectLock, now: i64) -> bool {
        /// Between the clocks of the two machines.
        const TOLERANCE_SECONDS: i64 = 3600;
        let is_held = !wanted.legal_hold || self.legal_hold;
        let is_retained = wanted.retention.is_none_or(|(_, days)| {
            let least = now + i64::from(days) * 86_400 - TOLERANCE_SECONDS;
            // The bucket's own rule may be longer, and stricter.
            self.retention.is_some_and(|(_, until)| until >= least)
        });
        is_held && is_retained
    }

    fn of_headers(headers: &HeaderMap) -> Option<Self> {
        let value = |name: &str| headers.get(name)?.to_str().ok();
        let mode = value("x-amz-object-lock-mode").and_then(LockMode::of_word);
        let until = value("x-amz-object-lock-retain-until-date").and_then(seconds);
        let found = Self {
            retention: mode.zip(until),
            legal_hold: value("x-amz-object-lock-legal-hold") == Some("ON"),
        };
        (found.retention.is_some() || found.legal_hold).then_some(found)
    }
}

impl fmt::Display for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.retention {
            Some((mode, until)) => {
                let until = Timestamp::from_second(until).unwrap_or(Timestamp::MAX);
                write!(f, "locked until {until} ({})", mode.word())?;
                match self.legal_hold {
                    true => f.write_str(", and under a legal hold"),
                    false => Ok(()),
                }
            }
            None => f.write_str("locked by a legal hold"),
        }
    }
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

fn seconds(text: &str) -> Option<i64> {
    let parsed: Timestamp = text.parse().ok()?;
    Some(parsed.as_second())
}

/// What is known of an object's lock.
#[derive(Debug)]
pub(super) enum Known {
    Locked(Locked),
    Not,
    /// The key may not read it.
    Hidden,
}

impl ObjectAddress {
    /// The lock of the object.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub(super) fn lock(&self) -> io::Result<Known> {
        if self.url.kind() != StoreKind::S3 {
            // Others have locks by rules of the container; they decide when they are asked to delete.
            return Ok(Known::Hidden);
        }
        let stores = self.stores()?;
        let path = format!("/{}", coded_path(&self.url.key));
        let head = ask(stores, Method::HEAD, &path)?;
        if let Some(found) = Locked::of_headers(&head.headers) {
            return Ok(Known::Locked(found));
        }
        if head.status == StatusCode::NOT_FOUND {
            return Ok(Known::Not);
        }
        // The headers are left out, too, if the key may not read them.
        let answer = ask(stores, Method::GET, &format!("{path}?retention="))?;
        Ok(match answer.status.as_u16() {
            401 | 403 => Known::Hidden,
            200 => of_answer(&answer).map_or(Known::Not, Known::Locked),
            // There is none, or the store knows nothing of locks.
            _ => Known::Not,
        })
    }

    /// The lock that holds now; `None` also if the key may not know that.
    pub(crate) fn locked(&self) -> io::Result<Option<Locked>> {
        Ok(match self.lock()? {
            Known::Locked(locked) => Some(locked).filter(|locked| locked.holds(now())),
            Known::Not | Known::Hidden => None,
        })
    }

    /// Retains the object for longer, in the same mode.
    pub(crate) fn retain(&self, mode: LockMode, until: i64) -> io::Result<()> {
        let until = Timestamp::from_second(until).map_err(io::Error::other)?;
        let body = format!(
            "<Retention xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Mode>{}</Mode><RetainUntilDate>{until}\
             </RetainUntilDate></Retention>",
            mode.word()
        );
        let path = format!("/{}?retention=", coded_path(&self.url.key));
        let answer = put(self.stores()?, &path, body)?;
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(failure::refused(answer.status, &answer.text)),
        }
    }

    /// Refuses what is locked now. If the key may not know that, the store decides.
    pub(crate) fn refuse_locked(&self) -> io::Result<()> {
        let refused = |locked: Locked| {
            io::Error::new(io::ErrorKind::PermissionDenied, format!("it is {locked}"))
        };
        self.locked()?.map(refused).map_or(Ok(()), Err)
    }

    /// Checks that an object that was just written has the lock that was asked for. A key that may not read locks
    /// leaves that to the store, which refuses a lock that it cannot keep.
    pub(super) fn check_lock(&self) -> io::Result<()> {
        let Some(wanted) = self.settings.lock else {
            return Ok(());
        };
        let found = match self.lock()? {
            Known::Hidden => return Ok(()),
            Known::Locked(found) if found.has(&wanted, now()) => {
                return Ok(());
            }
            Known::Locked(found) => found.to_string(),
            Known::Not => "not locked".to_owned(),
        };
        let reason = format!(
            "the store has not locked the object as was asked: it is {found}. Object lock must be enabled for its bucket"
        );
        Err(io::Error::other(reason))
    }
}

fn of_answer(answer: &Answer) -> Option<Locked> {
    let element = |name| elements(&answer.text, name).next();
    let mode = LockMode::of_word(element("Mode")?)?;
    let until = seconds(element("RetainUntilDate")?)?;
    Some(Locked {
        retention: Some((mode, until)),
        legal_hold: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::service;

    const NOW: i64 = 1_800_000_000;

    #[test]
    fn a_lock_is_sent_read_back_and_compared_with_what_was_asked_for() {
        let wanted = ObjectLock {
            retention: Some((LockMode::Compliance, 30)),
            legal_hold: true,
        };
        let sent = wanted.headers(Timestamp::from_second(NOW).unwrap());
        let found = Locked::of_headers(&sent).unwrap();
        assert!(found.has(&wanted, NOW) && found.holds(NOW));
        assert_eq!(
            found.to_string(),
            "locked until 2027-02-14T08:00:00Z (COMPLIANCE), and under a legal hold"
        );
        let shorter = Locked {
            retention: Some((LockMode::Compliance, NOW + 29 * 86_400)),
            legal_hold: true,
        };
        assert!(!shorter.has(&wanted, NOW));
        let without_hold = Locked {
            legal_hold: false,
            ..found
        };
        assert!(!without_hold.has(&wanted, NOW));
        assert!(without_hold.holds(NOW) && !without_hold.holds(NOW + 31 * 86_400));
        let none = service::headers(vec![("x-amz-object-lock-legal-hold", "OFF".to_owned())]);
        assert_eq!(Locked::of_headers(&none), None);
    }
}
