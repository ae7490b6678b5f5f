//! What can be wrong with the bytes of a client.

use crate::data_type::DataType;

/// A client's bytes that cannot be understood. The connection is closed after it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A packet header with a length that no packet has.
    #[error("a packet of {found} bytes; packets have 8 to 32767")]
    PacketLength {
        /// What the header says.
        found: u16,
    },
    /// A packet type that clients do not send.
    #[error("clients do not send packets of type {found:#04x}")]
    PacketKind {
        /// What the header says.
        found: u8,
    },
    /// A packet of another kind within a message.
    #[error("a packet of type {found:#04x} within a message of type {expected:#04x}")]
    KindChanged {
        /// The message's type.
        expected: u8,
        /// The packet's.
        found: u8,
    },
    /// More than the connection may send at once in its present state.
    #[error("a message of more than {limit} bytes")]
    MessageTooLong {
        /// The most that is accepted.
        limit: usize,
    },
    /// A structure that goes on behind the end of its message.
    #[error("{what} is truncated")]
    CutShort {
        /// The structure.
        what: &'static str,
    },
    /// A field with a value that it cannot have.
    #[error("{what}: {found} is not valid")]
    Invalid {
        /// The field.
        what: &'static str,
        /// What was found.
        found: u64,
    },
    /// Something that the protocol knows and this server does not.
    #[error("{what} is not supported")]
    NotSupported {
        /// What it is, in the words of the protocol.
        what: &'static str,
    },
    /// A value that its column's type does not hold: the server's mistake, not the client's.
    #[error("a value does not fit the type {data_type:?}")]
    DoesNotFit {
        /// The type.
        data_type: DataType,
    },
    /// A client older than TDS 7.2.
    #[error("TDS version {found:#010x} is too old: 7.2 or newer is needed")]
    TooOld {
        /// The client's version.
        found: u32,
    },
}

impl Error {
    pub(crate) fn invalid(what: &'static str, found: impl Into<u64>) -> Self {
        Self::Invalid {
            what,
            found: found.into(),
        }
    }
}
