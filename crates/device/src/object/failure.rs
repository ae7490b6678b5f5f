//! The errors of a store, in its own words and with what the user can do.

use std::io;

use object_store::Error;
use object_store::client::HttpError;

use super::hidden;

/// What to do about an answer of a store.
const ADVICE: &[(&str, &str)] = &[
    (
        "AccessDenied",
        "the key needs the rights GetObject, PutObject and AbortMultipartUpload on it, and ListBucket on its bucket; to delete \
         and to clean up, DeleteObject and ListBucketMultipartUploads; of Google's, those of the role Storage Object Admin",
    ),
    (
        "AuthenticationFailed",
        "check the account key, or the shared access signature and when it ends, and the clock of this machine",
    ),
    (
        "AuthorizationFailure",
        "the account does not let this machine in, or the signature does not allow that",
    ),
    (
        "AuthorizationHeaderMalformed",
        "name the region in AWS_REGION, or in the host",
    ),
    (
        "AuthorizationPermissionMismatch",
        "the signature or identity needs the rights read, create, write, delete and list; an identity has them by the \
         role Storage Blob Data Contributor",
    ),
    (
        "BlobImmutableDueToPolicy",
        "a policy of the container keeps it; wait until that ends",
    ),
    (
        "ContainerNotFound",
        "create the container, or correct its name",
    ),
    ("ExpiredToken", "renew AWS_SESSION_TOKEN with its key"),
    ("InvalidAccessKeyId", "check AWS_ACCESS_KEY_ID"),
    (
        "InvalidBlockList",
        "another backup has written this name meanwhile; name another one",
    ),
    ("NoSuchBucket", "create the bucket, or correct its name"),
    (
        "NotImplemented",
        "the store does not implement that; one that knows no conditions takes backups with FORMAT only",
    ),
    (
        "PermanentRedirect",
        "the bucket is in another region: name the host of that region",
    ),
    (
        "RequestTimeTooSkewed",
        "set the clock of this machine, which differs from the store's by more than 15 minutes",
    ),
    (
        "ServerBusy",
        "the store is asked too much; try again later, or use fewer stripes",
    ),
    ("SignatureDoesNotMatch", "check AWS_SECRET_ACCESS_KEY"),
    (
        "SlowDown",
        "the store is asked too much; try again later, or use fewer stripes",
    ),
];

/// Status codes of answers without a body, as those to questions of existence have.
const STATUS_ADVICE: &[(&str, &str)] = &[
    (
        "301",
        "the bucket is in another region: name the host of that region",
    ),
    (
        "400",
        "check the key; of S3, the region (AWS_REGION) and, if the key is temporary, AWS_SESSION_TOKEN",
    ),
    ("401", "check the key"),
    (
        "403",
        "check the key (a temporary key or signature: whether it has ended), its rights (GetObject, PutObject; ListBucket, or what is \
         missing cannot be told from what is forbidden; of others: read, write and list) and the clock of this machine",
    ),
    ("501", "the store does not implement what is asked of it"),
];

/// Codes that say that an object is missing. Others of the same status say that of its bucket or of an upload, and a page of
/// something between here and the store says nothing of it.
const NO_OBJECT: &[&str] = &["NoSuchKey", "BlobNotFound"];

/// What is before the status of an answer in the text of an error.
const BEFORE_STATUS: &str = "status code: ";

/// Whether the store says that there is no such object. `None` if it answers 404 without a word: then its bucket may be
/// missing as well.
pub(super) fn says_missing(error: &Error) -> Option<bool> {
    let Error::NotFound { source, .. } = error else {
        return Some(false);
    };
    let whole = source.to_string();
    let Some((_, answer)) = whole.split_once(BEFORE_STATUS) else {
        return Some(false);
    };
    let body = answer.split_once(": ").map_or("", |(_, body)| body.trim());
    match body.is_empty() {
        true => None,
        false => Some(names_no_object(body)),
    }
}

fn names_no_object(body: &str) -> bool {
    element(body, "Code").is_some_and(|code| NO_OBJECT.contains(&code))
}

/// The error of the store as one of a device; `NotFound` only if it says that the object is missing. Never contains a secret,
/// even if the store repeats one.
pub(super) fn reported(error: &Error) -> io::Error {
    let kind = match error {
        Error::NotFound { .. } if says_missing(error) == Some(true) => io::ErrorKind::NotFound,
        Error::AlreadyExists { .. } | Error::Precondition { .. } | Error::NotModified { .. } => {
            io::ErrorKind::AlreadyExists
        }
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, hidden::masked(text(error)))
}

/// Why there is no answer to a request that was made here.
pub(super) fn unanswered(error: &HttpError) -> io::Error {
    io::Error::other(hidden::masked(unreached(innermost(error))))
}

/// A cause without an answer of the store. What was found out here says itself what the store does.
fn unreached(cause: String) -> String {
    match cause.starts_with("the store ") {
        true => cause,
        false => format!("the store could not be reached: {cause}"),
    }
}

/// An answer that is no success, to a request that was made here.
pub(super) fn refused(status: http::StatusCode, body: &str) -> io::Error {
    let kind = match status.as_u16() {
        401 | 403 => io::ErrorKind::PermissionDenied,
        404 if names_no_object(body) => io::ErrorKind::NotFound,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, hidden::masked(answered(body, &status.to_string())))
}

