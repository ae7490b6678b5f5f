//! Deletes objects, and only those that are meant.
//!
//! Between the listing that tells of an object and its deletion, a backup can have put another one there: with FORMAT, under a
//! name that comes again. So an object of a listing is deleted on the condition that it is still the same one; and as not every
//! store keeps to such a condition on deletions, each is asked what is there just before.

use std::io;
use std::thread;
use std::time::Duration;

use http::header::{ETAG, IF_MATCH};
use http::{HeaderMap, HeaderName, Method, Request, StatusCode};
use object_store::ObjectStoreExt as _;
use object_store::client::HttpRequestBody;

use super::signed::{Answer, ask, asked, coded_path};
use super::store::runtime;
use super::url::StoreKind;
use super::{Found, ObjectAddress, failure, signed};

/// How often a deletion is tried again, and how long it waits at first; each time twice as long.
const RETRIES_MAX: u32 = 5;
const RETRY_AFTER: Duration = Duration::from_millis(200);

/// Google's number of an object, and the condition on it: it has none on tags.
const GENERATION: &str = "x-goog-generation";
const IF_GENERATION: HeaderName = HeaderName::from_static("x-goog-if-generation-match");

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
        let tag = match self.url.kind() {
            StoreKind::S3 | StoreKind::Google => tag.to_owned(),
            // Its listings have tags without quotation marks.
            StoreKind::Azure => format!("\"{}\"", tag.trim_matches('"')),
        };
        let mut takes_condition = true;
        let mut wait = RETRY_AFTER;
        let mut retries = RETRIES_MAX;
        loop {
            let condition = match self.standing()? {
                Standing::There(found) if text(&found, ETAG.as_str()) == Some(&*tag) => {
                    self.condition(&tag, &found)?
                }
                Standing::There(_) => return Err(another()),
                Standing::Removed(removed) => return Ok(removed),
            };
            match self.delete_if(Some(&condition).filter(|_| takes_condition)) {
                Ok(answer) if is_deleted(answer.status) => return Ok(removed(&answer)),
                Ok(answer) if answer.status == StatusCode::NOT_IMPLEMENTED && takes_condition => {
                    takes_condition = false;
                    continue;
                }
                // The first answer to a request that was made again may have been lost, so the next look decides.
                Ok(answer) if answer.status == StatusCode::PRECONDITION_FAILED && retries > 0 => {}
                Ok(answer) if !is_passing(answer.status) || retries == 0 => {
                    return Err(failure::refused(answer.status, &answer.text));
                }
                Err(error) if retries == 0 => return Err(error),
                Ok(_) | Err(_) => thread::sleep(wait),
            }
            wait *= 2;
            retries -= 1;
        }
    }

    /// The condition that the object found is still there.
    fn condition(&self, tag: &str, found: &HeaderMap) -> io::Result<(HeaderName, String)> {
        if self.url.kind() != StoreKind::Google {
            return Ok((IF_MATCH, tag.to_owned()));
        }
        let lacking = || io::Error::other("the store does not say which generation it is");
        let generation = text(found, GENERATION).ok_or_else(lacking)?;
        Ok((IF_GENERATION, generation.to_owned()))
    }

    /// What is there now.
    fn standing(&self) -> io::Result<Standing> {
        let path = format!("/{}", coded_path(&self.url.key));
        let head = Self::repeated(|| ask(self.stores()?, Method::HEAD, &path))?;
        match head.status {
            StatusCode::NOT_FOUND => Ok(Standing::Removed(removed(&head))),
            status if status.is_success() => Ok(Standing::There(head.headers)),
            status => Err(failure::refused(status, &head.text)),
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

    /// The answer to a request, which is made again while the store is busy or cannot be reached.
    fn repeated(request: impl Fn() -> io::Result<Answer>) -> io::Result<Answer> {
        let mut wait = RETRY_AFTER;
        for _ in 0..RETRIES_MAX {
            match request() {
                Ok(answer) if !is_passing(answer.status) => return Ok(answer),
                Ok(_) | Err(_) => thread::sleep(wait),
            }
            wait *= 2;
        }
        request()
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
