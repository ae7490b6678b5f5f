//! Credentials: the keys of object storage, by the URLs that they are for.
//!
//! Invariants:
//! 1. A secret goes from its statement into its sealed form, and from there into the signatures of requests; no
//!    message, log or row has it.
//! 2. A credential whose name is a URL signs no request to anything but what is below that URL.

use std::borrow::Cow;
use std::fmt;

use windlass_base::message::table;
use windlass_catalog::CredentialRecord;
use windlass_device::{Access, KeyError, MANAGED_IDENTITY, ObjectUrl, StoreKind, UrlError};

use super::is_url;
use crate::{Failure, Session};

/// Most characters of a name, as of any name.
const NAME_CHARACTERS_MAX: usize = 128;

/// A credential that is made or changed.
#[derive(Clone, Copy)]
pub struct CredentialOptions<'a> {
    /// The URL of a bucket, a folder in it or an object, or any name for `WITH CREDENTIAL`.
    pub name: &'a str,
    /// What the secret is: SQL Server's words, or the name of an account of Azure.
    pub identity: &'a str,
    pub secret: Option<&'a str>,
    /// Whether it takes the place of the one of that name, which must exist.
    pub is_change: bool,
}

/// Never shows the secret.
impl fmt::Debug for CredentialOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialOptions")
            .field("name", &shown(self.name))
            .field("is_change", &self.is_change)
            .finish_non_exhaustive()
    }
}

/// The key with which the URLs of a statement are reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CredentialChoice {
    /// The credential with the longest name that a URL begins with; without one, the key of the environment.
    #[default]
    Any,
    /// `WITH CREDENTIAL`: there must be a credential for each URL.
    Matching,
    /// `WITH CREDENTIAL = name`
    Named(String),
}

impl Session {
    /// Makes or changes a credential.
    ///
    /// # Errors
    /// 15530 if it exists, 15151 if it does not; 50350 if it is none that is used.
    pub fn set_credential(&mut self, options: &CredentialOptions<'_>) -> Result<(), Failure> {
        let CredentialOptions { name, secret, .. } = *options;
        let refused = |why: String| Failure::from(table::credential_not_usable(shown(name), why));
        check_name(name).map_err(refused)?;
        check_key(name, options.identity, secret).map_err(|error| refused(error.to_string()))?;
        let record = CredentialRecord {
            name: name.to_owned(),
            identity: options.identity.to_owned(),
            secret: self
                .instance
                .seal_secret(name, secret.unwrap_or_default())?,
        };
        let catalog = self.instance.catalog_mut();
        match options.is_change {
            false if catalog.add_credential(&record)? => Ok(()),
            false => Err(table::credential_exists(name).into()),
            true if catalog.change_credential(&record)? => Ok(()),
            true => Err(table::cannot_find("alter", "credential", shown(name)).into()),
        }
    }

    /// Drops a credential.
    ///
    /// # Errors
    /// 15151 if it does not exist.
    pub fn drop_credential(&mut self, name: &str) -> Result<(), Failure> {
        match self.instance.catalog_mut().drop_credential(name)? {
            true => Ok(()),
            false => Err(table::cannot_find("drop", "credential", shown(name)).into()),
        }
    }

    /// The names of all credentials.
    ///
    /// # Errors
    /// Those of the catalog.
    pub fn credentials(&self) -> Result<Vec<String>, Failure> {
        let records = self.instance.catalog().credentials()?.into_iter();
        Ok(records.map(|record| record.name).collect())
    }
}

/// A name for a message: what stands before an `@` in it may be a key.
fn shown(name: &str) -> String {
    super::shown(name)
}

/// Refuses a key that opens no store, or not the one of the name.
fn check_key(name: &str, identity: &str, secret: Option<&str>) -> Result<(), KeyError> {
    let with = |kind| Access::of_credential(identity, secret, kind).map(drop);
    if let Ok(url) = parsed(name) {
        return with(url.kind());
    }
    let kinds = [StoreKind::S3, StoreKind::Azure, StoreKind::Google];
    let tried = kinds.map(with);
    let opens = tried
        .iter()
        .find(|tried| **tried != Err(KeyError::OtherStore));
    opens.cloned().unwrap_or(Err(KeyError::Identity))
}

/// The URL that a credential's name is: of a store, a bucket, a folder or an object.
fn parsed(name: &str) -> Result<ObjectUrl, UrlError> {
    let name = name.trim_end_matches('/');
    // A bucket with an object is an object; so is an object with another behind it.
    let bucket = ObjectUrl::parse(&format!("{name}/bucket/key"));
    // `az://host:port` names no account yet.
    bucket
        .or_else(|error| ObjectUrl::parse(&format!("{name}/account/bucket/key")).map_err(|_| error))
}

/// How a record opens a URL.
pub(super) fn opened(
    record: &CredentialRecord,
    secret: &str,
    url: &ObjectUrl,
) -> Result<Access, KeyError> {
    let is_of_machine = record.identity.eq_ignore_ascii_case(MANAGED_IDENTITY);
    let secret = (!is_of_machine).then_some(secret);
    Access::of_credential(&record.identity, secret, url.kind())
}

