//! Uploads that were begun and neither completed nor aborted: what a killed backup leaves. They are invisible, but their
//! parts are stored and paid for.
//!
//! `object_store` cannot list them, so the request is made here.

use std::fmt::Write as _;
use std::io;

use http::{Method, Request};
use http_body_util::{BodyExt as _, Limited};
use object_store::aws::AwsAuthorizer;
use object_store::client::{HttpRequest, HttpRequestBody};
use object_store::multipart::MultipartStore as _;
use object_store::path::Path;

use super::store::{Stores, runtime};
use super::{ObjectAddress, failure};

/// Most bytes of an answer: a page has 1,000 uploads.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// An upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedUpload {
    /// The URL that its object would have.
    pub url: String,
    key: String,
    id: String,
    /// When it was begun: seconds since 1970, UTC.
    pub began: i64,
}

impl ObjectAddress {
    /// The unfinished uploads below a folder.
    pub(crate) fn unfinished(&self) -> io::Result<Vec<UnfinishedUpload>> {
        let stores = self.stores()?;
        let mut found = Vec::new();
        let mut marker = String::new();
        loop {
            let text = runtime()?.block_on(page(stores, &self.url.key, &marker))?;
            let before = found.len();
            for upload in elements(&text, "Upload") {
                found.extend(self.upload(upload));
            }
            let is_cut = elements(&text, "IsTruncated").any(|cut| cut == "true");
            let next = |name| elements(&text, name).next().map(plain);
            let (key, id) = (next("NextKeyMarker"), next("NextUploadIdMarker"));
            match (key, id) {
                (Some(key), Some(id)) if is_cut && found.len() > before => {
                    marker = format!(
                        "&key-marker={}&upload-id-marker={}",
                        coded(&key),
                        coded(&id)
                    );
                }
                _ if is_cut => {
                    return Err(io::Error::other("the store cut its list of uploads short"));
                }
                _ => return Ok(found),
            }
        }
    }

    fn upload(&self, text: &str) -> Option<UnfinishedUpload> {
        let part = |name| elements(text, name).next().map(plain);
        let key = part("Key")?;
        let began: jiff::Timestamp = part("Initiated")?.parse().ok()?;
        Some(UnfinishedUpload {
            url: self.url.with_key(&key).to_string(),
            key,
            id: part("UploadId")?,
            began: began.as_second(),
        })
    }

    /// Aborts an upload: its parts are deleted.
    pub(crate) fn abort(&self, upload: &UnfinishedUpload) -> io::Result<()> {
        let stores = self.stores()?;
        let key = Path::parse(&upload.key).map_err(io::Error::other)?;
        let aborted = runtime()?.block_on(stores.hasty.abort_multipart(&key, &upload.id));
        aborted.map_err(|error| failure::reported(&error))
    }
}

/// A page of the list.
async fn page(stores: &Stores, prefix: &str, marker: &str) -> io::Result<String> {
    let credential = stores.hasty.credentials().get_credential().await;
    let credential = credential.map_err(|error| failure::reported(&error))?;
    let uri = format!(
        "{}?uploads=&prefix={}{marker}",
        stores.bucket,
        coded(prefix)
    );
    let mut request: HttpRequest = Request::builder()
        .method(Method::GET)
        .uri(uri)
        .body(HttpRequestBody::empty())
        .map_err(io::Error::other)?;
    AwsAuthorizer::new(&credential, "s3", &stores.region)
        .try_authorize(&mut request, None)
        .map_err(|error| failure::reported(&error))?;
    let answer = stores
        .client
        .execute(request)
        .await
        .map_err(io::Error::other)?;
    let status = answer.status();
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX);
    let bytes = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let text = String::from_utf8(bytes.to_vec()).map_err(io::Error::other)?;
    match status.is_success() {
        true => Ok(text),
        false => Err(failure::refused(status, &text)),
    }
}

/// The contents of all elements of a name.
fn elements<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, behind) = rest.split_once(&start)?;
        let (content, behind) = behind.split_once(&end)?;
        rest = behind;
        Some(content)
    })
}

/// A text without its entities.
fn plain(text: &str) -> String {
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

/// As a part of a query.
fn coded(text: &str) -> String {
    let mut coded = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            true => coded.push(char::from(byte)),
            // Writing to a string does not fail.
            false => drop(write!(coded, "%{byte:02X}")),
        }
    }
    coded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_and_queries_written() {
        let text = "<A><Upload><Key>a&amp;b</Key></Upload><Upload>x</Upload><Upload>cut";
        assert_eq!(
            elements(text, "Upload").collect::<Vec<_>>(),
            ["<Key>a&amp;b</Key>", "x"]
        );
        assert_eq!(plain("a&amp;lt;&lt;&#39;"), "a&lt;<'");
        assert_eq!(coded("a b/\u{e9}~"), "a%20b%2F%C3%A9~");
    }
}
