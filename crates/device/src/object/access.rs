//! The key with which requests are signed.

use std::fmt;

/// An access key of a store, with what else decides how it is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct Access {
    pub(super) key_id: String,
    pub(super) secret: String,
    pub(super) session_token: Option<String>,
    pub(super) region: Option<String>,
    /// `http://host[:port]` of a store that is reached without TLS.
    pub(super) plain_endpoint: Option<String>,
}

/// Whether plain HTTP is allowed to other machines than this one.
const ALLOW_HTTP: &str = "AWS_ALLOW_HTTP";

/// Why the secret of a credential is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has the form 'key id:secret key'")]
pub struct KeyError;

impl Access {
    /// With the key of a credential, `id:secret`: the secret is all after the first colon. What else decides how the
    /// store is reached comes from the environment.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn with_key(key: &str) -> Result<Self, KeyError> {
        Self::with_variables(key, &|name| std::env::var(name).ok())
    }

    fn with_variables(
        key: &str,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, KeyError> {
        let (id, secret) = key.split_once(':').ok_or(KeyError)?;
        // They are sent in a header.
        let is_sent = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic());
        if !is_sent(id) || !is_sent(secret) {
            return Err(KeyError);
        }
        let given = |name: &str| match name {
            "AWS_ACCESS_KEY_ID" => Some(id.to_owned()),
            "AWS_SECRET_ACCESS_KEY" => Some(secret.to_owned()),
            // It belongs to the key of the environment.
            "AWS_SESSION_TOKEN" => None,
            other => variable(other),
        };
        Self::from_variables(&given).ok_or(KeyError)
    }

    /// From the variables of the environment that Amazon's own programs read; `None` without a key.
    pub fn from_environment() -> Option<Self> {
        Self::from_variables(&|name| std::env::var(name).ok())
    }

    fn from_variables(variable: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let filled = |name: &str| variable(name).filter(|value| !value.is_empty());
        let endpoint = filled("AWS_ENDPOINT_URL_S3").or_else(|| filled("AWS_ENDPOINT_URL"));
        let is_plain = |url: &String| {
            let allowed =
                filled(ALLOW_HTTP).is_some_and(|value| value.eq_ignore_ascii_case("true"));
            url.starts_with("http://") && (allowed || is_loopback(url))
        };
        Some(Self {
            key_id: filled("AWS_ACCESS_KEY_ID")?,
            secret: filled("AWS_SECRET_ACCESS_KEY")?,
            session_token: filled("AWS_SESSION_TOKEN"),
            region: filled("AWS_REGION").or_else(|| filled("AWS_DEFAULT_REGION")),
            plain_endpoint: endpoint.filter(is_plain),
        })
    }

    /// Whether the store at `authority` (`host[:port]`) is reached without TLS.
    pub(super) fn is_plain(&self, authority: &str) -> bool {
        let endpoint = self.plain_endpoint.as_deref();
        let endpoint = endpoint.and_then(|url| url.strip_prefix("http://"));
        endpoint.is_some_and(|endpoint| {
            endpoint
                .trim_end_matches('/')
                .eq_ignore_ascii_case(authority)
        })
    }
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
            .field("key_id", &self.key_id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(variables: &[(&str, &str)]) -> Option<Access> {
        Access::from_variables(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        })
    }

    const KEY: [(&str, &str); 2] = [
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "hidden/secret:with=signs"),
    ];

    #[test]
    fn a_key_is_whole_or_there_is_none_and_its_secret_is_not_shown() {
        assert_eq!(access(&KEY[..1]), None);
        let found = access(&KEY).unwrap();
        assert_eq!(found.secret, "hidden/secret:with=signs");
        assert!(!format!("{found:?} {found:#?}").contains("hidden"));
    }

    #[test]
    fn the_key_of_a_credential_replaces_that_of_the_environment_with_its_token() {
        let variables = [&KEY[..], &[("AWS_SESSION_TOKEN", "t"), ("AWS_REGION", "r")]].concat();
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name)?;
            Some(found.1.to_owned())
        };
        let found = Access::with_variables("other:se:cr/et+", &variable).unwrap();
        assert_eq!(
            (
                &*found.key_id,
                &*found.secret,
                found.session_token,
                found.region.as_deref()
            ),
            ("other", "se:cr/et+", None, Some("r"))
        );
        for wrong in [
            "",
            "id",
            "id:",
            ":secret",
            "i d:secret",
            "id:sec\nret",
            "id:s\u{e9}",
        ] {
            assert_eq!(
                Access::with_variables(wrong, &variable),
                Err(KeyError),
                "{wrong:?}"
            );
        }
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
        assert!(plain("http://minio.lan:9000", &[(ALLOW_HTTP, "true")]));
        assert!(is_loopback("http://[::1]:9000/x") && is_loopback("http://localhost"));
        assert!(!is_loopback("http://localhost.example.com"));
    }
}
