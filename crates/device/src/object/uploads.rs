//! Uploads that were begun and neither completed nor aborted: what a killed backup leaves. They are invisible, but their
//! parts are stored and paid for.
//!
//! `object_store` cannot list them, so the request is made here.

use std::io;

use http::Method;

use super::circle::Circle;
use super::signed::{ask, coded, coded_path, elements, plain};
use super::store::Stores;
use super::url::StoreKind;
use super::{ObjectAddress, failure};

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
        if self.url.kind() == StoreKind::Azure {
            let reason = "Azure lists no unfinished uploads; it removes what they left after 7 days by itself";
            return Err(io::Error::new(io::ErrorKind::Unsupported, reason));
        }
        let stores = self.stores()?;
        let mut found = Vec::new();
        let mut marker = String::new();
        let mut circle = Circle::default();
        loop {
            let text = page(stores, &self.url.key, &marker)?;
            let before = found.len();
            for upload in elements(&text, "Upload") {
                let Some(upload) = self.upload(upload) else {
                    continue;
                };
                circle.refuse(&format!("{} {}", upload.key, upload.id))?;
                found.push(upload);
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
        let what = format!(
            "/{}?uploadId={}",
            coded_path(&upload.key),
            coded(&upload.id)
        );
        let answer = ask(self.stores()?, Method::DELETE, &what)?;
        match answer.status.is_success() {
            true => Ok(()),
            false => Err(failure::refused(answer.status, &answer.text)),
        }
    }
}

/// A page of the list.
fn page(stores: &Stores, prefix: &str, marker: &str) -> io::Result<String> {
    let what = format!("?uploads=&prefix={}{marker}", coded(prefix));
    let answer = ask(stores, Method::GET, &what)?;
    match answer.status.is_success() {
        true => Ok(answer.text),
        false => Err(failure::refused(answer.status, &answer.text)),
    }
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
