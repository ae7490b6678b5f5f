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

    /// Who this is, if the password was right lately; `None` if it is to be checked.
    fn known(&self, instance: &Instance, name: &str, password: &str) -> Option<Checked> {
        let catalog = instance.catalog();
        let login = match catalog.login(name) {
            Ok(login) => login?,
            Err(error) => return Some(Err(error.to_string())),
        };
        let remembered = self.remembered(&self.digest(name, password), Instant::now());
        if remembered? != login.password_hash {
            return None;
        }
        // One that is disabled is none.
        let found = Principal::of_login(catalog, name).map_err(|error| error.to_string());
        Some(found.and_then(|found| found.ok_or_else(|| "the login is disabled".to_owned())))
    }

    /// Checks the password, which takes its time.
    fn check(&self, instance: &Instance, name: &str, password: &str) -> Checked {
        let catalog = instance.catalog();
        let login = catalog.login(name).map_err(|error| error.to_string())?;
        let principal =
            authenticate(catalog, name, password).map_err(|refusal| refusal.to_string())?;
        if let Some(login) = login {
            let digest = self.digest(name, password);
            self.remember(digest, login.password_hash, Instant::now());
        }
        Ok(principal)
    }
}

/// Who this is, or why nobody is let in, for the log.
type Checked = Result<Principal, String>;

/// Runs `ask` where it may wait for the catalog.
async fn aside<T: Send + 'static>(
    web: &Arc<Web>,
    (name, password): &(String, String),
    ask: fn(&Logins, &Instance, &str, &str) -> T,
) -> Result<T, String> {
    let (web, name, password) = (Arc::clone(web), name.clone(), password.clone());
    let asked = tokio::task::spawn_blocking(move || {
        let instance = web.shared.instance().map_err(|error| error.to_string())?;
        Ok(ask(&web.logins, &instance, &name, &password))
    });
    asked.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// Who a visitor is. Passwords that were right lately wait for nobody; of the others one is checked at a time, and the next one
/// of an address waits until the failure before it has been answered.
async fn admitted(
    web: &Arc<Web>,
    visitor: Visitor,
    credentials: &(String, String),
) -> Result<Principal, String> {
    if let Some(known) = aside(web, credentials, Logins::known).await? {
        return known;
    }
    let peer = Some(visitor.peer);
    let turns = &web.shared.turns;
    let turn = turns.of(peer);
    let held = turn.lock().await;
    // The request before it may have brought the same password.
    if let Some(known) = aside(web, credentials, Logins::known).await? {
        return known;
    }
    let checking = turns.check.lock().await;
    let checked = aside(web, credentials, Logins::check).await;
    let checked = checked.unwrap_or_else(Err);
    drop(checking);
    match &checked {
        Ok(_) => web.shared.throttle.succeeded(peer),
        Err(_) => {
            tokio::time::sleep(web.shared.throttle.failed(peer, Instant::now())).await;
        }
    }
    drop(held);
    checked
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
    let Some(credentials) = credentials(headers) else {
        return Some(unauthorized());
    };
    match admitted(web, visitor, &credentials).await {
        Ok(principal) => (!principal.may_read_history()).then(|| {
            refuse(
                StatusCode::FORBIDDEN,
                "this login may not read the history: it needs the role history_reader",
            )
        }),
        Err(reason) => {
            let (peer, login) = (visitor.peer, credentials.0);
            tracing::warn!(%peer, login, reason, "a login of the page failed");
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
