//! Conditions on which an object gets its name: that there is none, or still the one that it is to replace.

use std::sync::{Arc, OnceLock};

use http::StatusCode;
use http::header::{HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use object_store::client::HttpRequest;

use super::url::StoreKind;
use super::{Found, quoted};

/// Google's condition on the number of an object: it has none on tags.
pub(super) const IF_GENERATION: HeaderName = HeaderName::from_static("x-goog-if-generation-match");

/// The condition of an upload, which is known when it is about to be completed.
pub(super) type Decided = Arc<OnceLock<Condition>>;

/// On which a request is done that gives an object its name.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    name: HeaderName,
    value: HeaderValue,
    /// Whether a store that does not know it may do without: what is there was looked at just before.
    is_dispensable: bool,
}

impl Condition {
    /// That there is no object.
    pub(super) fn absent(kind: StoreKind) -> Self {
        let (name, value) = match kind {
            StoreKind::Google => (IF_GENERATION, "0"),
            StoreKind::S3 | StoreKind::Azure => (IF_NONE_MATCH, "*"),
        };
        Self {
            name,
            value: HeaderValue::from_static(value),
            is_dispensable: false,
        }
    }

    /// That there is still the object which was found; `None` if the store does not tell it from another one.
    pub(super) fn still(kind: StoreKind, found: &Found) -> Option<Self> {
        let (name, value) = match kind {
            StoreKind::Google => (IF_GENERATION, found.version.clone()?),
            StoreKind::S3 | StoreKind::Azure => (IF_MATCH, quoted(found.tag.as_deref()?)),
        };
        Some(Self {
            name,
            value: HeaderValue::from_str(&value).ok()?,
            is_dispensable: false,
        })
    }

    /// The same, left out where the store does not know it.
    pub(super) fn dispensable(self) -> Self {
        Self {
            is_dispensable: true,
            ..self
        }
    }

    pub(super) fn put_on(&self, request: &mut HttpRequest) {
        let headers = request.headers_mut();
        headers.insert(self.name.clone(), self.value.clone());
    }

    /// Whether the request is to be made without it after this answer.
    pub(super) fn is_left_out(&self, status: StatusCode) -> bool {
        let is_unknown = matches!(
            status,
            StatusCode::NOT_IMPLEMENTED | StatusCode::BAD_REQUEST
        );
        self.is_dispensable && is_unknown
    }
}