fn text(error: &Error) -> String {
    let whole = error.to_string();
    let answer = match status(&whole) {
        Some(status) => answered(&whole, status),
        None if whole.contains("without LOCATION") => {
            let advice = advice(STATUS_ADVICE, "301").unwrap_or_default();
            format!("the store answered with a redirection to nowhere: {advice}")
        }
        None if matches!(error, Error::InvalidPath { .. }) => format!(
            "the store lists an object that has no name here ({}): move or delete it, or name another folder",
            innermost(error)
        ),
        None => unreached(innermost(error)),
    };
    match retries(&whole) {
        Some(retries) => format!("{answer} (given up after {retries} retries)"),
        None => answer,
    }
}

/// What the store said.
fn answered(whole: &str, status: &str) -> String {
    let code = element(whole, "Code");
    let mut text = format!("the store answered {}", status.trim_end());
    if let Some(code) = code {
        text = format!("{text}, {code}");
    }
    if let Some(message) = element(whole, "Message") {
        text = format!("{text}: {}", message.trim_end_matches('.'));
    }
    if let Some(request) = element(whole, "RequestId").or_else(|| request_of_azure(whole)) {
        text = format!("{text} (request {request})");
    }
    let number = status.split(' ').next().unwrap_or_default();
    let advice = match code {
        Some(code) => advice(ADVICE, code),
        None => advice(STATUS_ADVICE, number),
    };
    match advice {
        Some(advice) => format!("{text}; {advice}"),
        None => text,
    }
}

fn advice(table: &[(&str, &'static str)], found: &str) -> Option<&'static str> {
    let row = table.iter().find(|(known, _)| *known == found)?;
    Some(row.1)
}

/// `403 Forbidden` out of the text of an error.
fn status(whole: &str) -> Option<&str> {
    match whole.find(BEFORE_STATUS) {
        Some(at) => whole[at + BEFORE_STATUS.len()..].split(':').next(),
        // An error in the body of an answer that began as a success.
        None => whole
            .contains("returned error response")
            .then_some("200 OK"),
    }
}

/// The content of an element of the answer, without anything that is not text.
fn element<'a>(whole: &'a str, name: &str) -> Option<&'a str> {
    const LENGTH_MAX: usize = 300;
    let (_, rest) = whole.split_once(&format!("<{name}>"))?;
    let (content, _) = rest.split_once(&format!("</{name}>"))?;
    // Azure's has more lines: the number of the request, and the time.
    let content = content.lines().next()?.trim_end();
    let is_text = !content.is_empty() && !content.chars().any(char::is_control);
    (is_text && content.len() <= LENGTH_MAX).then_some(content)
}

/// `RequestId:...` on a line of its own in the message.
fn request_of_azure(whole: &str) -> Option<&str> {
    let (_, rest) = whole.split_once("\nRequestId:")?;
    let request = rest.lines().next()?.trim_end();
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '-';
    (!request.is_empty() && request.len() <= 64 && request.chars().all(letters)).then_some(request)
}

fn retries(whole: &str) -> Option<&str> {
    let (_, rest) = whole.split_once(", after ")?;
    let (number, _) = rest.split_once(" retries")?;
    number
        .bytes()
        .all(|digit| digit.is_ascii_digit())
        .then_some(number)
}

/// The cause of all the others: the layers above repeat themselves.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stores_words_are_quoted_with_what_to_do() {
        let body = "Error performing PUT http://h:1/b/k in 1.2ms, after 6 retries, max_retries: 6, \
                    retry_timeout: 15s  - Server returned non-2xx status code: 403 Forbidden: \
                    <Error><Code>RequestTimeTooSkewed</Code><Message>The difference is large.</Message>\
                    <RequestId>4711</RequestId></Error>";
        let error = Error::PermissionDenied {
            path: "k".to_owned(),
            source: body.into(),
        };
        let found = reported(&error);
        assert_eq!(found.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(
            found.to_string(),
            "the store answered 403 Forbidden, RequestTimeTooSkewed: The difference is large (request \
             4711); set the clock of this machine, which differs from the store's by more than 15 \
             minutes (given up after 6 retries)"
        );
    }

    #[test]
    fn only_an_object_is_said_to_be_missing_and_neither_its_bucket_nor_by_a_proxy() {
        let coded =
            |code: &str| format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
        for (body, expected) in [
            (coded("NoSuchKey"), Some(true)),
            (format!("\u{feff}{}", coded("BlobNotFound")), Some(true)),
            (coded("NoSuchBucket"), Some(false)),
            (coded("ContainerNotFound"), Some(false)),
            (
                "<html><body>nothing here</body></html>".to_owned(),
                Some(false),
            ),
            (String::new(), None),
        ] {
            let source = format!(
                "Error performing GET http://h:1/b/k in 1.2ms - Server returned non-2xx status code: 404 Not \
                 Found: {body}"
            );
            let error = Error::NotFound {
                path: "k".to_owned(),
                source: source.into(),
            };
            assert_eq!(says_missing(&error), expected, "{body}");
            let is_missing = reported(&error).kind() == io::ErrorKind::NotFound;
            assert_eq!(is_missing, expected == Some(true), "{body}");
            let refused = refused(http::StatusCode::NOT_FOUND, &body);
            assert_eq!(refused.kind() == io::ErrorKind::NotFound, is_missing);
        }
    }
}
