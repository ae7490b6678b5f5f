//! URLs of objects and of folders of objects.
//!
//! | store | written | also |
//! |---|---|---|
//! | S3 and compatible | `s3://host[:port]/bucket/key`, as SQL Server writes it | `s3://bucket.s3.REGION.amazonaws.com/key` |
//! | Azure | `https://account.blob.core.windows.net/container/blob`, as SQL Server writes it | `az://account/container/blob`; `az://host:port/account/container/blob` for another server |
//! | Google | `gs://bucket/object` | |

use std::fmt;

/// Most bytes of a key.
const KEY_BYTES_MAX: usize = 1024;

/// Where Google's requests go.
const GOOGLE_HOST: &str = "storage.googleapis.com";

/// Ends of the host names of Azure's stores; the account is before them.
const AZURE_HOSTS: [&str; 4] = [
    ".blob.core.windows.net",
    ".blob.core.usgovcloudapi.net",
    ".blob.core.chinacloudapi.cn",
    ".blob.storage.azure.net",
];

/// The protocols of stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoreKind {
    S3,
    Azure,
    Google,
}

impl StoreKind {
    /// Its name in `BACKUP_OPTIONS`.
    pub fn word(self) -> &'static str {
        match self {
            Self::S3 => "s3",
            Self::Azure => "azure",
            Self::Google => "gs",
        }
    }
}

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectUrl {
    kind: StoreKind,
    /// `host[:port]` of the store, without the bucket.
    pub(super) authority: String,
    /// Azure's account.
    account: Option<String>,
    /// Azure's container.
    pub(super) bucket: String,
    pub(super) key: String,
    /// Whether the bucket (of Azure: the account) is part of the host's name.
    pub(super) in_host: bool,
}

/// Why a text does not name an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    #[error(
        "object storage begins with s3://, gs://, az:// or https://ACCOUNT.blob.core.windows.net/"
    )]
    Scheme,
    #[error("it contains a control character")]
    ControlCharacter,
    #[error("a user name or key does not belong into a URL, where others can read it")]
    UserInfo,
    #[error(
        "a signature does not belong into a URL, where others can read it; make a credential of it"
    )]
    Signature,
    #[error(
        "it does not name the host of a store: write s3://host:port/bucket/key, for Amazon s3://s3.REGION.amazonaws.com/bucket/key"
    )]
    Host,
    #[error(
        "it does not name an account of Azure: write https://ACCOUNT.blob.core.windows.net/container/blob, or az://ACCOUNT/container/blob"
    )]
    Account,
    #[error("it does not name a bucket and an object: write {example}")]
    Key { example: &'static str },
    #[error("it does not name a bucket: write {example}")]
    NoBucket { example: &'static str },
    #[error(
        "the name of the bucket is not valid: 3 to 63 lower case letters, digits, dots and hyphens"
    )]
    Bucket,
    #[error(
        "the name of the container is not valid (3 to 63 lower case letters, digits and single hyphens): write \
         https://ACCOUNT.blob.core.windows.net/container/blob, or az://ACCOUNT/container/blob"
    )]
    Container,
    #[error("the key has an empty part, or one that is '.' or '..'")]
    Part,
    #[error("the key is longer than 1,024 bytes")]
    Length,
}

/// A URL without its key.
struct Place<'a> {
    authority: String,
    account: Option<String>,
    bucket: String,
    key: &'a str,
    in_host: bool,
}

/// What a key has if it is the rest of a signed URL of S3 or Google.
const SIGNATURES: [&str; 3] = [
    "X-Amz-Signature=",
    "X-Amz-Security-Token=",
    "X-Goog-Signature=",
];

impl ObjectUrl {
    /// Reads a URL. The key is taken as it is written: `%20` is not a space.
    ///
    /// # Errors
    /// Why it does not name an object.
    pub fn parse(written: &str) -> Result<Self, UrlError> {
        let url = Self::parse_any(written)?;
        if url.is_folder() {
            return Err(UrlError::Key {
                example: example(url.kind, false),
            });
        }
        Ok(url)
    }

