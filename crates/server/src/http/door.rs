//! Which requests are answered, and the headers of every answer.
//!
//! On loopback no login protects the answers, so the browser's rules must: a page of another site may send requests
//! to this address, but it may not read the answers, unless its own name is made to point here (DNS rebinding).
//! Then the header Host has that name, and the request is refused.

use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, HOST, REFERRER_POLICY,
    TRANSFER_ENCODING, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::login::{self, Visitor};
use super::route::Web;

/// Time for the making of an answer.
const ANSWER_TIME: Duration = Duration::from_secs(30);

/// The policy of everything but the page, which has its own.
const POLICY: &str = "default-src 'none'; frame-ancestors 'none'";

/// Refuses a request, or has it answered.
pub(super) async fn keeper(
    State(web): State<Arc<Web>>,
    Extension(visitor): Extension<Visitor>,
    request: Request,
    next: Next,
) -> Response {
    let refused = match refusal(&request, visitor) {
        Some(refused) => Some(refused),
        None if visitor.must_log_in => login::refusal(&web, visitor, request.headers()).await,
        None => None,
    };
    let mut answer = match refused {
        Some(refused) => refused,
        None => match tokio::time::timeout(ANSWER_TIME, next.run(request)).await {
            Ok(answer) => answer,
            Err(_) => refuse(
                StatusCode::SERVICE_UNAVAILABLE,
                "the answer took too long: media may not answer, or many ask at once",
            ),
        },
    };
    protect(answer.headers_mut());
    answer
}

/// Why a request is not answered.
fn refusal(request: &Request, visitor: Visitor) -> Option<Response> {
    let headers = request.headers();
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refused = refuse(
            StatusCode::METHOD_NOT_ALLOWED,
            "nothing can be changed here: only GET and HEAD are answered",
        );
        let allowed = HeaderValue::from_static("GET, HEAD");
        refused.headers_mut().insert(ALLOW, allowed);
        return Some(refused);
    }
    // A site whose name is made to point here has no password for that name.
    if !visitor.must_log_in && !is_own_host(request.uri(), headers) {
        return Some(refuse(
            StatusCode::FORBIDDEN,
            "this address answers only to localhost, 127.0.0.1 and [::1]",
        ));
    }
    if has_body(headers) {
        return Some(refuse(
            StatusCode::PAYLOAD_TOO_LARGE,
            "a request has no body here",
        ));
    }
    if is_of_another_site(headers) {
        return Some(refuse(
            StatusCode::FORBIDDEN,
            "pages of other sites are not answered",
        ));
    }
    None
}

/// A refusal in words.
pub(super) fn refuse(status: StatusCode, text: &'static str) -> Response {
    (status, text).into_response()
}

/// Whether the request is for a name that only this machine has.
fn is_own_host(uri: &Uri, headers: &HeaderMap) -> bool {
    let is_own = |authority: &Authority| {
        let host = authority.host();
        // A user before the host is for no server.
        !authority.as_str().contains('@')
            && (host.eq_ignore_ascii_case("localhost") || host == "127.0.0.1" || host == "[::1]")
    };
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let host: Option<Authority> = host.to_str().ok().and_then(|host| host.parse().ok());
    host.is_some_and(|host| is_own(&host)) && uri.authority().is_none_or(is_own)
}

fn has_body(headers: &HeaderMap) -> bool {
    let length = headers.get(CONTENT_LENGTH);
    headers.contains_key(TRANSFER_ENCODING) || length.is_some_and(|length| length != "0")
}

/// Whether a browser says that a page of another site asks, other than by a link.
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let is = |name: &str, value: &str| headers.get(name).is_some_and(|found| found == value);
    (is("sec-fetch-site", "cross-site") || is("sec-fetch-site", "same-site"))
        && !is("sec-fetch-mode", "navigate")
}

fn protect(headers: &mut HeaderMap) {
    let always = [
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in always {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(POLICY));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_answered(uri: &str, hosts: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().unwrap());
        }
        is_own_host(&uri.parse().unwrap(), &headers)
    }

    #[test]
    fn only_names_of_this_machine_are_answered() {
        for own in [
            "localhost",
            "LocalHost:8433",
            "127.0.0.1:1",
            "[::1]:8433",
            "[::1]",
        ] {
            assert!(is_answered("/", &[own]), "{own}");
        }
        for other in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil.example",
            "evil.example@127.0.0.1",
            "192.168.0.1",
            "[::2]",
            "",
        ] {
            assert!(!is_answered("/", &[other]), "{other}");
        }
        assert!(!is_answered("/", &[]));
        assert!(!is_answered("/", &["localhost", "evil.example"]));
        assert!(!is_answered("http://evil.example/", &["localhost"]));
        assert!(is_answered("http://localhost:1/", &["localhost"]));
    }

    #[test]
    fn a_link_on_another_site_is_followed_but_its_scripts_read_nothing() {
        let asked = |site: &str, mode: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("sec-fetch-site", site.parse().unwrap());
            headers.insert("sec-fetch-mode", mode.parse().unwrap());
            is_of_another_site(&headers)
        };
        assert!(!asked("same-origin", "cors"));
        assert!(!asked("none", "navigate"));
        assert!(!asked("cross-site", "navigate"));
        assert!(asked("cross-site", "no-cors"));
        assert!(asked("same-site", "cors"));
        assert!(!is_of_another_site(&HeaderMap::new()));
    }
}