/// Why a name is refused.
fn check_name(name: &str) -> Result<(), String> {
    if name.is_empty() || name.chars().count() > NAME_CHARACTERS_MAX {
        return Err(format!(
            "its name has 1 to {NAME_CHARACTERS_MAX} characters"
        ));
    }
    if !is_url(name) {
        return Ok(());
    }
    parsed(name).map(drop).map_err(|error| error.to_string())
}

/// The access to a URL.
pub(super) fn access(
    session: &Session,
    written: &str,
    url: &ObjectUrl,
    choice: &CredentialChoice,
) -> Result<Option<Access>, Failure> {
    let records = session.instance.catalog().credentials()?;
    let found = match choice {
        CredentialChoice::Named(name) => {
            let mut records = records.iter();
            let found = records.find(|record| record.name.eq_ignore_ascii_case(name));
            let found = found.ok_or_else(|| table::credential_unknown(shown(name)))?;
            if is_url(&found.name) && !covers(&found.name, written) {
                return Err(table::credential_of_other_url(&found.name, shown(written)).into());
            }
            Some(found)
        }
        CredentialChoice::Any | CredentialChoice::Matching => longest(&records, written),
    };
    match found {
        Some(record) => {
            let secret = session.instance.open_secret(record)?;
            let access = opened(record, &secret, url);
            let access = access
                .map_err(|error| table::credential_not_opened(&record.name, error.to_string()))?;
            Ok(Some(access))
        }
        None if *choice == CredentialChoice::Matching => {
            Err(table::url_without_credential().into())
        }
        None => Ok(Access::from_environment(url.kind())),
    }
}

/// The credential with the longest name among those that cover a URL.
pub(super) fn longest<'a>(
    records: &'a [CredentialRecord],
    url: &str,
) -> Option<&'a CredentialRecord> {
    let covering = records.iter().filter(|record| covers(&record.name, url));
    covering.max_by_key(|record| record.name.trim_end_matches('/').len())
}

/// Whether a URL is that of a credential's name or below it. Only its scheme and host are the same in any case.
fn covers(name: &str, url: &str) -> bool {
    let (name, url) = (whole(name), whole(url));
    let (Some((host, path)), Some((other, rest))) = (parts(&name), parts(&url)) else {
        return false;
    };
    let rest = rest.strip_prefix(path.trim_end_matches('/'));
    host.eq_ignore_ascii_case(other)
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A URL as all of its store are written: `az://account/...` is `https://account.blob.core.windows.net/...`.
fn whole(url: &str) -> Cow<'_, str> {
    let url = url.trim();
    let is_azure = url
        .get(..5)
        .is_some_and(|start| start.eq_ignore_ascii_case("az://"));
    match url.get(5..).filter(|_| is_azure) {
        Some(rest) => {
            let (account, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            match account.contains(['.', ':']) || account == "localhost" {
                true => Cow::Borrowed(url),
                false => Cow::Owned(format!("https://{account}.blob.core.windows.net{path}")),
            }
        }
        None => Cow::Borrowed(url),
    }
}

/// `s3://host:port` and `/path`.
fn parts(url: &str) -> Option<(&str, &str)> {
    let host = url.find("://")? + 3;
    let path = url.get(host..)?.find('/').map_or(url.len(), |at| host + at);
    Some(url.split_at(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_a_url_begins_with_wins_and_ends_at_a_slash() {
        let names = [
            "s3://h:9000",
            "s3://h:9000/prod/",
            "s3://h:9000/prod/a",
            "mine",
            "https://acct.blob.core.windows.net/cont",
            "gs://bucket",
        ];
        let records = names.map(|name| CredentialRecord {
            name: name.to_owned(),
            identity: String::new(),
            secret: Vec::new(),
        });
        for (url, expected) in [
            ("s3://h:9000/prod/a/x.bak", Some(2)),
            ("S3://H:9000/prod/a", Some(2)),
            ("s3://h:9000/prod/ab.bak", Some(1)),
            ("s3://h:9000/prod/A/x.bak", Some(1)),
            ("s3://h:9000/product/x.bak", Some(0)),
            ("s3://h:9000/PROD/x.bak", Some(0)),
            ("s3://h:90001/prod/x.bak", None),
            ("s3://h:900/prod/x.bak", None),
            ("s3://other/h:9000/prod/x.bak", None),
            ("az://ACCT/cont/x.bak", Some(4)),
            ("https://acct.blob.core.windows.net/cont", Some(4)),
            ("az://acct/container/x.bak", None),
            ("az://acct:1/cont/x.bak", None),
            ("gs://bucket/x.bak", Some(5)),
            ("gs://bucket2/x.bak", None),
        ] {
            let found = longest(&records, url).map(|record| record.name.as_str());
            assert_eq!(found, expected.map(|index| names[index]), "{url}");
        }
    }

    #[test]
    fn a_name_is_a_url_of_a_store_or_no_url() {
        for good in [
            "mine",
            "s3://h:9000",
            "s3://h:9000/bucket",
            "s3://h:9000/bucket/a/b/",
            "https://acct.blob.core.windows.net",
            "https://acct.blob.core.windows.net/cont/a",
            "az://acct",
            "az://127.0.0.1:1",
            "az://127.0.0.1:1/acct",
            "gs://bucket",
            "gs://bucket/a/",
        ] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        let long = "x".repeat(129);
        for bad in [
            "",
            &long,
            "s3://id:key@h:9000/b",
            "https://a.example/c",
            "s3://h:1/bucket/../x",
        ] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
