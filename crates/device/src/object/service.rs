//! What is done to requests on their way to a store, that `object_store` has no words for.
//!
//! | what | why |
//! |---|---|
//! | a condition on the request that gives an object its name | it replaces nothing, or what was found |
//! | the lock of an object, with the request that begins it | retention and legal hold |
//! | an answer to a request for a list is one | any other looks like an empty one |
//! | another signature, if the first is a minute old | a repeated request carries its first one, which a store takes for some minutes only; and a temporary key may have been renewed since |
//! | an error of TLS that would be the same again ends the request | others are tried again |
//! | so does an answer that the store does not implement it (501) | it is taken for one that passes |
//! | requests for keys of the machine go without TLS | so do the services of clouds that answer them, on addresses of this machine or its link |

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::uri::Scheme;
use http::{Method, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use object_store::client::{
    ClientOptions, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};

use super::condition::Decided;
use super::listing::ListRequest;
use super::signer::Signer;
use super::url::StoreKind;
use super::{failure, tls};

/// The age of a signature at which a request is signed again before it is repeated.
const SIGNATURE_AGE_MAX: Duration = Duration::from_secs(60);

/// Most bytes of a page of a list: of 5,000 objects with long names.
const LIST_BYTES_MAX: usize = 64 << 20;

/// Most bytes of an answer that is an error.
const ERROR_BYTES_MAX: usize = 64 << 10;

const DATE: &str = "x-amz-date";

/// Hands out the client of the process.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    pub(super) kind: StoreKind,
    pub(super) client: HttpClient,
    /// For keys of the machine.
    pub(super) plain_client: HttpClient,
    /// On which an object gets its name, once that is decided.
    pub(super) condition: Decided,
    /// Headers of requests that begin an object.
    pub(super) lock: HeaderMap,
    pub(super) signer: Arc<Signer>,
}

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Service(self.clone())))
    }
}

#[derive(Debug)]
struct Service(Connector);

#[async_trait]
impl HttpService for Service {
    async fn call(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let Connector {
            kind,
            ref client,
            ref plain_client,
            ref condition,
            ref signer,
            ..
        } = self.0;
        if !signer.is_for_store(&request) {
            return match is_of_machine(&request) {
                true => tls::answer(plain_client, request).await,
                false => tls::answer(client, request).await,
            };
        }
        let Some(condition) = condition.get().filter(|_| names(kind, &request)) else {
            return implemented(self.sent(request, false).await?).await;
        };
        let unconditional = request.clone();
        condition.put_on(&mut request);
        let answer = self.sent(request, true).await?;
        match condition.is_left_out(answer.status()) {
            true => implemented(self.sent(unconditional, false).await?).await,
            false => implemented(answer).await,
        }
    }
}

impl Service {
    /// The answer to a request to the store, to which a condition was added or not.
    async fn sent(
        &self,
        mut request: HttpRequest,
        is_conditional: bool,
    ) -> Result<HttpResponse, HttpError> {
        let Connector {
            kind,
            ref client,
            ref lock,
            ref signer,
            ..
        } = self.0;
        let is_locked = !lock.is_empty() && begins(&request);
        if is_locked {
            request.headers_mut().extend(lock.clone());
        }
        let signs = match kind {
            // The condition need not be signed.
            StoreKind::S3 => is_locked || is_old(request.headers(), Timestamp::now()),
            StoreKind::Azure => is_conditional,
            StoreKind::Google => true,
        };
        if signs {
            signer.sign(&mut request).await?;
        }
        let list = ListRequest::of(&request);
        let answer = tls::answer(client, request).await?;
        match list {
            Some(list) if answer.status().is_success() => checked(&list, answer).await,
            _ => Ok(answer),
        }
    }
}

/// The answer to a request for a list, if it is one.
async fn checked(list: &ListRequest, answer: HttpResponse) -> Result<HttpResponse, HttpError> {
    let broken = |error| HttpError::new(HttpErrorKind::Interrupted, io::Error::other(error));
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, LIST_BYTES_MAX).collect().await;
    let bytes = body.map_err(|error| broken(error.to_string()))?.to_bytes();
    let wrong = |why| HttpError::new(HttpErrorKind::Decode, io::Error::other(why));
    list.check(&bytes).map_err(wrong)?;
    Ok(HttpResponse::from_parts(
        head,
        HttpResponseBody::from(bytes),
    ))
}

/// The answer, unless the store does not implement what is asked of it: `object_store` would ask again and again.
async fn implemented(answer: HttpResponse) -> Result<HttpResponse, HttpError> {
    if answer.status() != StatusCode::NOT_IMPLEMENTED {
        return Ok(answer);
    }
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, ERROR_BYTES_MAX).collect().await;
    let bytes = body
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let refused = failure::refused(head.status, &String::from_utf8_lossy(&bytes));
    Err(HttpError::new(HttpErrorKind::Unknown, refused))
}

