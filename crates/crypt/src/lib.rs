//! Keys of encrypted backups: bytes to bytes.
//!
//! Each backup set has its own key ([`SetKey`]). It seals the chunks, each bound to the set and to its
//! number, and authenticates the set's configuration. The key is stored in the set's headers, wrapped
//! for one or more recipients ([`KeyBlock`]): the public key of a certificate, or a passphrase. With
//! only a certificate one can write backups, but not read them. A signature shows who made a set
//! ([`SigningKey`], [`Signer`]).
//!
//! Neighbours: `media` stores key blocks, tags and the authentication; `pipeline` seals and opens;
//! `instance` stores certificates. The crate does no file I/O. The cryptography is AWS-LC's, the
//! key derivation from passphrases the crate `argon2`; `docs/format/media.md` has the construction
//! and `docs/security.md` explains what it protects against.
//!
//! Invariants:
//! 1. No secret is in any error, any `Debug` output or any name; secrets are wiped when dropped.
//! 2. A nonce is used once per key: it is the chunk's number, and a key belongs to one set.
//! 3. Hostile key blocks cause neither panics nor unbounded allocations.
#![forbid(unsafe_code)]

mod certificate;
mod error;
mod fuzzing;
mod key_block;
mod key_file;
mod key_ring;
mod passphrase;
mod password;
mod pkcs12;
mod set_key;
mod signing;
mod vault;

pub use certificate::{Certificate, Identity, PrivateKey};
pub use error::Error;
pub use fuzzing::fuzz_keys;
pub use key_block::{KeyBlock, PASSPHRASES_MAX, RECIPIENTS_MAX, Recipient, RecipientKind};
pub use key_file::{KeyFile, KeyFileEntry};
pub use key_ring::{KeyRing, Opened};
pub use passphrase::{Passphrase, PassphraseError};
pub use password::{PARALLEL_MAX, PasswordHash};
pub use set_key::{Cipher, SetKey, TAG_BYTES};
pub use signing::{Signature, Signer, SigningKey};
pub use vault::VaultKey;
