//! `windlass credential`: the keys of object storage that the instance keeps.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;
use windlass_base::message::table;
use windlass_device::{
    AZURE_SIGNATURE, GOOGLE_ACCOUNT, MANAGED_IDENTITY, ObjectUrl, S3_KEY, StoreKind, UrlError,
};
use windlass_instance::Failure;
use windlass_instance::operation::CredentialOptions;
use zeroize::Zeroizing;

use super::texts;
use crate::args::Common;
use crate::command::{Outcome, ended, existing_session, misused, reported, session};
use crate::output::{Console, Layout, message_line};

/// The longest file with a key.
const KEY_BYTES_MAX: u64 = 4096;

const NOTES: &str = "\
A credential is named by the URL that it is for: s3://host:port/bucket, https://ACCOUNT.blob.core.windows.net/container,
gs://bucket, or a folder in it. Of several, the longest that a URL begins with is used; without one, the key in the environment
(AWS_ACCESS_KEY_ID, AZURE_STORAGE_KEY, GOOGLE_APPLICATION_CREDENTIALS). T-SQL has the same: CREATE, ALTER and DROP CREDENTIAL,
sys.credentials.

What the file of a key has: for s3:// 'key id:secret key'; for Azure the key of the account or a shared access signature
('sv=...&sig=...'); for gs:// the JSON file of a service account's key.";

/// `windlass credential`
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct CredentialArguments {
    #[command(subcommand)]
    command: CredentialCommand,
}

#[derive(Debug, Subcommand)]
enum CredentialCommand {
    /// Keep a key, or replace it
    Set {
        /// The URL that the key is for
        name: String,
        /// File with the key, which no other user may read; - for standard input
        #[arg(
            long,
            value_name = "FILE",
            required_unless_present = "managed_identity"
        )]
        key_file: Option<PathBuf>,
        /// Ask the machine, container or pod for keys: its role or identity decides what they may do
        #[arg(long, conflicts_with = "key_file")]
        managed_identity: bool,
    },
    /// List the credentials
    List,
    /// Remove a credential
    Drop {
        /// Its name
        name: String,
    },
}

/// Runs the command.
pub(super) fn run(arguments: &CredentialArguments, common: &Common) -> Outcome {
    if common.instance.is_none() {
        return misused("credentials need --instance");
    }
    if let CredentialCommand::Set { name, .. } = &arguments.command
        && let Err(reason) = store(name)
    {
        let advice = "name the URL that the key is for, such as s3://host:port/bucket, \
                      https://ACCOUNT.blob.core.windows.net/container or gs://bucket";
        return misused(&format!(
            "'{name}' is no place in a store ({reason}): {advice}"
        ));
    }
    let mut console = Console::new(common.json, Layout::Table);
    let sets = matches!(arguments.command, CredentialCommand::Set { .. });
    let session = match sets {
        true => session(common, &mut console),
        false => existing_session(common, &mut console),
    };
    let Some(mut session) = session else {
        return Outcome::Failed;
    };
    match &arguments.command {
        CredentialCommand::Set { name, key_file, .. } => {
            let key = match key_file.as_deref().map(|file| (file, key(file))) {
                None => None,
                Some((_, Ok(key))) => Some(key),
                Some((file, Err(error))) => {
                    console.message(table::cannot_open_file(file.display(), error));
                    return Outcome::Failed;
                }
            };
            let Some(known) = reported(session.credentials(), &mut console) else {
                return Outcome::Failed;
            };
            let secret = key.as_deref().map(|key| key.trim());
            let options = CredentialOptions {
                name,
                identity: &identity(name, secret),
                secret,
                is_change: known.iter().any(|known| known.eq_ignore_ascii_case(name)),
            };
            let kept = session.set_credential(&options);
            told(("set", "kept"), name, kept, &mut console)
        }
        CredentialCommand::List => {
            let Some(names) = reported(session.credentials(), &mut console) else {
                return Outcome::Failed;
            };
            let rows = names.into_iter().map(|name| vec![name]).collect();
            texts(&["name"], rows).send(&mut console);
            Outcome::Succeeded
        }
        CredentialCommand::Drop { name } => {
            let dropped = session.drop_credential(name);
            told(("drop", "removed"), name, dropped, &mut console)
        }
    }
}

/// Says what was done with a credential: for programs the operation, for people that it is so.
fn told(
    (operation, said): (&str, &str),
    name: &str,
    result: Result<(), Failure>,
    console: &mut Console,
) -> Outcome {
    if result.is_ok() {
        console.done(&json!({ "operation": operation, "credential": name }));
        message_line(&format!("The credential '{name}' is {said}."));
    }
    ended(result, console)
}

/// The store of a credential. What is behind the container does not matter.
fn store(name: &str) -> Result<ObjectUrl, UrlError> {
    ObjectUrl::parse_any(&format!("{}/bucket/", name.trim_end_matches('/')))
}

/// What the key for a URL is, in SQL Server's words.
fn identity(name: &str, secret: Option<&str>) -> String {
    let Some(secret) = secret else {
        return MANAGED_IDENTITY.to_owned();
    };
    let url = store(name);
    let (kind, account) = match &url {
        Ok(url) => (url.kind(), url.account()),
        Err(_) => (StoreKind::S3, None),
    };
    match (kind, account) {
        (StoreKind::Azure, Some(account)) if !secret.contains("sig=") => account.to_owned(),
        (StoreKind::Azure, _) => AZURE_SIGNATURE.to_owned(),
        (StoreKind::Google, _) => GOOGLE_ACCOUNT.to_owned(),
        (StoreKind::S3, _) => S3_KEY.to_owned(),
    }
}

/// The key in a file.
fn key(path: &Path) -> std::io::Result<Zeroizing<String>> {
    let bytes = match path == Path::new("-") {
        true => {
            let mut bytes = Zeroizing::new(Vec::new());
            std::io::stdin()
                .take(KEY_BYTES_MAX)
                .read_to_end(&mut bytes)?;
            bytes
        }
        false => Zeroizing::new(windlass_io::secret::read_private(path)?),
    };
    let text = std::str::from_utf8(&bytes);
    // The library's words would show where the file differs from a text.
    let text = text.map_err(|_| std::io::Error::other("it is not a text"))?;
    Ok(Zeroizing::new(text.to_owned()))
}
