//! The key with which requests are signed.
//!
//! It comes from a credential, or from the environment, under the names that the stores' own programs use. A token that
//! is sent as it is (not only a signature) goes to no host but the store's own: a URL can name any.

use std::fmt;

use object_store::azure::AzureAccessKey;

use super::profile;
use super::url::{ObjectUrl, StoreKind, is_account};

/// A key of a store, with what else decides how it is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    pub(super) key: Key,
    pub(super) region: Option<String>,
    /// `http://host[:port]` of a store that is reached without TLS.
    pub(super) plain_endpoint: Option<String>,
    /// What `STORAGE_EMULATOR_HOST` names, if that is not reached: what was meant for it must not go to Google.
    refused_emulator: Option<String>,
    /// Whether a credential holds it: its name is the URL that it is for.
    is_of_credential: bool,
}

/// What proves who asks.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Key {
    S3 {
        id: String,
        secret: String,
        token: Option<String>,
    },
    /// The role of the machine, container or pod.
    S3Role,
    /// The key of the account, in base 64. Without the account's name it is for any.
    AzureAccount {
        account: Option<String>,
        key: String,
    },
    /// A shared access signature, without its `?`.
    AzureSignature {
        account: Option<String>,
        signature: String,
    },
    /// An application that is registered with Entra.
    AzureClient {
        tenant: String,
        id: String,
        secret: String,
    },
    /// The identity of the machine, container or pod.
    AzureIdentity,
    /// The key of a service account, in JSON.
    GoogleAccount(String),
    /// What Google's own programs use by default: a file, or the service account of the machine.
    GoogleDefault,
}

impl Key {
    fn kind(&self) -> StoreKind {
        match self {
            Self::S3 { .. } | Self::S3Role => StoreKind::S3,
            Self::AzureAccount { .. }
            | Self::AzureSignature { .. }
            | Self::AzureClient { .. }
            | Self::AzureIdentity => StoreKind::Azure,
            Self::GoogleAccount(_) | Self::GoogleDefault => StoreKind::Google,
        }
    }

    /// Whether a request carries it as it is, so that its receiver could use it.
    fn is_sent(&self) -> bool {
        match self {
            // Without its secret, a session token is of no use.
            Self::S3 { .. } | Self::S3Role | Self::AzureAccount { .. } => false,
            Self::AzureSignature { .. }
            | Self::AzureClient { .. }
            | Self::AzureIdentity
            | Self::GoogleAccount(_)
            | Self::GoogleDefault => true,
        }
    }
}

/// SQL Server's word for a key of S3 and compatible stores.
pub const S3_KEY: &str = "S3 Access Key";
/// SQL Server's word for a part of the rights to an account of Azure.
pub const AZURE_SIGNATURE: &str = "SHARED ACCESS SIGNATURE";
/// SQL Server's word for what the machine is allowed to do.
pub const MANAGED_IDENTITY: &str = "Managed Identity";
/// SQL Server has none.
pub const GOOGLE_ACCOUNT: &str = "Google Service Account";

/// Why a credential gives no access.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(
        "write WITH IDENTITY = '{S3_KEY}', SECRET = 'key id:secret key'; for Azure IDENTITY = '{AZURE_SIGNATURE}' or the \
         name of the account, for Google IDENTITY = '{GOOGLE_ACCOUNT}', and for the role of the machine IDENTITY = '{MANAGED_IDENTITY}'"
    )]
    Identity,
    #[error("its SECRET is no key: it has the form {0}")]
    Form(&'static str),
    #[error("IDENTITY = '{MANAGED_IDENTITY}' has no SECRET")]
    Needless,
    #[error("it is for another kind of store than the URL")]
    OtherStore,
    #[error("its key is of account '{0}' of Azure, which is not the URL's")]
    OtherAccount(String),
}

