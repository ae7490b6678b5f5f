//! Whether an answer is the list of objects that was asked for.
//!
//! A list of which a part is missing is worse than none: what is not in it looks as if it were not there, and retention deletes
//! what seems to be needed by nobody. `object_store` takes any document for a list, if need be an empty one, and the
//! end of a page for the end of the list where the store names no next page.

use http::Method;
use object_store::client::HttpRequest;
use percent_encoding::percent_decode_str;

use super::signed::{elements, plain};

/// A request for a page of a list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListRequest {
    form: &'static Form,
    /// Where the page begins; empty for the first one.
    token: String,
}

/// The words of a kind of store.
#[derive(Debug, PartialEq, Eq)]
struct Form {
    /// The query that asks for a list.
    query: &'static str,
    /// The parameter that names the page.
    parameter: &'static str,
    root: &'static str,
    /// What an answer with a next page says; the name of that page is in `next`.
    is_cut: Option<&'static str>,
    next: &'static str,
}

/// Of S3 and Google, and of Azure.
static FORMS: [Form; 2] = [
    Form {
        query: "list-type=2",
        parameter: "continuation-token=",
        root: "ListBucketResult",
        is_cut: Some("IsTruncated"),
        next: "NextContinuationToken",
    },
    Form {
        query: "comp=list",
        parameter: "marker=",
        root: "EnumerationResults",
        is_cut: None,
        next: "NextMarker",
    },
];

impl ListRequest {
    /// `None` if the request asks for something else.
    pub(super) fn of(request: &HttpRequest) -> Option<Self> {
        if request.method() != Method::GET {
            return None;
        }
        let parts = || request.uri().query().unwrap_or_default().split('&');
        let form = FORMS
            .iter()
            .find(|form| parts().any(|part| part == form.query))?;
        let token = parts().find_map(|part| part.strip_prefix(form.parameter));
        let token = token.unwrap_or_default().replace('+', " ");
        Some(Self {
            form,
            token: percent_decode_str(&token).decode_utf8_lossy().into_owned(),
        })
    }

    /// Checks the answer.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn check(&self, answer: &[u8]) -> Result<(), String> {
        let form = self.form;
        let text = String::from_utf8_lossy(answer);
        let text = text.trim_start_matches('\u{feff}').trim();
        let root = root(text);
        if root != Some(form.root) || !text.ends_with(&format!("</{}>", form.root)) {
            let part = |name| elements(text, name).next().map(plain);
            let what = match (root, part("Code"), part("Message")) {
                (Some("Error"), Some(code), message) => {
                    format!("{code}: {}", message.unwrap_or_default())
                }
                (Some(root), ..) if root == form.root => "a part of one".to_owned(),
                (Some(root), ..) => format!("a document '{}'", root.escape_debug()),
                (None, ..) => "no document".to_owned(),
            };
            return Err(format!(
                "the store answered a request for a list with something else: {what}"
            ));
        }
        let next = elements(text, form.next).next().map(plain);
        let next = next.unwrap_or_default();
        let is_cut = form.is_cut.is_some_and(|name| {
            elements(text, name).any(|cut| cut.trim().eq_ignore_ascii_case("true"))
        });
        match next.is_empty() {
            true if is_cut => Err(
                "the store cut its list of objects short, and does not say where it goes on: it does not know version 2 of \
                 the request (list-type=2)"
                    .to_owned(),
            ),
            false if next == self.token => {
                Err("the store repeats a page of its list of objects".to_owned())
            }
            _ => Ok(()),
        }
    }
}

/// The name of the first element of a document.
fn root(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        rest = rest.trim_start().strip_prefix('<')?;
        let end = match rest.as_bytes().first()? {
            b'?' => "?>",
            b'!' if rest.starts_with("!--") => "-->",
            b'!' => ">",
            _ => {
                let name = rest.split(['>', '/', ' ', '\n', '\r', '\t']).next()?;
                return (!name.is_empty() && name.len() <= 64).then_some(name);
            }
        };
        rest = rest.split_once(end)?.1;
    }
}

#[cfg(test)]
mod tests {
    use http::Request;
    use object_store::client::HttpRequestBody;

    use super::*;

    fn request(query: &str) -> Option<ListRequest> {
        let request = Request::builder().uri(format!("https://store/bucket?{query}"));
        ListRequest::of(&request.body(HttpRequestBody::empty()).unwrap())
    }

    fn checked(query: &str, answer: &str) -> Result<(), String> {
        request(query).unwrap().check(answer.as_bytes())
    }

    fn s3(inside: &str) -> String {
        format!(
            "<?xml version=\"1.0\"?>\n<!-- > --><ListBucketResult xmlns=\"x\">{inside}</ListBucketResult>\n"
        )
    }

    #[test]
    fn a_page_is_a_list_to_its_end_and_says_where_the_next_one_begins() {
        let cut = "<IsTruncated>true</IsTruncated>";
        let next = |token| format!("{cut}<NextContinuationToken>{token}</NextContinuationToken>");
        let second = "list-type=2&continuation-token=a%2Bb%26&prefix=x";
        assert_eq!(checked("list-type=2", &s3("")), Ok(()));
        assert_eq!(checked("list-type=2", &s3(&next("a+b&amp;"))), Ok(()));
        assert_eq!(checked(second, &s3(&next("c"))), Ok(()));
        for (query, answer, why) in [
            (second, s3(&next("a+b&amp;")), "repeats"),
            ("list-type=2", s3(cut), "cut its list"),
            ("list-type=2", s3("")[..60].to_owned(), "a part of one"),
            ("list-type=2", "<html>no</html>".to_owned(), "'html'"),
            ("list-type=2", String::new(), "no document"),
            (
                "list-type=2",
                "<Error><Code>InternalError</Code><Message>Again</Message></Error>".to_owned(),
                "InternalError: Again",
            ),
        ] {
            let error = checked(query, &answer).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let azure = |inside| format!("<EnumerationResults>{inside}</EnumerationResults>");
        let list = "restype=container&comp=list";
        assert_eq!(checked(list, &azure("<NextMarker/>")), Ok(()));
        let again = azure("<NextMarker>m</NextMarker>");
        assert_eq!(checked(list, &again), Ok(()));
        assert!(checked(&format!("{list}&marker=m"), &again).is_err());
        assert!(checked(list, &s3("")).is_err());
    }

    #[test]
    fn other_requests_are_none_for_a_list() {
        for query in ["uploads=", "versions", "list-type=1", "comp=block"] {
            assert_eq!(request(query), None, "{query}");
        }
    }
}