    /// Reads a URL of an object or of a folder: a bucket, or a key that ends in a slash.
    ///
    /// # Errors
    /// Why it names neither.
    pub fn parse_any(written: &str) -> Result<Self, UrlError> {
        let (scheme, rest) = written.split_once("://").ok_or(UrlError::Scheme)?;
        let scheme = scheme.to_ascii_lowercase();
        let kind = match scheme.as_str() {
            "s3" => StoreKind::S3,
            "az" => StoreKind::Azure,
            "https" if is_azure(rest) => StoreKind::Azure,
            "gs" => StoreKind::Google,
            _ => return Err(UrlError::Scheme),
        };
        if written.chars().any(char::is_control) {
            return Err(UrlError::ControlCharacter);
        }
        let place = match kind {
            StoreKind::S3 => s3(rest),
            StoreKind::Azure => azure(rest, scheme == "https"),
            StoreKind::Google => google(rest),
        }?;
        check_bucket(kind, &place.bucket)?;
        let key = place.key;
        if SIGNATURES.iter().any(|name| key.contains(name)) {
            return Err(UrlError::Signature);
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
            kind,
            authority: place.authority,
            account: place.account,
            bucket: place.bucket,
            key: key.to_owned(),
            in_host: place.in_host,
        })
    }

    pub fn kind(&self) -> StoreKind {
        self.kind
    }

    /// Azure's account.
    pub fn account(&self) -> Option<&str> {
        self.account.as_deref()
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

    /// The URL of its bucket.
    pub fn bucket_url(&self) -> String {
        self.with_key("").to_string()
    }

    /// Where requests are sent, without `https://`.
    pub(super) fn endpoint(&self) -> String {
        match (self.kind, &self.account) {
            (StoreKind::S3, _) if self.in_host => format!("{}.{}", self.bucket, self.authority),
            (StoreKind::Azure, Some(account)) if !self.in_host => {
                format!("{}/{account}", self.authority)
            }
            _ => self.authority.clone(),
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
        let (endpoint, bucket, key) = (self.endpoint(), &self.bucket, &self.key);
        match self.kind {
            StoreKind::S3 if self.in_host => write!(f, "s3://{endpoint}/{key}"),
            StoreKind::S3 => write!(f, "s3://{endpoint}/{bucket}/{key}"),
            StoreKind::Azure if self.in_host => write!(f, "https://{endpoint}/{bucket}/{key}"),
            StoreKind::Azure => write!(f, "az://{endpoint}/{bucket}/{key}"),
            StoreKind::Google => write!(f, "gs://{bucket}/{key}"),
        }
    }
}

/// How a URL of the kind is written.
fn example(kind: StoreKind, is_folder: bool) -> &'static str {
    match (kind, is_folder) {
        (StoreKind::S3, false) => "s3://host:port/bucket/key",
        (StoreKind::S3, true) => "s3://host:port/bucket/folder/",
        (StoreKind::Azure, false) => "https://ACCOUNT.blob.core.windows.net/container/blob",
        (StoreKind::Azure, true) => "https://ACCOUNT.blob.core.windows.net/container/folder/",
        (StoreKind::Google, false) => "gs://bucket/object",
        (StoreKind::Google, true) => "gs://bucket/folder/",
    }
}

fn s3(rest: &str) -> Result<Place<'_>, UrlError> {
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let authority = authority.to_ascii_lowercase();
    if !is_authority(&authority) {
        // A key may contain a slash, so that its `@` is not in the first part.
        return Err(match rest.contains('@') {
            true => UrlError::UserInfo,
            false => UrlError::Host,
        });
    }
    if let Some((bucket, host)) = in_amazon_host(&authority) {
        return Ok(Place {
            authority: host.to_owned(),
            account: None,
            bucket: bucket.to_owned(),
            key: path,
            in_host: true,
        });
    }
    let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
    Ok(Place {
        authority,
        account: None,
        bucket: bucket.to_owned(),
        key,
        in_host: false,
    })
}

/// Whether the host is one of Azure's.
fn is_azure(rest: &str) -> bool {
    let authority = rest.split('/').next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    azure_account(&host.to_ascii_lowercase()).is_some()
}

/// The account in the name of one of Azure's hosts.
fn azure_account(host: &str) -> Option<&str> {
    let before = AZURE_HOSTS.iter().find_map(|end| host.strip_suffix(end))?;
    // Accounts of DNS zones: `account.z01.blob.storage.azure.net`.
    before.split('.').next()
}

fn azure(rest: &str, is_https: bool) -> Result<Place<'_>, UrlError> {
    if rest.contains("sig=") {
        return Err(UrlError::Signature);
    }
    let (first, path) = rest.split_once('/').unwrap_or((rest, ""));
    if first.contains('@') {
        return Err(UrlError::UserInfo);
    }
    let first = first.to_ascii_lowercase();
    let place = |authority: String, account: &str, path, in_host| {
        let (bucket, key) = str::split_once(path, '/').unwrap_or((path, ""));
        match is_account(account) {
            true => Ok(Place {
                authority,
                account: Some(account.to_owned()),
                bucket: bucket.to_owned(),
                key,
                in_host,
            }),
            false => Err(UrlError::Account),
        }
    };
    if let Some(account) = azure_account(&first) {
        return place(first.clone(), account, path, true);
    }
    if is_https {
        return Err(UrlError::Account);
    }
    if !is_authority(&first) {
        return place(format!("{first}{}", AZURE_HOSTS[0]), &first, path, true);
    }
    let (account, path) = path.split_once('/').unwrap_or((path, ""));
    place(first, account, path, false)
}

