//! A short text for a web service that wants to be told of something.

use std::io;
use std::time::Duration;

use super::store::runtime;
use super::tls::no_client;

/// For the whole request: nobody waits for a notification.
const TIMEOUT: Duration = Duration::from_secs(15);

/// Posts JSON to a URL. Follows no redirection.
///
/// # Errors
/// That the service cannot be reached, or does not accept it.
pub fn post_json(url: &str, body: String) -> io::Result<()> {
    let runtime = runtime()?;
    let _entered = runtime.enter();
    let client = reqwest::Client::builder()
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
        .timeout(TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .http1_only()
        .build()
        .map_err(|error| no_client(&error))?;
    let request = client
        .post(url)
        .header("content-type", "application/json")
        .body(body);
    // The URL may have a secret in it.
    let answer = runtime
        .block_on(request.send())
        .map_err(|error| io::Error::other(error.without_url()))?;
    match answer.status().is_success() {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "the service answered {}",
            answer.status()
        ))),
    }
}
