//! Deletes objects, and only those that are meant.
//!
//! Between the listing that tells of an object and its deletion, a backup can have put another one there: with FORMAT, under a
//! name that comes again. So an object of a listing is deleted on the condition that it is still the same one. A store that
//! does not know such a condition on deletions is asked what is there just before each of them.

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

    fn delete_only(&self, tag: &str) -> io::Result<Removed> {
        let condition = match self.url.kind() {
            StoreKind::S3 => (IF_MATCH, tag.to_owned()),
            // Its listings have tags without quotation marks.
            StoreKind::Azure => (IF_MATCH, format!("\"{}\"", tag.trim_matches('"'))),
            StoreKind::Google => match self.generation(tag)? {
                Some(generation) => (IF_GENERATION, generation),
                None => return Ok(Removed::Gone),
            },
        };
        let answer = Self::repeated(|| self.delete_if(Some(&condition)))?;
        match answer.status {
            status if is_deleted(status) => Ok(removed(&answer)),
            // The first answer to a request that was made again may have been lost.
            StatusCode::PRECONDITION_FAILED => match self.standing()? {
                Standing::There(_) => Err(another()),
                Standing::Removed(removed) => Ok(removed),
            },
            StatusCode::NOT_IMPLEMENTED if condition.0 == IF_MATCH => {
                self.delete_compared(&condition.1)
            }
            status => Err(failure::refused(status, &answer.text)),
        }
    }

    /// Deletes what is there as long as it has this tag. A try whose answer is lost can have deleted it, and a backup can have
    /// taken the name then: so each one is preceded by a look.
    fn delete_compared(&self, tag: &str) -> io::Result<Removed> {
        let mut wait = RETRY_AFTER;
        let mut retries = RETRIES_MAX;
        loop {
            match self.standing()? {
                Standing::There(found) if text(&found, ETAG.as_str()) == Some(tag) => {}
                Standing::There(_) => return Err(another()),
                Standing::Removed(removed) => return Ok(removed),
            }
            match self.delete_if(None) {
                Ok(answer) if is_deleted(answer.status) => return Ok(removed(&answer)),
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

    /// Google's number of the object; `None` if there is none any more.
    fn generation(&self, tag: &str) -> io::Result<Option<String>> {
        let found = match self.standing()? {
            Standing::There(found) if text(&found, ETAG.as_str()) == Some(tag) => found,
            Standing::There(_) => return Err(another()),
            Standing::Removed(_) => return Ok(None),
        };
        let lacking = || io::Error::other("the store does not say which generation it is");
        let generation = text(&found, GENERATION).ok_or_else(lacking)?;
        Ok(Some(generation.to_owned()))
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
