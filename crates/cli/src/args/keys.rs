//! Keys: for encrypted sets, for new recipients, and for signatures.

use std::path::PathBuf;

use clap::Args;
use windlass_base::range;

use super::number::number;

/// Keys for encrypted sets. With any of them, an unencrypted set is refused.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Keys of encrypted sets")]
pub(crate) struct KeyArguments {
    /// Private key (PKCS#8, PEM or DER) of a certificate the set is encrypted for
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Vec<PathBuf>,
    /// File with the password of encrypted --key files in its first line
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) key_password_file: Option<PathBuf>,
    /// File with the passphrase in its first line
    #[arg(long, value_name = "FILE")]
    pub(crate) passphrase_file: Option<PathBuf>,
}

const REKEY_NOTES: &str = "\
The keys of the sets are wrapped for the new recipients and written to a file next to each backup file, or an
object next to each object, named like it with .keys appended; keep the two together. The media do not change, and neither do the
keys on them: earlier recipients can still read the backup. Only a new backup can exclude them.";

/// `windlass rekey`
#[derive(Debug, Args)]
#[command(after_help = REKEY_NOTES)]
pub(crate) struct RekeyArguments {
    /// Backup files or URLs, all stripes in any order
    #[arg(required = true)]
    pub(crate) media: Vec<String>,
    /// Position of the backup set [default: all encrypted sets]
    #[arg(long, visible_alias = "file", value_name = "N", value_parser = number::<u16>(range::POSITION))]
    pub(crate) set: Option<u16>,
    #[command(flatten)]
    pub(crate) keys: KeyArguments,
    /// Certificate of a new recipient, PEM or DER; can be repeated
    #[arg(long, value_name = "CERTIFICATE")]
    pub(crate) encrypt_to: Vec<PathBuf>,
    /// File with the passphrase of a new recipient in its first line
    #[arg(long, value_name = "FILE")]
    pub(crate) new_passphrase_file: Option<PathBuf>,
    /// Drop the recipients added by earlier runs; those on the media stay
    #[arg(long)]
    pub(crate) replace: bool,
}

const SIGNING_KEY_NOTES: &str = "\
Whoever has FILE can sign backups in your name: it stays where backups are made. FILE.pub goes to wherever
they are verified and restored (verify and restore --signed-by FILE.pub). The fingerprint is that of
'openssl pkey -pubin -in FILE.pub -outform DER | sha256sum'.";

/// `windlass signing-key`
#[derive(Debug, Args)]
#[command(after_help = SIGNING_KEY_NOTES)]
pub(crate) struct SigningKeyArguments {
    /// File for the private key: Ed25519, no password, mode 0600. An existing file is not overwritten
    pub(crate) file: PathBuf,
}