impl Access {
    /// With the identity and secret of a credential, for URLs of a kind. What else decides how the store is reached
    /// comes from the environment.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn of_credential(
        identity: &str,
        secret: Option<&str>,
        kind: StoreKind,
    ) -> Result<Self, KeyError> {
        Self::with_variables(identity, secret, kind, &variable)
    }

    fn with_variables(
        identity: &str,
        secret: Option<&str>,
        kind: StoreKind,
        variable: Variables<'_>,
    ) -> Result<Self, KeyError> {
        let key = key(identity, secret, kind)?;
        match key.kind() == kind {
            true => Ok(Self {
                is_of_credential: true,
                ..Self::new(key, variable)
            }),
            false => Err(KeyError::OtherStore),
        }
    }

    /// From the variables of the environment that the stores' own programs read; `None` without a key.
    pub fn from_environment(kind: StoreKind) -> Option<Self> {
        Self::from_variables(kind, &variable)
    }

    fn from_variables(kind: StoreKind, variable: Variables<'_>) -> Option<Self> {
        match kind {
            StoreKind::S3 => s3(variable),
            StoreKind::Azure => azure(variable).map(|key| Self::new(key, variable)),
            StoreKind::Google => google(variable).map(|key| Self::new(key, variable)),
        }
    }

    fn new(key: Key, variable: Variables<'_>) -> Self {
        let filled = |name: &str| variable(name).filter(|value| !value.is_empty());
        let kind = key.kind();
        let (endpoint, allows) = match kind {
            StoreKind::S3 => {
                let endpoint = filled("AWS_ENDPOINT_URL_S3").or_else(|| filled("AWS_ENDPOINT_URL"));
                (endpoint, "AWS_ALLOW_HTTP")
            }
            StoreKind::Azure => (filled("AZURE_STORAGE_ENDPOINT"), "AZURE_ALLOW_HTTP"),
            StoreKind::Google => {
                let host = filled("STORAGE_EMULATOR_HOST");
                let url = host.map(|host| match host.contains("://") {
                    true => host,
                    false => format!("http://{host}"),
                });
                (url, "GOOGLE_ALLOW_HTTP")
            }
        };
        let allowed = filled(allows).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let is_plain = |url: &String| url.starts_with("http://") && (allowed || is_loopback(url));
        let refused = endpoint.clone().filter(|url| !is_plain(url));
        Self {
            key,
            region: filled("AWS_REGION").or_else(|| filled("AWS_DEFAULT_REGION")),
            plain_endpoint: endpoint.filter(is_plain),
            refused_emulator: refused.filter(|_| kind == StoreKind::Google),
            is_of_credential: false,
        }
    }

    /// Whether the store at `authority` (`host[:port]`) is reached without TLS.
    pub(super) fn is_plain(&self, authority: &str) -> bool {
        self.plain_authority()
            .is_some_and(|plain| plain.eq_ignore_ascii_case(authority))
    }

    /// `host[:port]` of the store that is reached without TLS.
    pub(super) fn plain_authority(&self) -> Option<&str> {
        let rest = self.plain_endpoint.as_deref()?.strip_prefix("http://")?;
        rest.split('/').next()
    }

    /// Checks that it may be used for a URL.
    ///
    /// # Errors
    /// Why not.
    pub(super) fn check(&self, url: &ObjectUrl) -> Result<(), String> {
        if self.key.kind() != url.kind() {
            return Err(KeyError::OtherStore.to_string());
        }
        if let Key::AzureAccount {
            account: Some(own), ..
        }
        | Key::AzureSignature {
            account: Some(own), ..
        } = &self.key
        {
            let is_own = url.account() == Some(own);
            if !is_own {
                return Err(KeyError::OtherAccount(own.clone()).to_string());
            }
        }
        if let Some(emulator) = &self.refused_emulator {
            return Err(format!(
                "STORAGE_EMULATOR_HOST names '{emulator}', which is reached only with http:// and, if it is another machine, with \
                 GOOGLE_ALLOW_HTTP=true; without that variable, gs:// is Google's own"
            ));
        }
        let is_foreign = url.kind() == StoreKind::Azure && !url.in_host;
        if is_foreign
            && !self.is_of_credential
            && self.key.is_sent()
            && !self.is_plain(&url.authority)
        {
            return Err(format!(
                "the key of the environment would be sent to '{}', which is no host of Azure; make a credential for the URL",
                url.authority
            ));
        }
        Ok(())
    }
}

type Variables<'v> = &'v dyn Fn(&str) -> Option<String>;

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// They are sent in a header.
fn is_sendable(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic())
}

