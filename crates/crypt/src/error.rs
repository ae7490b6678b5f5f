//! Errors of creating, reading and using keys. No error contains a secret.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The random number generator or the library failed.
    #[error("the cryptographic library failed: {doing}")]
    Library {
        /// The attempted action.
        doing: &'static str,
    },
    /// Bytes that are not a certificate or key of a supported kind.
    #[error("{what}: {reason}")]
    Unreadable { what: &'static str, reason: String },
    /// A wrong or missing password.
    #[error("the password for {what} is missing or wrong")]
    Password {
        /// What it should open.
        what: &'static str,
    },
    /// A private key and a certificate that do not belong together.
    #[error("the private key does not belong to the certificate")]
    KeyMismatch,
    /// None of the given keys belongs to a recipient of the set.
    #[error("none of the given keys belongs to a recipient of the set: {recipients}")]
    KeyMissing {
        /// Thumbprints of the certificates in hexadecimal with `0x`, and `a passphrase`.
        recipients: String,
    },
    /// A key that should fit does not open the set's key.
    #[error(
        "the {what} given does not open the set's key: it is wrong, or the key block was changed"
    )]
    WrongKey {
        /// `private key` or `passphrase`.
        what: &'static str,
    },
    /// Sealed data was changed, or belongs somewhere else.
    #[error("the authentication failed: changed, moved, or of another set")]
    Unauthentic,
}
