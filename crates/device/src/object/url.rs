//! URLs of objects and of folders of objects: `s3://host[:port]/bucket/key`, as SQL Server writes them.

use std::fmt;

/// Most bytes of a key.
const KEY_BYTES_MAX: usize = 1024;

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectUrl {
    /// `host[:port]` of the store, without the bucket.
    pub(super) authority: String,
    pub(super) bucket: String,
    pub(super) key: String,
    /// Whether the bucket is part of the host's name.
    pub(super) in_host: bool,
}

/// Why a text does not name an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error("it does not begin with s3://, the only kind of object storage that is implemented")]
    Scheme,
    #[error("it contains a control character")]
    ControlCharacter,
    #[error("a user name or key does not belong into a URL, where others can read it")]
    UserInfo,
    #[error(
        "it does not name the host of a store: write s3://host:port/bucket/key, for Amazon s3://s3.REGION.amazonaws.com/bucket/key"
    )]
    Host,
    #[error("it does not name a bucket and an object: write s3://host:port/bucket/key")]
    Key,
    #[error("it does not name a bucket: write s3://host:port/bucket/folder/")]
    NoBucket,
    #[error(
        "the name of the bucket is not valid: 3 to 63 lower case letters, digits, dots and hyphens"
    )]
    Bucket,
    #[error("the key has an empty part, or one that is '.' or '..'")]
    Part,
    #[error("the key is longer than 1,024 bytes")]
    Length,
}

impl ObjectUrl {
    /// Reads a URL. The key is taken as it is written: `%20` is not a space.
    ///
    /// # Errors
    /// Why it does not name an object.
    pub fn parse(written: &str) -> Result<Self, UrlError> {
        let url = Self::parse_any(written)?;
        if url.is_folder() {
            return Err(UrlError::Key);
        }
        Ok(url)
    }

    /// Reads a URL of an object or of a folder: a bucket, or a key that ends in a slash.
    ///
    /// # Errors
    /// Why it names neither.
    pub fn parse_any(written: &str) -> Result<Self, UrlError> {
        let rest = written.get(5..).filter(|_| is_s3(written));
        let rest = rest.ok_or(UrlError::Scheme)?;
        if written.chars().any(char::is_control) {
            return Err(UrlError::ControlCharacter);
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let authority = authority.to_ascii_lowercase();
        if !is_authority(&authority) {
            // A key may contain a slash, so that its `@` is not in the first part.
            return Err(match rest.contains('@') {
                true => UrlError::UserInfo,
                false => UrlError::Host,
            });
        }
        let (authority, bucket, key, in_host) = match in_amazon_host(&authority) {
            Some((bucket, host)) => (host.to_owned(), bucket.to_owned(), path, true),
            None => {
                let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
                (authority, bucket.to_owned(), key, false)
            }
        };
        if bucket.is_empty() {
            return Err(UrlError::NoBucket);
        }
        if !is_bucket(&bucket) {
            return Err(UrlError::Bucket);
        }
        let parts = key.strip_suffix('/').unwrap_or(key);
        let is_wrong = |part| matches!(part, "" | "." | "..");
        if !key.is_empty() && parts.split('/').any(is_wrong) {
            return Err(UrlError::Part);
        }
        if key.len() > KEY_BYTES_MAX {
            return Err(UrlError::Length);
        }
        Ok(Self {
            authority,
            bucket,
            key: key.to_owned(),
            in_host,
        })
    }

    /// Whether it names a bucket or a folder, and no object.
    pub fn is_folder(&self) -> bool {
        self.key.is_empty() || self.key.ends_with('/')
    }

    /// Another key of the same bucket.
    pub(super) fn with_key(&self, key: &str) -> Self {
        Self {
            key: key.to_owned(),
            ..self.clone()
        }
    }

    /// The key, without the slash at the end of a folder.
    pub fn key(&self) -> &str {
        self.key.trim_end_matches('/')
    }

    /// Where requests are sent, without `https://`.
    pub(super) fn endpoint(&self) -> String {
        match self.in_host {
            true => format!("{}.{}", self.bucket, self.authority),
            false => self.authority.clone(),
        }
    }

    /// The region in the name of one of Amazon's hosts.
    pub(super) fn region(&self) -> Option<&str> {
        let host = self.authority.split(':').next()?;
        let host = host.strip_suffix(".cn").unwrap_or(host);
        let region = host.strip_suffix(".amazonaws.com")?.strip_prefix("s3.")?;
        Some(region.strip_prefix("dualstack.").unwrap_or(region))
    }

    /// The store: what its objects share.
    pub(crate) fn store(&self) -> &str {
        &self.authority
    }
}

impl fmt::Display for ObjectUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        match self.in_host {
            true => write!(f, "s3://{}/{key}", self.endpoint()),
            false => write!(f, "s3://{}/{}/{key}", self.authority, self.bucket),
        }
    }
}

fn is_s3(written: &str) -> bool {
    written
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("s3://"))
}