/// The key of a credential.
fn key(identity: &str, secret: Option<&str>, kind: StoreKind) -> Result<Key, KeyError> {
    let is = |word: &str| identity.eq_ignore_ascii_case(word);
    if is(MANAGED_IDENTITY) {
        return match (secret, kind) {
            (Some(_), _) => Err(KeyError::Needless),
            (None, StoreKind::S3) => Ok(Key::S3Role),
            (None, StoreKind::Azure) => Ok(Key::AzureIdentity),
            (None, StoreKind::Google) => Ok(Key::GoogleDefault),
        };
    }
    let secret = secret.ok_or(KeyError::Identity)?;
    if is(S3_KEY) {
        let form = KeyError::Form("'key id:secret key'");
        let Some((id, secret)) = secret.split_once(':') else {
            return Err(form);
        };
        return match is_sendable(id) && is_sendable(secret) {
            true => Ok(Key::S3 {
                id: id.to_owned(),
                secret: secret.to_owned(),
                token: None,
            }),
            false => Err(form),
        };
    }
    if is(AZURE_SIGNATURE) {
        let signature = secret.trim_start_matches('?');
        return match is_sendable(signature) && signature.contains("sig=") {
            true => Ok(Key::AzureSignature {
                account: None,
                signature: signature.to_owned(),
            }),
            false => Err(KeyError::Form("'sv=...&sig=...'")),
        };
    }
    if is(GOOGLE_ACCOUNT) {
        return match is_google_key(secret) {
            true => Ok(Key::GoogleAccount(secret.to_owned())),
            false => Err(KeyError::Form(
                "of the JSON file of a service account's key, with private_key and client_email",
            )),
        };
    }
    if is_account(identity) {
        return match AzureAccessKey::try_new(secret) {
            Ok(_) => Ok(Key::AzureAccount {
                account: Some(identity.to_owned()),
                key: secret.to_owned(),
            }),
            Err(_) => Err(KeyError::Form(
                "of the key of an account of Azure, in base 64",
            )),
        };
    }
    Err(KeyError::Identity)
}

/// Whether a text is the key file of a service account.
fn is_google_key(text: &str) -> bool {
    let read: Result<serde_json::Value, _> = serde_json::from_str(text);
    read.is_ok_and(|key| {
        let has = |name: &str| key.get(name).is_some_and(serde_json::Value::is_string);
        ["private_key", "private_key_id", "client_email"]
            .into_iter()
            .all(has)
    })
}

fn s3(variable: Variables<'_>) -> Option<Access> {
    const OF_ROLES: [&str; 3] = [
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ];
    let filled = |name: &str| variable(name).filter(|value| !value.is_empty());
    let whole = filled("AWS_ACCESS_KEY_ID").zip(filled("AWS_SECRET_ACCESS_KEY"));
    if let Some((id, secret)) = whole {
        let token = filled("AWS_SESSION_TOKEN");
        return Some(Access::new(Key::S3 { id, secret, token }, variable));
    }
    if let Some(found) = profile::read(variable) {
        let key = Key::S3 {
            id: found.id,
            secret: found.secret,
            token: found.token,
        };
        let access = Access::new(key, variable);
        return Some(Access {
            region: access.region.clone().or(found.region),
            ..access
        });
    }
    let has_role = OF_ROLES.iter().any(|name| filled(name).is_some());
    has_role.then(|| Access::new(Key::S3Role, variable))
}

fn azure(variable: Variables<'_>) -> Option<Key> {
    let filled = |name: &str| variable(name).filter(|value| !value.is_empty());
    let account = filled("AZURE_STORAGE_ACCOUNT").or_else(|| filled("AZURE_STORAGE_ACCOUNT_NAME"));
    let key = filled("AZURE_STORAGE_KEY").or_else(|| filled("AZURE_STORAGE_ACCOUNT_KEY"));
    if let Some(key) = key {
        return Some(Key::AzureAccount { account, key });
    }
    if let Some(signature) = filled("AZURE_STORAGE_SAS_TOKEN") {
        let signature = signature.trim_start_matches('?').to_owned();
        return Some(Key::AzureSignature { account, signature });
    }
    let (tenant, id) = (filled("AZURE_TENANT_ID"), filled("AZURE_CLIENT_ID"));
    match (tenant, id, filled("AZURE_CLIENT_SECRET")) {
        (Some(tenant), Some(id), Some(secret)) => Some(Key::AzureClient { tenant, id, secret }),
        _ => filled("AZURE_FEDERATED_TOKEN_FILE")
            .or_else(|| filled("IDENTITY_ENDPOINT"))
            .map(|_| Key::AzureIdentity),
    }
}

