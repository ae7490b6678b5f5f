//! The first message of a connection: versions, and encryption (MS-TDS 2.2.6.5).

use crate::Error;
use crate::cursor::Cursor;

const WHAT: &str = "PRELOGIN";
const END: u8 = 0xFF;
/// The protocol has ten kinds of options; no client sends more than this.
const OPTIONS_MAX: usize = 32;

/// The encryption setting of one side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Encryption {
    /// Only the login, unless the other side requires more.
    Off = 0,
    /// The whole connection.
    On = 1,
    /// This side has no TLS.
    NotSupported = 2,
    /// The whole connection, or no connection.
    Required = 3,
}

/// The server's TLS policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// TLS is mandatory.
    Required,
    /// TLS is used if the client asks for it.
    Offered,
    Absent,
}

/// How a connection continues after `PRELOGIN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continuation {
    /// The TLS handshake follows, in packets of `PRELOGIN`.
    Tls,
    /// The login follows, unencrypted.
    Plain,
    /// The sides cannot agree: the connection is closed after the answer.
    Close,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prelogin {
    /// Version of the client's library: major, minor, two-byte build, two-byte sub-build.
    pub version: [u8; 6],
    pub encryption: Encryption,
    /// Whether it requests several concurrent requests on one connection.
    pub wants_mars: bool,
    /// Whether the client asks if a federated login is required.
    pub asks_federated: bool,
}

impl Prelogin {
    /// Reads the payload of a client's message.
    pub fn parse(payload: &[u8]) -> Result<Self, Error> {
        let mut found = Self {
            version: [0; 6],
            encryption: Encryption::NotSupported,
            wants_mars: false,
            asks_federated: false,
        };
        let mut options = Cursor::new(payload, WHAT);
        for index in 0.. {
            let token = options.u8()?;
            if token == END {
                break;
            }
            if index == OPTIONS_MAX || (index == 0) != (token == 0) {
                return Err(Error::invalid("option of PRELOGIN", token));
            }
            let offset = usize::from(u16::from_be_bytes(options.bytes()?));
            let length = usize::from(u16::from_be_bytes(options.bytes()?));
            let data = payload
                .get(offset..offset + length)
                .ok_or(Error::CutShort { what: WHAT })?;
            found.take(token, data)?;
        }
        Ok(found)
    }

    fn take(&mut self, token: u8, data: &[u8]) -> Result<(), Error> {
        match (token, data) {
            (0, _) => {
                let version = data.first_chunk().ok_or(Error::CutShort { what: WHAT })?;
                self.version = *version;
            }
            (1, &[code]) => self.encryption = encryption_of(code)?,
            (4, &[flag]) => self.wants_mars = flag != 0,
            (6, &[flag]) => self.asks_federated = flag != 0,
            (1 | 4 | 6, _) => return Err(Error::invalid("length of a PRELOGIN option", token)),
            // Instance names, thread ids, traces and nonces have no effect here.
            _ => {}
        }
        Ok(())
    }

    /// The server's answer about encryption, and how the connection continues.
    pub fn negotiate(&self, policy: Policy) -> (Encryption, Continuation) {
        use Encryption::{NotSupported, Off, On, Required};
        match (policy, self.encryption) {
            (Policy::Absent, Required) => (NotSupported, Continuation::Close),
            (Policy::Required, Off) => (Required, Continuation::Tls),
            (Policy::Required, NotSupported) => (Required, Continuation::Close),
            // "Off" would encrypt the login alone: where clear text is allowed, it stays clear text.
            (Policy::Absent, _) | (Policy::Offered, Off | NotSupported) => {
                (NotSupported, Continuation::Plain)
            }
            (Policy::Required | Policy::Offered, On | Required) => (On, Continuation::Tls),
        }
    }

    /// The payload of the server's answer. `version` is the server's.
    pub fn answer(&self, version: [u8; 6], encryption: Encryption) -> Vec<u8> {
        let code = [encryption as u8];
        let mut options: Vec<(u8, &[u8])> =
            vec![(0, &version), (1, &code), (2, &[0]), (3, &[]), (4, &[0])];
        if self.asks_federated {
            options.push((6, &[0]));
        }
        let mut offset = options.len() * 5 + 1;
        let mut out = Vec::new();
        for (token, data) in &options {
            out.push(*token);
            out.extend((offset as u16).to_be_bytes());
            out.extend((data.len() as u16).to_be_bytes());
            offset += data.len();
        }
        out.push(END);
        out.extend(options.iter().flat_map(|(_, data)| *data));
        out
    }
}

fn encryption_of(code: u8) -> Result<Encryption, Error> {
    // The high bit offers a client certificate, which is not used.
    match code & 0x7F {
        0 => Ok(Encryption::Off),
        1 => Ok(Encryption::On),
        2 => Ok(Encryption::NotSupported),
        // 4 is what drivers say within TDS 8.0, where all of it is encrypted already.
        3 | 4 => Ok(Encryption::Required),
        _ => Err(Error::invalid("encryption of PRELOGIN", code)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// VERSION 18.6, ENCRYPTION on, MARS 0, as sent by current drivers.
    const CLIENT: [u8; 24] = [
        0, 0, 16, 0, 6, 1, 0, 22, 0, 1, 4, 0, 23, 0, 1, END, 18, 6, 0, 2, 0, 0, 1, 0,
    ];

    #[test]
    fn options_are_found_at_their_offsets() {
        let prelogin = Prelogin::parse(&CLIENT).unwrap();
        assert_eq!(prelogin.version, [18, 6, 0, 2, 0, 0]);
        assert_eq!(prelogin.encryption, Encryption::On);
        assert!(!prelogin.wants_mars && !prelogin.asks_federated);
    }

    #[test]
    fn an_answer_reads_back_as_a_prelogin() {
        let mut prelogin = Prelogin::parse(&CLIENT).unwrap();
        prelogin.asks_federated = true;
        let answer = prelogin.answer([16, 0, 0x10, 0, 0, 0], Encryption::Required);
        let read = Prelogin::parse(&answer).unwrap();
        assert_eq!(read.version, [16, 0, 0x10, 0, 0, 0]);
        assert_eq!(read.encryption, Encryption::Required);
        assert!(!read.asks_federated);
    }

    #[test]
    fn nobody_logs_in_in_clear_where_encryption_is_required() {
        for code in 0..5 {
            let mut bytes = CLIENT;
            bytes[22] = code;
            let prelogin = Prelogin::parse(&bytes).unwrap();
            let (_, then) = prelogin.negotiate(Policy::Required);
            assert_ne!(then, Continuation::Plain, "client said {code}");
        }
    }

    #[test]
    fn a_client_that_requires_encryption_is_not_answered_in_clear() {
        let mut bytes = CLIENT;
        bytes[22] = 3;
        let prelogin = Prelogin::parse(&bytes).unwrap();
        assert_eq!(prelogin.negotiate(Policy::Absent).1, Continuation::Close);
        assert_eq!(prelogin.negotiate(Policy::Offered).1, Continuation::Tls);
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_an_answer_or_an_error() {
        for cut in 0..CLIENT.len() {
            assert!(Prelogin::parse(&CLIENT[..cut]).is_err());
        }
        for bit in 0..CLIENT.len() * 8 {
            let mut bytes = CLIENT;
            bytes[bit / 8] ^= 1 << (bit % 8);
            drop(Prelogin::parse(&bytes));
        }
    }
}