/// Whether it asks this machine, or one that only this link reaches, for a key.
fn is_of_machine(request: &HttpRequest) -> bool {
    let uri = request.uri();
    let host = uri.host().unwrap_or_default();
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let is_near = match address {
        Some(IpAddr::V4(four)) => four.is_loopback() || four.is_link_local(),
        Some(IpAddr::V6(six)) => six.is_loopback() || six.is_unique_local(),
        None => matches!(host, "localhost" | "metadata.google.internal" | "metadata"),
    };
    uri.scheme() == Some(&Scheme::HTTP) && is_near
}

/// Whether the request gives an object its name: it completes an upload, or puts a whole object.
fn names(kind: StoreKind, request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    match *request.method() {
        // Google's ignores the condition on a completion.
        Method::POST => kind == StoreKind::S3 && query.starts_with("uploadId="),
        Method::PUT if kind == StoreKind::Azure => {
            !query.split('&').any(|part| part == "comp=block")
        }
        Method::PUT => !query.contains("partNumber="),
        _ => false,
    }
}

/// Whether the request begins an upload, or puts a whole object.
fn begins(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    match *request.method() {
        Method::POST => query.starts_with("uploads"),
        Method::PUT => !query.contains("partNumber="),
        _ => false,
    }
}

/// Whether the request was signed a while before `now`.
fn is_old(headers: &HeaderMap, now: Timestamp) -> bool {
    let signed = headers.get(DATE).and_then(|value| value.to_str().ok());
    let signed = signed.and_then(|text| DateTime::strptime("%Y%m%dT%H%M%SZ", text).ok());
    let signed = signed.and_then(|date| date.to_zoned(TimeZone::UTC).ok());
    signed.is_some_and(|signed| {
        let age = now.duration_since(signed.timestamp());
        age > SIGNATURE_AGE_MAX
            .try_into()
            .unwrap_or(jiff::SignedDuration::MAX)
    })
}