fn google(variable: Variables<'_>) -> Option<Key> {
    let file = variable("GOOGLE_APPLICATION_CREDENTIALS").filter(|file| !file.is_empty());
    let by_default = || {
        let home = variable("HOME").filter(|home| !home.is_empty())?;
        let file = format!("{home}/.config/gcloud/application_default_credentials.json");
        std::path::Path::new(&file).exists().then_some(file)
    };
    file.or_else(by_default).map(|_| Key::GoogleDefault)
}

/// Whether a URL of plain HTTP leads to this machine.
fn is_loopback(url: &str) -> bool {
    let rest = url.trim_start_matches("http://");
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(six) => six.split(']').next(),
        None => authority.split(':').next(),
    };
    host.is_some_and(|host| {
        let address = host.parse::<std::net::IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    })
}

/// Never shows the secret.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("kind", &self.key.kind())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access_of(kind: StoreKind, variables: &[(&str, &str)]) -> Option<Access> {
        Access::from_variables(kind, &|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        })
    }

    fn access(variables: &[(&str, &str)]) -> Option<Access> {
        access_of(StoreKind::S3, variables)
    }

    fn s3_key(id: &str, secret: &str) -> Key {
        Key::S3 {
            id: id.to_owned(),
            secret: secret.to_owned(),
            token: None,
        }
    }

    const KEY: [(&str, &str); 2] = [
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "hidden/secret:with=signs"),
    ];

    #[test]
    fn a_key_is_whole_or_there_is_none_and_its_secret_is_not_shown() {
        assert_eq!(access(&KEY[..1]), None);
        let found = access(&KEY).unwrap();
        assert!(found.key == s3_key("id", "hidden/secret:with=signs"));
        assert!(!format!("{found:?} {found:#?}").contains("hidden"));
    }

    #[test]
    fn the_key_of_a_credential_replaces_that_of_the_environment_with_its_token() {
        let variables = [&KEY[..], &[("AWS_SESSION_TOKEN", "t"), ("AWS_REGION", "r")]].concat();
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        };
        let with = |secret| Access::with_variables(S3_KEY, Some(secret), StoreKind::S3, &variable);
        let found = with("other:se:cr/et+").unwrap();
        assert!(found.key == s3_key("other", "se:cr/et+"));
        assert_eq!(found.region.as_deref(), Some("r"));
        for wrong in [
            "",
            "id",
            "id:",
            ":secret",
            "i d:secret",
            "id:sec\nret",
            "id:s\u{e9}",
        ] {
            assert!(matches!(with(wrong), Err(KeyError::Form(_))), "{wrong:?}");
        }
    }

    #[test]
    fn each_store_has_its_words_and_takes_no_key_of_another() {
        let with = |identity: &str, secret, kind| {
            Access::with_variables(identity, secret, kind, &|_| None).map(drop)
        };
        let google = r#"{"private_key": "k", "private_key_id": "i", "client_email": "e"}"#;
        for (identity, secret, kind) in [
            ("s3 access key", Some("id:secret"), StoreKind::S3),
            (AZURE_SIGNATURE, Some("?sv=1&sig=2"), StoreKind::Azure),
            ("acct", Some("aGlkZGVu"), StoreKind::Azure),
            (GOOGLE_ACCOUNT, Some(google), StoreKind::Google),
        ] {
            for other in [StoreKind::S3, StoreKind::Azure, StoreKind::Google] {
                let expected = match other == kind {
                    true => Ok(()),
                    false => Err(KeyError::OtherStore),
                };
                assert_eq!(with(identity, secret, other), expected, "{identity}");
                assert_eq!(with(MANAGED_IDENTITY, None, other), Ok(()));
            }
        }
        let azure = |identity, secret| with(identity, secret, StoreKind::Azure);
        assert_eq!(azure(MANAGED_IDENTITY, Some("x")), Err(KeyError::Needless));
        assert_eq!(azure("nothing known", Some("x")), Err(KeyError::Identity));
        assert_eq!(azure("acct", None), Err(KeyError::Identity));
        assert!(matches!(
            azure("acct", Some("no base")),
            Err(KeyError::Form(_))
        ));
        assert!(matches!(
            azure(AZURE_SIGNATURE, Some("sv=1")),
            Err(KeyError::Form(_))
        ));
        let half = with(GOOGLE_ACCOUNT, Some("{}"), StoreKind::Google);
        assert!(matches!(half, Err(KeyError::Form(_))));
    }

    #[test]
    fn a_token_of_the_environment_is_sent_to_no_other_host_or_account() {
        let key = [("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=2")];
        let own = [&key[..], &[("AZURE_STORAGE_ACCOUNT", "acct")]].concat();
        let plain = [
            &key[..],
            &[("AZURE_STORAGE_ENDPOINT", "http://127.0.0.1:1/acct")],
        ]
        .concat();
        let check = |variables: &[(&str, &str)], url| {
            let found = access_of(StoreKind::Azure, variables).unwrap();
            found.check(&ObjectUrl::parse(url).unwrap()).is_ok()
        };
        assert!(check(&own, "az://acct/cont/x"));
        assert!(!check(&own, "az://other/cont/x"));
        assert!(!check(&key, "az://evil.example/acct/cont/x"));
        assert!(!check(&key, "az://127.0.0.1:1/acct/cont/x"));
        assert!(check(&plain, "az://127.0.0.1:1/acct/cont/x"));
        assert!(!check(&key, "s3://h:1/bucket/x"));
        // A signature of a request is of no use to its receiver.
        let account = [("AZURE_STORAGE_KEY", "aGlkZGVu")];
        assert!(check(&account, "az://127.0.0.1:1/acct/cont/x"));
    }

    #[test]
    fn what_is_meant_for_an_emulator_does_not_go_to_google() {
        let url = ObjectUrl::parse("gs://bucket/x").unwrap();
        let check = |host: &str, further: &[(&str, &str)]| {
            let key = [("GOOGLE_APPLICATION_CREDENTIALS", "key.json")];
            let emulator = [("STORAGE_EMULATOR_HOST", host)];
            let found = access_of(StoreKind::Google, &[&key[..], &emulator, further].concat());
            let found = found.unwrap();
            let checked = found.check(&url);
            checked.map(|()| found.plain_authority().map(str::to_owned))
        };
        assert_eq!(check("", &[]), Ok(None));
        assert_eq!(
            check("localhost:1", &[]),
            Ok(Some("localhost:1".to_owned()))
        );
        let allowed = [("GOOGLE_ALLOW_HTTP", "true")];
        assert!(check("http://gcs.lan:1", &[]).is_err());
        assert!(check("http://gcs.lan:1", &allowed).is_ok());
        assert!(check("https://gcs.lan:1", &allowed).is_err());
    }

    #[test]
    fn only_this_machine_is_reached_without_tls_unless_that_is_allowed() {
        let plain = |url, extra: &[(&str, &str)]| {
            let endpoint = [("AWS_ENDPOINT_URL", url)];
            let found = access(&[&KEY[..], &endpoint, extra].concat()).unwrap();
            found.is_plain("127.0.0.1:9000") || found.is_plain("minio.lan:9000")
        };
        assert!(plain("http://127.0.0.1:9000", &[]));
        assert!(plain("http://127.0.0.1:9000/", &[]));
        assert!(!plain("http://127.0.0.1:9001", &[]));
        assert!(!plain("https://127.0.0.1:9000", &[]));
        assert!(!plain("http://minio.lan:9000", &[]));
        assert!(plain(
            "http://minio.lan:9000",
            &[("AWS_ALLOW_HTTP", "true")]
        ));
        assert!(is_loopback("http://[::1]:9000/x") && is_loopback("http://localhost"));
        assert!(!is_loopback("http://localhost.example.com"));
    }
}
