//! Requests that `object_store` has no words for, made and signed here.

use std::fmt::Write as _;
use std::io;

use base64ct::{Base64, Encoding as _};
use http::header::CONTENT_LENGTH;
use http::request::Builder;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use object_store::client::{HttpRequest, HttpRequestBody};

use super::store::{Stores, runtime};
use super::{failure, tls};

/// Most bytes of an answer: a page of a list has 1,000 entries.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// What a store answered.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

/// Asks for `what`, the part of the URL behind the bucket.
pub(super) fn ask(stores: &Stores, method: Method, what: &str) -> io::Result<Answer> {
    let request = Request::builder().method(method);
    runtime()?.block_on(asked(stores, request, what, HttpRequestBody::empty()))
}

/// Puts a document there, with a checksum.
pub(super) fn put(stores: &Stores, what: &str, document: String) -> io::Result<Answer> {
    let sum = windlass_base::checksum(document.as_bytes()).to_be_bytes();
    let request = Request::builder()
        .method(Method::PUT)
        .header("x-amz-sdk-checksum-algorithm", "CRC64NVME")
        .header("x-amz-checksum-crc64nvme", Base64::encode_string(&sum));
    runtime()?.block_on(asked(stores, request, what, document.into()))
}

/// Deletes an object.
pub(super) fn delete(stores: &Stores, key: &str) -> io::Result<()> {
    let answer = ask(stores, Method::DELETE, &format!("/{}", coded_path(key)))?;
    match answer.status.is_success() || answer.status == StatusCode::NOT_FOUND {
        true => Ok(()),
        false => Err(failure::refused(answer.status, &answer.text)),
    }
}

/// The answer to a request that is made of `request`.
pub(super) async fn asked(
    stores: &Stores,
    request: Builder,
    what: &str,
    body: HttpRequestBody,
) -> io::Result<Answer> {
    let mut request: HttpRequest = request
        .uri(match what.starts_with('/') {
            true => format!("{}{what}", stores.bucket.trim_end_matches('/')),
            false => format!("{}{what}", stores.bucket),
        })
        .body(body)
        .map_err(io::Error::other)?;
    let length = request.body().content_length();
    request.headers_mut().insert(CONTENT_LENGTH, length.into());
    let signed = stores.signer.sign(&mut request).await;
    signed.map_err(io::Error::other)?;
    let answer = tls::answer(&stores.client, request).await;
    let answer = answer.map_err(|error| failure::unanswered(&error))?;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX);
    let bytes = body.collect().await.map_err(io::Error::other)?.to_bytes();
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        text: String::from_utf8(bytes.to_vec()).map_err(io::Error::other)?,
    })
}

/// The contents of all elements of a name.
pub(super) fn elements<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, behind) = rest.split_once(&start)?;
        let (content, behind) = behind.split_once(&end)?;
        rest = behind;
        Some(content)
    })
}

/// As a part of a query.
pub(super) fn coded(text: &str) -> String {
    coded_but(text, b"-._~")
}

/// As the path of an object.
pub(super) fn coded_path(text: &str) -> String {
    coded_but(text, b"-._~/")
}

fn coded_but(text: &str, plain: &[u8]) -> String {
    let mut coded = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            true => coded.push(char::from(byte)),
            // Writing to a string does not fail.
            false => drop(write!(coded, "%{byte:02X}")),
        }
    }
    coded
}

/// A text without its entities.
pub(super) fn plain(text: &str) -> String {
    let named = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&#39;", "'"),
        ("&#34;", "\""),
    ];
    let text = named
        .iter()
        .fold(text.to_owned(), |text, (entity, character)| {
            text.replace(entity, character)
        });
    text.replace("&amp;", "&")
}