fn google(rest: &str) -> Result<Place<'_>, UrlError> {
    let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
    match bucket.contains('@') {
        true => Err(UrlError::UserInfo),
        false => Ok(Place {
            authority: GOOGLE_HOST.to_owned(),
            account: None,
            bucket: bucket.to_owned(),
            key,
            in_host: false,
        }),
    }
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

fn check_bucket(kind: StoreKind, name: &str) -> Result<(), UrlError> {
    if name.is_empty() {
        return Err(UrlError::NoBucket {
            example: example(kind, true),
        });
    }
    let of_kind = |c: char| match kind {
        StoreKind::S3 => c == '.',
        StoreKind::Azure => false,
        StoreKind::Google => matches!(c, '.' | '_'),
    };
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || of_kind(c);
    // A name of Google with dots may be longer.
    let length_max = match kind == StoreKind::Google && name.contains('.') {
        true => 222,
        false => 63,
    };
    let is_valid = (3..=length_max).contains(&name.len()) && name.chars().all(letters);
    match (is_valid, kind) {
        (true, StoreKind::Azure) if name.contains("--") || name.starts_with('-') => {
            Err(UrlError::Container)
        }
        (true, _) => Ok(()),
        (false, StoreKind::Azure) => Err(UrlError::Container),
        (false, _) => Err(UrlError::Bucket),
    }
}

/// Whether Azure has accounts of that name.
pub(super) fn is_account(name: &str) -> bool {
    let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    (3..=24).contains(&name.len()) && name.chars().all(letters)
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
        for (written, shown) in [
            ("gs://my_bucket/a/x.bak", "gs://my_bucket/a/x.bak"),
            (
                "HTTPS://Acct.blob.core.windows.net/cont/a/x.bak",
                "https://acct.blob.core.windows.net/cont/a/x.bak",
            ),
            (
                "az://acct/cont/a/x.bak",
                "https://acct.blob.core.windows.net/cont/a/x.bak",
            ),
            (
                "https://acct.z01.blob.storage.azure.net/cont/x",
                "https://acct.z01.blob.storage.azure.net/cont/x",
            ),
            (
                "az://127.0.0.1:10000/acct/cont/x",
                "az://127.0.0.1:10000/acct/cont/x",
            ),
        ] {
            let url = ObjectUrl::parse(written).unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(ObjectUrl::parse(shown).unwrap(), url);
            let account = (url.kind() == StoreKind::Azure).then_some("acct");
            assert_eq!(url.account(), account);
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
        let key = |kind| UrlError::Key {
            example: example(kind, false),
        };
        let no_bucket = UrlError::NoBucket {
            example: "gs://bucket/folder/",
        };
        let cases = [
            ("https://a.example/c/x.bak", UrlError::Scheme),
            ("http://acct.blob.core.windows.net/cont/x", UrlError::Scheme),
            ("s3:/host/bucket/x", UrlError::Scheme),
            ("file://bucket/x", UrlError::Scheme),
            ("s3://bucket/x.bak", UrlError::Host),
            ("s3:///bucket/x.bak", UrlError::Host),
            ("s3://h:0/bucket/x.bak", UrlError::Host),
            ("s3://h:70000/bucket/x.bak", UrlError::Host),
            ("s3://[::1/bucket/x.bak", UrlError::Host),
            ("s3://id:secret@h:1/bucket/x.bak", UrlError::UserInfo),
            ("s3://id:sec/ret@h:1/bucket/x.bak", UrlError::UserInfo),
            ("s3://h:1/bucket", key(StoreKind::S3)),
            ("s3://h:1/bucket/", key(StoreKind::S3)),
            ("s3://h:1/bucket/folder/", key(StoreKind::S3)),
            ("gs://bucket/folder/", key(StoreKind::Google)),
            ("az://acct/cont", key(StoreKind::Azure)),
            ("gs:///x", no_bucket),
            ("gs://key@bucket/x", UrlError::UserInfo),
            ("az://a/cont/x", UrlError::Account),
            ("az://h:1/A/cont/x", UrlError::Account),
            ("https://a.blob.core.windows.net/cont/x", UrlError::Account),
            (
                "https://k@acct.blob.core.windows.net/cont/x",
                UrlError::UserInfo,
            ),
            (
                "https://acct.blob.core.windows.net/cont/x?sv=1&sig=2",
                UrlError::Signature,
            ),
            ("az://acct/co--nt/x", UrlError::Container),
            ("az://acct/co.nt/x", UrlError::Container),
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
