//! Errors in the bytes of a client.

use crate::data_type::DataType;

/// Invalid bytes of a client. The connection is closed after it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A packet header with an invalid length.
    #[error("a packet of {found} bytes; packets have 8 to 32767")]
    PacketLength { found: u16 },
    /// A packet type that clients do not send.
    #[error("clients do not send packets of type {found:#04x}")]
    PacketKind { found: u8 },
    /// A packet of a different type within a message.
    #[error("a packet of type {found:#04x} within a message of type {expected:#04x}")]
    KindChanged { expected: u8, found: u8 },
    /// A message longer than allowed in the connection's state.
    #[error("a message of more than {limit} bytes")]
    MessageTooLong { limit: usize },
    /// A structure that extends beyond the end of its message.
    #[error("{what} is truncated")]
    CutShort { what: &'static str },
    /// A field with an invalid value.
    #[error("{what}: {found} is not valid")]
    Invalid { what: &'static str, found: u64 },
    /// A protocol feature that this server does not support.
    #[error("{what} is not supported")]
    NotSupported {
        /// The feature, in the words of the protocol.
        what: &'static str,
    },
    /// A value that its column's type cannot represent: an error of the server, not of the client.
    #[error("a value does not fit the type {data_type:?}")]
    DoesNotFit { data_type: DataType },
    /// A client older than TDS 7.2.
    #[error("TDS version {found:#010x} is too old: 7.2 or newer is needed")]
    TooOld { found: u32 },
}

impl Error {
    pub(crate) fn invalid(what: &'static str, found: impl Into<u64>) -> Self {
        Self::Invalid {
            what,
            found: found.into(),
        }
    }
}
