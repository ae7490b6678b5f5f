//! Who may look from elsewhere: HTTP's Basic authentication, with the logins of the instance.
//!
//! A browser sends the password with every request, and to check one takes 64 MB and a part of a second. So a
//! password that was right is remembered for a while, as a digest under a key that only this process has. It counts
//! for as long as the login is what it was: its hash in the catalog is compared at each request.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use windlass_base::Guid;
use windlass_instance::{Instance, Principal, authenticate};

use super::door::refuse;
use super::route::Web;

/// How long a password that was right is remembered.
const REMEMBERED: Duration = Duration::from_secs(600);
/// Passwords that are remembered.
const REMEMBERED_MAX: usize = 256;
/// The longest name and password.
const CREDENTIALS_BYTES: usize = 1024;

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visitor {
    pub(super) peer: IpAddr,
    /// Whether its listener is for everybody who can reach this machine.
    pub(super) must_log_in: bool,
}

/// A digest of a name and its password.
type Digest = [u8; 32];

/// The passwords that were right.
#[derive(Debug)]
pub(super) struct Logins {
    key: Digest,
    right: Mutex<HashMap<Digest, (Instant, String)>>,
}

impl Logins {
    pub(super) fn new() -> Self {
        let (first, second) = (Guid::random().to_stored(), Guid::random().to_stored());
        let mut key = [0; 32];
        key[..16].copy_from_slice(&first);
        key[16..].copy_from_slice(&second);
        Self {
            key,
            right: Mutex::default(),
        }
    }

    fn digest(&self, name: &str, password: &str) -> Digest {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher.update(password.as_bytes());
        *hasher.finalize().as_bytes()
    }

    /// The hash in the catalog with which the password was right.
    fn remembered(&self, digest: &Digest, now: Instant) -> Option<String> {
        let right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, hash) = right.get(digest)?;
        (now.duration_since(*since) < REMEMBERED).then(|| hash.clone())
    }

    fn remember(&self, digest: Digest, hash: String, now: Instant) {
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        right.retain(|_, (since, _)| now.duration_since(*since) < REMEMBERED);
        if right.len() < REMEMBERED_MAX {
            right.insert(digest, (now, hash));
        }
    }

    /// Who this is; an error says why nobody is let in, for the log.
    fn admit(&self, instance: &Instance, name: &str, password: &str) -> Result<Principal, String> {
        let catalog = instance.catalog();
        let digest = self.digest(name, password);
        let now = Instant::now();
        let login = catalog.login(name).map_err(|error| error.to_string())?;
        let hash = login.map(|login| login.password_hash);
        if hash.is_some() && self.remembered(&digest, now) == hash {
            // One that is disabled is none.
            let found = Principal::of_login(catalog, name).map_err(|error| error.to_string())?;
            return found.ok_or_else(|| "the login is disabled".to_owned());
        }
        let principal =
            authenticate(catalog, name, password).map_err(|refusal| refusal.to_string())?;
        if let Some(hash) = hash {
            self.remember(digest, hash, now);
        }
        Ok(principal)
    }
}

/// The name and password of a request.
fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let text = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = text.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("Basic") || encoded.len() > CREDENTIALS_BYTES {
        return None;
    }
    let decoded = BASE64_STANDARD.decode(encoded.trim()).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (name, password) = text.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

/// Why a request is not answered; `None` for a login that may read the history.
pub(super) async fn refusal(
    web: &Arc<Web>,
    visitor: Visitor,
    headers: &HeaderMap,
) -> Option<Response> {
    let Some((name, password)) = credentials(headers) else {
        return Some(unauthorized());
    };
    let (own, login) = (Arc::clone(web), name.clone());
    let checked = tokio::task::spawn_blocking(move || {
        let instance = own.shared.instance().map_err(|error| error.to_string())?;
        own.logins.admit(&instance, &login, &password)
    });
    let checked = checked.await.unwrap_or_else(|error| Err(error.to_string()));
    let throttle = &web.shared.throttle;
    match checked {
        Ok(principal) => {
            throttle.succeeded(Some(visitor.peer));
            (!principal.may_read_history()).then(|| {
                refuse(
                    StatusCode::FORBIDDEN,
                    "this login may not read the history: it needs the role history_reader",
                )
            })
        }
        Err(reason) => {
            tracing::warn!(peer = %visitor.peer, login = name, reason, "a login of the page failed");
            let wait = throttle.failed(Some(visitor.peer), Instant::now());
            tokio::time::sleep(wait).await;
            Some(unauthorized())
        }
    }
}

fn unauthorized() -> Response {
    let mut refused = refuse(
        StatusCode::UNAUTHORIZED,
        "a login of this instance is needed, with the role history_reader or sysadmin",
    );
    let asked = HeaderValue::from_static("Basic realm=\"Windlass\", charset=\"UTF-8\"");
    refused.headers_mut().insert(WWW_AUTHENTICATE, asked);
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(header: &str) -> Option<(String, String)> {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, header.parse().unwrap());
        credentials(&headers)
    }

    #[test]
    fn a_password_may_have_colons_and_any_characters() {
        let encoded = BASE64_STANDARD.encode("Ada:a:ü b");
        let expected = Some(("Ada".to_owned(), "a:ü b".to_owned()));
        assert_eq!(of(&format!("Basic {encoded}")), expected);
        assert_eq!(of(&format!("basic  {encoded}")), expected);
        for wrong in ["Basic", "Basic !", "Bearer QWRh", "Basic QWRh"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
        let long = BASE64_STANDARD.encode("x:".repeat(2000));
        assert_eq!(of(&format!("Basic {long}")), None);
    }

    #[test]
    fn a_password_is_remembered_for_its_login_and_hash_and_not_for_ever() {
        let logins = Logins::new();
        let now = Instant::now();
        let digest = logins.digest("Ada", "secret");
        logins.remember(digest, "hash".to_owned(), now);
        assert_eq!(logins.remembered(&digest, now).as_deref(), Some("hash"));
        assert_eq!(logins.remembered(&digest, now + REMEMBERED), None);
        for (name, password) in [("Ada", "Secret"), ("Adas", "ecret"), ("Bob", "secret")] {
            let other = logins.digest(name, password);
            assert_eq!(logins.remembered(&other, now), None, "{name}");
        }
        assert_ne!(Logins::new().digest("Ada", "secret"), digest);
        for number in 0..2 * REMEMBERED_MAX {
            let digest = logins.digest("Bob", &number.to_string());
            logins.remember(digest, "hash".to_owned(), now);
        }
        assert_eq!(logins.right.lock().unwrap().len(), REMEMBERED_MAX);
    }
}
