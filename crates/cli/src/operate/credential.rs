//! `windlass credential`: the keys of object storage that the instance keeps.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use windlass_base::message::table;
use windlass_instance::operation::{CredentialOptions, S3_IDENTITY};
use zeroize::Zeroizing;

use super::texts;
use crate::args::Common;
use crate::command::{Outcome, ended, existing_session, misused, reported, session};
use crate::output::{Console, Layout};

/// The longest file with a key.
const KEY_BYTES_MAX: u64 = 4096;

const NOTES: &str = "\
A credential is named by the URL that it is for: s3://host:port/bucket or a folder in it. Of several, the longest that a
URL begins with is used; without one, the key in the environment (AWS_ACCESS_KEY_ID). T-SQL has the same: CREATE, ALTER and
DROP CREDENTIAL, sys.credentials.";

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
        /// File with 'key id:secret key', which no other user may read; - for standard input
        #[arg(long, value_name = "FILE")]
        key_file: PathBuf,
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
        CredentialCommand::Set { name, key_file } => {
            let key = match key(key_file) {
                Ok(key) => key,
                Err(error) => {
                    console.message(table::cannot_open_file(key_file.display(), error));
                    return Outcome::Failed;
                }
            };
            let Some(known) = reported(session.credentials(), &mut console) else {
                return Outcome::Failed;
            };
            let options = CredentialOptions {
                name,
                identity: S3_IDENTITY,
                secret: Some(key.trim()),
                is_change: known.iter().any(|known| known.eq_ignore_ascii_case(name)),
            };
            ended(session.set_credential(&options), &mut console)
        }
        CredentialCommand::List => {
            let Some(names) = reported(session.credentials(), &mut console) else {
                return Outcome::Failed;
            };
            let rows = names.into_iter().map(|name| vec![name]).collect();
            texts(&["name"], rows).send(&mut console);
            Outcome::Succeeded
        }
        CredentialCommand::Drop { name } => ended(session.drop_credential(name), &mut console),
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
