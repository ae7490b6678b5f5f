//! Deletes objects, and only those that are meant.
//!
//! Between the listing that tells of an object and its deletion, a backup can have put another one there: with FORMAT, under a
//! name that comes again. So an object of a listing is deleted on the condition that it is still the same one; and as not every
//! store keeps to such a condition on deletions, each is asked what is there just before.

use std::io;

use http::header::{ETAG, IF_MATCH};
use http::{HeaderMap, HeaderName, Method, Request, StatusCode};
use object_store::ObjectStoreExt as _;
use object_store::client::HttpRequestBody;

use super::again::{Failed, repeated};
use super::condition::IF_GENERATION;
use super::signed::{Answer, ask, asked, coded_path};
use super::store::runtime;
use super::url::StoreKind;
use super::{Found, ObjectAddress, failure, quoted, signed};

/// Google's number of an object.
const GENERATION: &str = "x-goog-generation";

/// Says that a bucket with versions has only put a marker on the object.
const MARKER: &str = "x-amz-delete-marker";

/// What became of a file or object that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removed {
    /// Its bytes are gone, as far as anybody says.
    Gone,
    /// The store keeps it behind a delete marker: no reader finds it, and its bytes are stored and paid for.
    Hidden,
}

/// What is under a name.
enum Standing {
    /// An object, and what its headers say.
    There(HeaderMap),
    Removed(Removed),
}

impl ObjectAddress {
    /// Deletes the object; one that a listing told of only if it is still the same.
    ///
    /// # Errors
    /// `AlreadyExists` if it is another one by now; those of the store.
    pub(crate) fn delete(&self) -> io::Result<Removed> {
        if let Some(listed) = &self.listed {
            return self.delete_found(listed);
        }
        let stores = self.stores()?;
        if self.url.kind() == StoreKind::Azure {
            // `object_store` sends a batch, which signatures for one container are not allowed.
            return signed::delete(stores, &self.url.key).map(|()| Removed::Gone);
        }
        let deleted = runtime()?.block_on(stores.hasty.delete(&self.key()?));
        deleted.map_err(|error| failure::reported(&error))?;
        Ok(Removed::Gone)
    }

    /// Deletes the object that was found, and no other one.
    ///
    /// # Errors
    /// As [`ObjectAddress::delete`].
    pub(super) fn delete_found(&self, found: &Found) -> io::Result<Removed> {
        match &found.tag {
            Some(tag) => self.delete_only(tag),
            None => Err(io::Error::other(
                "the store does not tell this object from another one (ETag)",
            )),
        }
    }

    /// A look precedes each try: there are stores that do not know the condition, and some that ignore it; and after a try
    /// whose answer is lost, a backup can have taken the name.
    pub(super) fn delete_only(&self, tag: &str) -> io::Result<Removed> {
        let mut takes_condition = true;
        repeated(|| {
            let condition = match self.standing().map_err(Failed::ForGood)? {
                Standing::There(found) if is_tagged(&found, tag) => self.condition(&found),
                Standing::There(_) => Err(another()),
                Standing::Removed(removed) => return Ok(removed),
            };
            let condition = condition.map_err(Failed::ForGood)?;
            let condition = Some(&condition).filter(|_| takes_condition);
            let answer = self.delete_if(condition).map_err(Failed::Passing)?;
            match answer.status {
                StatusCode::NOT_IMPLEMENTED if takes_condition => {
                    takes_condition = false;
                    Err(Failed::Passing(refused(&answer)))
                }
                // The answer to an earlier try may have been lost, so the next look decides.
                StatusCode::PRECONDITION_FAILED => Err(Failed::Passing(refused(&answer))),
                _ => settled(answer).and_then(|answer| match is_deleted(answer.status) {
                    true => Ok(removed(&answer)),
                    false => Err(Failed::ForGood(refused(&answer))),
                }),
            }
        })
    }

    /// Whether the store keeps an object that is to be deleted on a condition that does not hold; one that refuses such
    /// conditions keeps it, too.
    pub(super) fn keeps_what_is_another(&self) -> io::Result<bool> {
        let condition = match self.url.kind() {
            StoreKind::Google => (IF_GENERATION, "1".to_owned()),
            StoreKind::S3 | StoreKind::Azure => (IF_MATCH, "\"windlass\"".to_owned()),
        };
        let answer = repeated(|| {
            let answer = self.delete_if(Some(&condition));
            settled(answer.map_err(Failed::Passing)?)
        })?;
        Ok(!is_deleted(answer.status))
    }

    /// The condition that the object found is still there.
    fn condition(&self, found: &HeaderMap) -> io::Result<(HeaderName, String)> {
        let (condition, header) = match self.url.kind() {
            StoreKind::Google => (IF_GENERATION, GENERATION),
            StoreKind::S3 | StoreKind::Azure => (IF_MATCH, ETAG.as_str()),
        };
        let lacking = || io::Error::other("the store does not say which generation it is");
        let value = text(found, header).ok_or_else(lacking)?;
        Ok((condition, value.to_owned()))
    }

    /// What is there now.
    fn standing(&self) -> io::Result<Standing> {
        let path = format!("/{}", coded_path(&self.url.key));
        let head = repeated(|| {
            let stores = self.stores().map_err(Failed::ForGood)?;
            settled(ask(stores, Method::HEAD, &path).map_err(Failed::Passing)?)
        })?;
        match head.status {
            StatusCode::NOT_FOUND => Ok(Standing::Removed(removed(&head))),
            status if status.is_success() => Ok(Standing::There(head.headers)),
            _ => Err(refused(&head)),
        }
    }

    fn delete_if(&self, condition: Option<&(HeaderName, String)>) -> io::Result<Answer> {
        let mut request = Request::builder().method(Method::DELETE);
        if let Some((name, value)) = condition {
            request = request.header(name, value);
        }
        let path = format!("/{}", coded_path(&self.url.key));
        let body = HttpRequestBody::empty();
        runtime()?.block_on(asked(self.stores()?, request, &path, body))
    }
}

/// The answer, unless the store is only busy.
fn settled(answer: Answer) -> Result<Answer, Failed> {
    match is_passing(answer.status) {
        true => Err(Failed::Passing(refused(&answer))),
        false => Ok(answer),
    }
}

/// Whether the same request can succeed later.
fn is_passing(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS
        || status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn is_tagged(found: &HeaderMap, tag: &str) -> bool {
    text(found, ETAG.as_str()).map(quoted) == Some(quoted(tag))
}

fn refused(answer: &Answer) -> io::Error {
    failure::refused(answer.status, &answer.text)
}

fn is_deleted(status: StatusCode) -> bool {
    status.is_success() || status == StatusCode::NOT_FOUND
}

fn removed(answer: &Answer) -> Removed {
    match answer.headers.get(MARKER).is_some_and(|is| is == "true") {
        true => Removed::Hidden,
        false => Removed::Gone,
    }
}

fn another() -> io::Error {
    let reason = "another object has been put there in the meantime; it is left as it is";
    io::Error::new(io::ErrorKind::AlreadyExists, reason)
}
