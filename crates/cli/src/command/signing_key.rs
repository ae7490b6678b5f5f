//! `windlass signing-key`

use std::ffi::OsString;
use std::io;
use std::path::Path;

use serde_json::json;
use windlass_base::Message;
use windlass_base::message::table;
use windlass_crypt::SigningKey;

use super::{Outcome, refused};
use crate::args::{Common, SigningKeyArguments};
use crate::output::{Console, Layout};

/// Runs the command: writes both files, or none.
pub(crate) fn run(arguments: &SigningKeyArguments, common: &Common) -> Outcome {
    let mut console = Console::new(common.json, Layout::Table);
    let private = &arguments.file;
    let mut public: OsString = private.clone().into_os_string();
    public.push(".pub");
    match make(private, Path::new(&public)) {
        Ok(fingerprint) => {
            console.done(&json!({
                "operation": "signing-key",
                "private": private.display().to_string(),
                "public": Path::new(&public).display().to_string(),
                "fingerprint": fingerprint,
            }));
            console.message(table::signing_key_made(
                private.display(),
                Path::new(&public).display(),
                fingerprint,
            ));
            Outcome::Succeeded
        }
        Err(message) => refused(message, &mut console),
    }
}

fn make(private: &Path, public: &Path) -> Result<String, Message> {
    let unwritten = |path: &Path, error: &io::Error| {
        table::signing_failed(format!("'{}': {error}", path.display()))
    };
    let folder = windlass_io::directory::parent(private);
    if !folder.is_dir() {
        let missing = format!("the folder '{}' does not exist", folder.display());
        return Err(table::signing_failed(missing));
    }
    let key = SigningKey::generate().map_err(table::signing_failed)?;
    let pem = key.to_pem().map_err(table::signing_failed)?;
    let signer = key.signer();
    let public_pem = signer.to_pem().map_err(table::signing_failed)?;
    windlass_io::secret::create_public(public, public_pem.as_bytes())
        .map_err(|error| unwritten(public, &error))?;
    windlass_io::secret::create(private, pem.as_bytes()).map_err(|error| {
        // The public file just created is useless without its private key.
        let _kept = std::fs::remove_file(public);
        unwritten(private, &error)
    })?;
    Ok(signer.fingerprint())
}
