//! Errors of TLS that no repetition mends.
//!
//! `object_store` takes each of them for a connection that failed, and tries it again for as long as a store may be away.

use std::io;

use object_store::client::{HttpClient, HttpError, HttpErrorKind, HttpRequest, HttpResponse};

use super::failure::innermost;

/// What errors of `rustls` begin with, and what they mean.
const REASONS: &[(&str, &str)] = &[
    (
        "invalid peer certificate",
        "shows a certificate that is not accepted. Name the host that it is for, or let SSL_CERT_FILE name the certificate of \
         the authority that made it",
    ),
    (
        "received corrupt message of type InvalidContentType",
        "does not speak TLS on this port",
    ),
];

/// What is wrong if no client can be made.
///
/// Its errors hide the reason, which is that of certificates unless the system is out of something.
pub(super) fn no_client(error: &reqwest::Error) -> io::Error {
    let cause = innermost(error);
    let reason = match error.is_builder() {
        true => {
            "this machine has no certificates of authorities, so that no store can prove who it is: install the package \
                 ca-certificates, or let SSL_CERT_FILE name a file that has them"
        }
        false => "no connection can be made",
    };
    io::Error::other(format!("{reason} ({cause})"))
}

/// The answer to a request.
pub(super) async fn answer(
    client: &HttpClient,
    request: HttpRequest,
) -> Result<HttpResponse, HttpError> {
    client.execute(request).await.map_err(lasting)
}

/// The error, which is not repeated if it would be the same again.
fn lasting(error: HttpError) -> HttpError {
    match meaning(&innermost(&error)) {
        Some(meant) => HttpError::new(HttpErrorKind::Unknown, io::Error::other(meant)),
        None => error,
    }
}

fn meaning(cause: &str) -> Option<String> {
    let found = REASONS.iter().find(|(begin, _)| cause.starts_with(begin));
    found.map(|(_, meaning)| format!("the store {meaning} ({cause})"))
}