/// The headers of a lock.
pub(super) fn headers(values: Vec<(&'static str, String)>) -> HeaderMap {
    let values = values.into_iter().filter_map(|(name, value)| {
        let value = HeaderValue::from_str(&value).ok()?;
        Some((HeaderName::from_static(name), value))
    });
    values.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use http::Request;
    use object_store::StaticCredentialProvider;
    use object_store::aws::{AwsCredential, AwsCredentialProvider};
    use object_store::client::{HttpRequestBody, HttpResponseBody};

    use http::header::{IF_MATCH, IF_NONE_MATCH};

    use super::*;
    use crate::object::Found;
    use crate::object::condition::Condition;
    use crate::object::url::ObjectUrl;

    const DIGEST: &str = "x-amz-content-sha256";

    /// Keeps the headers that it is sent, and answers with this status.
    #[derive(Debug, Default)]
    struct Sent(Arc<Mutex<Vec<HeaderMap>>>, StatusCode);

    #[async_trait]
    impl HttpService for Sent {
        async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
            self.0.lock().unwrap().push(request.headers().clone());
            let mut answer = HttpResponse::new(HttpResponseBody::from(bytes::Bytes::new()));
            *answer.status_mut() = self.1;
            Ok(answer)
        }
    }

    fn request(method: Method, query: &str, date: &str) -> HttpRequest {
        Request::builder()
            .method(method)
            .uri(format!("https://store/b/k{query}"))
            .header(DATE, date)
            .header("authorization", "the first")
            .header(DIGEST, "0f".repeat(32))
            .body(HttpRequestBody::empty())
            .unwrap()
    }

    fn sent(lock: HeaderMap, request: HttpRequest) -> HeaderMap {
        let (answer, mut all) = answered(StatusCode::OK, None, lock, request);
        answer.unwrap();
        all.pop().unwrap()
    }

    /// The answer to a request to a store that answers so, and what the store was sent.
    fn answered(
        status: StatusCode,
        condition: Option<Condition>,
        lock: HeaderMap,
        request: HttpRequest,
    ) -> (Result<HttpResponse, HttpError>, Vec<HeaderMap>) {
        let seen = Sent(Arc::default(), status);
        let all = Arc::clone(&seen.0);
        let decided = Decided::default();
        if let Some(condition) = condition {
            decided.set(condition).unwrap();
        }
        let url = ObjectUrl::parse_any("s3://store:1/bucket/").unwrap();
        let signer = Signer::new(&url, "r", "https://store");
        signer.set_s3(
            &(Arc::new(StaticCredentialProvider::new(AwsCredential {
                key_id: "id".to_owned(),
                secret_key: "hidden".to_owned(),
                token: None,
            })) as AwsCredentialProvider),
        );
        assert!(!format!("{signer:?}").contains("hidden"));
        let connector = Connector {
            kind: StoreKind::S3,
            plain_client: HttpClient::new(Sent::default()),
            client: HttpClient::new(seen),
            condition: decided,
            lock,
            signer,
        };
        let client = connector.connect(&ClientOptions::new()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let answer = runtime.unwrap().block_on(client.execute(request));
        let all = all.lock().unwrap().clone();
        (answer, all)
    }

    fn now() -> String {
        Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
    }

    #[test]
    fn a_request_that_is_repeated_late_is_signed_again_with_its_digest() {
        let fresh = request(Method::PUT, "?partNumber=1&uploadId=u", &now());
        let headers = sent(HeaderMap::new(), fresh);
        assert_eq!(headers["authorization"], "the first");
        let late = request(Method::PUT, "?partNumber=1&uploadId=u", "20261122T030405Z");
        let headers = sent(HeaderMap::new(), late);
        assert_ne!(headers["authorization"], "the first");
        assert_ne!(headers[DATE], "20261122T030405Z");
        assert_eq!(headers[DIGEST], "0f".repeat(32));
    }

    #[test]
    fn what_begins_an_object_is_locked_and_signed_and_nothing_else() {
        let lock = || headers(vec![("x-amz-object-lock-mode", "GOVERNANCE".to_owned())]);
        for (method, query, is_locked) in [
            (Method::POST, "?uploads=", true),
            (Method::PUT, "", true),
            (Method::PUT, "?partNumber=1&uploadId=u", false),
            (Method::POST, "?uploadId=u", false),
            (Method::GET, "", false),
        ] {
            let headers = sent(lock(), request(method.clone(), query, &now()));
            let has = headers.contains_key("x-amz-object-lock-mode");
            assert_eq!(has, is_locked, "{method} {query}");
            let authorization = headers["authorization"].to_str().unwrap();
            let is_signed = authorization.contains("x-amz-object-lock-mode");
            assert_eq!(is_signed, is_locked, "{method} {query}");
        }
    }

    fn found(tag: &str) -> Found {
        Found {
            bytes: 1,
            tag: Some(tag.to_owned()),
            version: None,
            write_id: None,
        }
    }

    #[test]
    fn only_a_request_that_gives_an_object_its_name_has_the_condition() {
        for (method, query, names) in [
            (Method::POST, "?uploadId=u", true),
            (Method::PUT, "", true),
            (Method::POST, "?uploads=", false),
            (Method::PUT, "?partNumber=1&uploadId=u", false),
            (Method::HEAD, "", false),
        ] {
            let still = Condition::still(StoreKind::S3, &found("a tag")).unwrap();
            let absent = Condition::absent(StoreKind::S3);
            for (condition, name, value) in
                [(still, IF_MATCH, "\"a tag\""), (absent, IF_NONE_MATCH, "*")]
            {
                let request = request(method.clone(), query, &now());
                let ok = StatusCode::OK;
                let (_, all) = answered(ok, Some(condition), HeaderMap::new(), request);
                let sent = all[0].get(&name).map(|value| value.to_str().unwrap());
                assert_eq!(sent, names.then_some(value), "{method} {query}");
            }
        }
        let undecided = sent(HeaderMap::new(), request(Method::PUT, "", &now()));
        assert!(!undecided.contains_key(IF_NONE_MATCH) && !undecided.contains_key(IF_MATCH));
    }

    #[test]
    fn a_condition_that_the_store_does_not_know_is_left_out_if_it_may_be_and_nothing_is_repeated() {
        let absent = || Condition::absent(StoreKind::S3);
        for (condition, requests) in [
            (None, 1),
            (Some(absent()), 1),
            (Some(absent().dispensable()), 2),
        ] {
            let request = request(Method::POST, "?uploadId=u", &now());
            let unknown = StatusCode::NOT_IMPLEMENTED;
            let (answer, all) = answered(unknown, condition, HeaderMap::new(), request);
            assert_eq!(all.len(), requests);
            let is_conditional = all.last().unwrap().contains_key(IF_NONE_MATCH);
            assert!(!is_conditional || requests == 1);
            let error = answer.unwrap_err();
            assert_eq!(error.kind(), HttpErrorKind::Unknown);
            let says = "the store answered 501 Not Implemented";
            assert!(failure::innermost(&error).starts_with(says), "{error}");
        }
    }
}
