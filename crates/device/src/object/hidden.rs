//! Secrets in what a store says: its words are quoted in messages, and they can repeat what it was sent.

use std::sync::{Mutex, MutexGuard, PoisonError};

use percent_encoding::percent_decode_str;

use super::access::Key;

/// Shorter ones are parts of other words.
const LENGTH_MIN: usize = 8;

/// Most secrets that are known at a time: a server renews its own.
const KNOWN_MAX: usize = 256;

static KNOWN: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn known() -> MutexGuard<'static, Vec<String>> {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers the secret of a key.
pub(super) fn know(key: &Key) {
    let secrets = match key {
        Key::S3 { secret, token, .. } => {
            let token = token.iter().cloned();
            std::iter::once(secret.clone()).chain(token).collect()
        }
        Key::AzureAccount { key, .. } => vec![key.clone()],
        Key::AzureSignature { signature, .. } => of_signature(signature),
        Key::AzureClient { secret, .. } => vec![secret.clone()],
        Key::S3Role | Key::AzureIdentity | Key::GoogleAccount(_) | Key::GoogleDefault => Vec::new(),
    };
    let mut known = known();
    for secret in secrets {
        if secret.len() >= LENGTH_MIN && !known.contains(&secret) {
            known.push(secret);
        }
    }
    let surplus = known.len().saturating_sub(KNOWN_MAX);
    known.drain(..surplus);
}

/// The part of a shared access signature that nobody else can make, as it is sent and as it is meant.
fn of_signature(signature: &str) -> Vec<String> {
    let mut parts = signature.split('&');
    let Some(sent) = parts.find_map(|part| part.strip_prefix("sig=")) else {
        return vec![signature.to_owned()];
    };
    let meant = percent_decode_str(sent).decode_utf8_lossy().into_owned();
    vec![sent.to_owned(), meant]
}

/// A text without any of them.
pub(super) fn masked(text: String) -> String {
    let known = known();
    let mask = |text: String, secret: &String| match text.contains(secret.as_str()) {
        true => text.replace(secret.as_str(), "***"),
        false => text,
    };
    known.iter().fold(text, mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_is_repeated_in_any_form() {
        know(&Key::AzureSignature {
            account: None,
            signature: "sv=2024&sig=aB3%2FdEfGh%3D&se=2030".to_owned(),
        });
        know(&Key::S3 {
            id: "id".to_owned(),
            secret: "wholly hidden".to_owned(),
            token: Some("and a token".to_owned()),
        });
        for secret in [
            "aB3%2FdEfGh%3D",
            "aB3/dEfGh=",
            "wholly hidden",
            "and a token",
        ] {
            assert_eq!(masked(format!("it was <{secret}>!")), "it was <***>!");
        }
        assert_eq!(masked("2024".to_owned()), "2024");
    }
}