/// `host[:port]`: a name with a dot, `localhost`, an address, or any name with a port. A name alone is taken for
/// a bucket, as in the URLs of Amazon's own programs.
fn is_authority(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(six) => match six.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_six = text.starts_with('[') && host.parse::<std::net::Ipv6Addr>().is_ok();
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
    let is_host =
        is_six || (!host.is_empty() && !text.starts_with('[') && host.chars().all(letters));
    let is_whole = is_six || port.is_some() || host.contains('.') || host == "localhost";
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port != 0);
    is_host && is_whole && port.is_none_or(is_port)
}

/// The bucket and the rest of `bucket.s3.region.amazonaws.com`.
fn in_amazon_host(authority: &str) -> Option<(&str, &str)> {
    let host = authority.split(':').next()?;
    let is_amazon = host.ends_with(".amazonaws.com") || host.ends_with(".amazonaws.com.cn");
    let at = authority.find(".s3.").filter(|_| is_amazon)?;
    Some((&authority[..at], &authority[at + 1..]))
}

fn is_bucket(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-');
    (3..=63).contains(&name.len()) && name.chars().all(letters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_name_host_bucket_and_key() {
        let url = ObjectUrl::parse("S3://127.0.0.1:9000/backups/prod/a b%20.bak").unwrap();
        assert_eq!(url.endpoint(), "127.0.0.1:9000");
        assert_eq!((&*url.bucket, &*url.key), ("backups", "prod/a b%20.bak"));
        assert_eq!(url.region(), None);
        let path = ObjectUrl::parse("s3://s3.eu-central-1.amazonaws.com/backups/x.bak").unwrap();
        assert_eq!((path.region(), path.in_host), (Some("eu-central-1"), false));
        let host = ObjectUrl::parse("s3://backups.s3.eu-central-1.amazonaws.com/x.bak").unwrap();
        assert_eq!((&*host.bucket, &*host.key), ("backups", "x.bak"));
        assert_eq!(host.endpoint(), "backups.s3.eu-central-1.amazonaws.com");
        assert_eq!(host.region(), Some("eu-central-1"));
        assert!(ObjectUrl::parse("s3://[::1]:9000/bucket/x").is_ok());
        assert!(ObjectUrl::parse("s3://minio:9000/bucket/x").is_ok());
    }

    #[test]
    fn a_folder_is_a_bucket_or_ends_in_a_slash_and_every_url_is_written_as_it_was_read() {
        for (written, is_folder) in [
            ("s3://h:1/bucket/", true),
            ("s3://h:1/bucket/a/b/", true),
            ("s3://h:1/bucket/a b%20.bak", false),
            ("s3://backups.s3.eu-central-1.amazonaws.com/", true),
            ("s3://backups.s3.eu-central-1.amazonaws.com/x.bak", false),
        ] {
            let url = ObjectUrl::parse_any(written).unwrap();
            assert_eq!((url.is_folder(), &*url.to_string()), (is_folder, written));
        }
        let bucket = ObjectUrl::parse_any("s3://h:1/bucket").unwrap();
        assert!(bucket.is_folder() && bucket.to_string() == "s3://h:1/bucket/");
        for wrong in [
            "s3://h:1",
            "s3://h:1/bucket//",
            "s3://h:1/bucket/a//",
            "s3://h:1/bucket/../",
        ] {
            assert!(ObjectUrl::parse_any(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_names_no_object_is_refused_with_the_reason() {
        let long = format!("s3://h:1/bucket/{}", "k".repeat(1025));
        let cases = [
            ("https://a.blob.core.windows.net/c/x.bak", UrlError::Scheme),
            ("s3:/host/bucket/x", UrlError::Scheme),
            ("gs://bucket/x", UrlError::Scheme),
            ("s3://bucket/x.bak", UrlError::Host),
            ("s3:///bucket/x.bak", UrlError::Host),
            ("s3://h:0/bucket/x.bak", UrlError::Host),
            ("s3://h:70000/bucket/x.bak", UrlError::Host),
            ("s3://[::1/bucket/x.bak", UrlError::Host),
            ("s3://id:secret@h:1/bucket/x.bak", UrlError::UserInfo),
            ("s3://id:sec/ret@h:1/bucket/x.bak", UrlError::UserInfo),
            ("s3://h:1/bucket", UrlError::Key),
            ("s3://h:1/bucket/", UrlError::Key),
            ("s3://h:1/bucket/folder/", UrlError::Key),
            ("s3://h:1/Bucket/x", UrlError::Bucket),
            ("s3://h:1/b/x", UrlError::Bucket),
            ("s3://h:1/bucket/../other/x", UrlError::Part),
            ("s3://h:1/bucket//x", UrlError::Part),
            ("s3://h:1/bucket/a\nb", UrlError::ControlCharacter),
            (&long, UrlError::Length),
        ];
        for (written, expected) in cases {
            assert_eq!(ObjectUrl::parse(written), Err(expected), "{written}");
        }
    }
}
