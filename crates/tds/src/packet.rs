//! Packets to messages, and messages to packets (MS-TDS 2.2.3).
//!
//! A packet is an eight-byte header and its payload; a message is all packets up to the one marked
//! as the last. A cancel (attention) may arrive at any packet boundary and ends an unfinished
//! message.

use crate::Error;

/// Bytes of a packet header.
pub const HEADER_BYTES: usize = 8;

/// Packet size until the client has requested another.
pub const PACKET_BYTES_DEFAULT: u16 = 4096;

/// The allowed packet sizes.
pub const PACKET_BYTES_LEGAL: std::ops::RangeInclusive<u16> = 512..=32_767;

const END_OF_MESSAGE: u8 = 0x01;
const IGNORE: u8 = 0x02;
const RESET: u8 = 0x08;
const RESET_KEEP_TRANSACTION: u8 = 0x10;
const ANSWER: u8 = 0x04;

/// The kind of a client's message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Text of SQL.
    Batch = 0x01,
    /// Remote procedure calls.
    Rpc = 0x03,
    /// Cancel what runs.
    Attention = 0x06,
    /// Rows of a bulk copy.
    Bulk = 0x07,
    /// Begin, commit, roll back.
    Transaction = 0x0E,
    /// `LOGIN7`.
    Login = 0x10,
    /// A further step of integrated security.
    Sspi = 0x11,
    /// `PRELOGIN`, and the TLS handshake within TDS 7.x.
    Prelogin = 0x12,
}

impl Kind {
    fn parse(code: u8) -> Result<Self, Error> {
        Ok(match code {
            0x01 => Self::Batch,
            0x03 => Self::Rpc,
            0x06 => Self::Attention,
            0x07 => Self::Bulk,
            0x0E => Self::Transaction,
            0x10 => Self::Login,
            0x11 => Self::Sspi,
            0x12 => Self::Prelogin,
            found => return Err(Error::PacketKind { found }),
        })
    }
}

/// The reset requested by a connection pool before a request runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reset {
    /// The session does not change.
    None,
    Session,
    /// The session is reset, its transaction stays.
    KeepTransaction,
}

/// A whole message of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub kind: Kind,
    /// What to reset before it runs.
    pub reset: Reset,
    /// The client cancelled the message while sending it: it is answered, not run.
    pub is_ignored: bool,
    /// The concatenated payloads of all its packets.
    pub payload: Vec<u8>,
}

#[derive(Debug)]
struct Header {
    kind: Kind,
    status: u8,
    payload_bytes: usize,
}

impl Header {
    fn parse(bytes: [u8; HEADER_BYTES]) -> Result<Self, Error> {
        let [code, status, high, low, ..] = bytes;
        let found = u16::from_be_bytes([high, low]);
        let payload_bytes = usize::from(found)
            .checked_sub(HEADER_BYTES)
            .filter(|_| found <= *PACKET_BYTES_LEGAL.end())
            .ok_or(Error::PacketLength { found })?;
        Ok(Self {
            kind: Kind::parse(code)?,
            status,
            payload_bytes,
        })
    }
}

/// Assembles messages from bytes as they arrive.
#[derive(Debug)]
pub struct Assembler {
    message_bytes_max: usize,
    header: [u8; HEADER_BYTES],
    header_filled: usize,
    /// The current packet, and the missing length of its payload.
    packet: Option<(Header, usize)>,
    message: Option<Message>,
}

impl Assembler {
    /// Refuses messages longer than `message_bytes_max`.
    pub fn new(message_bytes_max: usize) -> Self {
        Self {
            message_bytes_max,
            header: [0; HEADER_BYTES],
            header_filled: 0,
            packet: None,
            message: None,
        }
    }

    /// Changes the maximum message length from the next packet on.
    pub fn set_limit(&mut self, message_bytes_max: usize) {
        self.message_bytes_max = message_bytes_max;
    }

    /// Whether a message is incomplete.
    pub fn is_within_message(&self) -> bool {
        self.header_filled > 0 || self.packet.is_some() || self.message.is_some()
    }

    /// Consumes bytes of `input` until a message is complete or nothing is left.
    pub fn push(&mut self, input: &mut &[u8]) -> Result<Option<Message>, Error> {
        loop {
            let Some((header, left)) = self.packet.take() else {
                if !self.fill_header(input)? {
                    return Ok(None);
                }
                continue;
            };
            let (now, rest) = input.split_at(left.min(input.len()));
            *input = rest;
            if let Some(message) = &mut self.message {
                message.payload.extend_from_slice(now);
            }
            if now.len() < left {
                self.packet = Some((header, left - now.len()));
                return Ok(None);
            }
            if let Some(message) = self.end_packet(&header) {
                return Ok(Some(message));
            }
        }
    }

    /// Reads a header; `false` until it is complete.
    fn fill_header(&mut self, input: &mut &[u8]) -> Result<bool, Error> {
        let wanted = HEADER_BYTES - self.header_filled;
        let (now, rest) = input.split_at(wanted.min(input.len()));
        *input = rest;
        self.header[self.header_filled..][..now.len()].copy_from_slice(now);
        self.header_filled += now.len();
        if self.header_filled < HEADER_BYTES {
            return Ok(false);
        }
        self.header_filled = 0;
        let header = Header::parse(self.header)?;
        self.begin_packet(&header)?;
        let left = header.payload_bytes;
        self.packet = Some((header, left));
        Ok(true)
    }

    fn begin_packet(&mut self, header: &Header) -> Result<(), Error> {
        if header.kind == Kind::Attention {
            // A client that cancels does not need what it had started to send.
            self.message = None;
        }
        if let Some(message) = &self.message
            && message.kind != header.kind
        {
            return Err(Error::KindChanged {
                expected: message.kind as u8,
                found: header.kind as u8,
            });
        }
        let message = self.message.get_or_insert_with(|| Message {
            kind: header.kind,
            reset: reset_of(header.status),
            is_ignored: false,
            payload: Vec::new(),
        });
        if message.payload.len() + header.payload_bytes > self.message_bytes_max {
            return Err(Error::MessageTooLong {
                limit: self.message_bytes_max,
            });
        }
        Ok(())
    }

    fn end_packet(&mut self, header: &Header) -> Option<Message> {
        if header.status & END_OF_MESSAGE == 0 && header.kind != Kind::Attention {
            return None;
        }
        let mut message = self.message.take()?;
        message.is_ignored = header.status & IGNORE != 0;
        Some(message)
    }
}

fn reset_of(status: u8) -> Reset {
    match status {
        _ if status & RESET_KEEP_TRANSACTION != 0 => Reset::KeepTransaction,
        _ if status & RESET != 0 => Reset::Session,
        _ => Reset::None,
    }
}

/// Divides an answer into packets of one size.
#[derive(Debug)]
pub struct Packets {
    packet_bytes: usize,
    session: u16,
    number: u8,
}

impl Packets {
    /// For the session `session`; the packets initially have the default size.
    pub fn new(session: u16) -> Self {
        Self {
            packet_bytes: usize::from(PACKET_BYTES_DEFAULT),
            session,
            number: 0,
        }
    }

    /// Sets the packet size from the next packet on, adjusted to the allowed range.
    pub fn set_packet_bytes(&mut self, bytes: u16) {
        let (least, most) = PACKET_BYTES_LEGAL.into_inner();
        self.packet_bytes = usize::from(bytes.clamp(least, most));
    }

    /// Length of a packet, including its header.
    pub fn packet_bytes(&self) -> usize {
        self.packet_bytes
    }

    /// Starts a new message: its packets are numbered from 1.
    pub fn begin_message(&mut self) {
        self.number = 0;
    }

    /// Moves all full packets from `tokens` to `out`, and keeps the rest.
    ///
    /// The last packet of a message is marked, so a packet that is exactly full stays until it is
    /// known whether it is the last.
    pub fn move_full(&mut self, tokens: &mut Vec<u8>, out: &mut Vec<u8>) {
        let payload_bytes = self.packet_bytes - HEADER_BYTES;
        let mut moved = 0;
        while tokens.len() - moved > payload_bytes {
            self.packet(&tokens[moved..][..payload_bytes], 0, out);
            moved += payload_bytes;
        }
        tokens.drain(..moved);
    }

    /// Moves everything to `out`, so that the client sees it now; the message continues.
    pub fn move_all(&mut self, tokens: &mut Vec<u8>, out: &mut Vec<u8>) {
        self.move_full(tokens, out);
        if !tokens.is_empty() {
            self.packet(tokens, 0, out);
            tokens.clear();
        }
    }

    /// Moves everything to `out` and ends the message.
    pub fn end_message(&mut self, tokens: &mut Vec<u8>, out: &mut Vec<u8>) {
        self.move_full(tokens, out);
        self.packet(tokens, END_OF_MESSAGE, out);
        tokens.clear();
        self.begin_message();
    }

    fn packet(&mut self, payload: &[u8], status: u8, out: &mut Vec<u8>) {
        self.number = self.number.wrapping_add(1);
        let length = (payload.len() + HEADER_BYTES) as u16;
        out.extend([ANSWER, status]);
        out.extend(length.to_be_bytes());
        out.extend(self.session.to_be_bytes());
        out.extend([self.number, 0]);
        out.extend(payload);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(kind: Kind, status: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() + HEADER_BYTES) as u16;
        let [high, low] = length.to_be_bytes();
        [&[kind as u8, status, high, low, 0, 0, 1, 0], payload].concat()
    }

    fn whole(bytes: &[u8]) -> Vec<Message> {
        let (mut assembler, mut input) = (Assembler::new(1000), bytes);
        let mut messages = Vec::new();
        while let Some(message) = assembler.push(&mut input).unwrap() {
            messages.push(message);
        }
        messages
    }

    #[test]
    fn a_message_is_the_same_however_its_bytes_arrive() {
        let bytes = [
            packet(Kind::Batch, RESET, b"abc"),
            packet(Kind::Batch, END_OF_MESSAGE, b"de"),
            packet(Kind::Attention, END_OF_MESSAGE, b""),
        ]
        .concat();
        let at_once = whole(&bytes);
        assert_eq!(at_once.len(), 2);
        assert_eq!(at_once[0].payload, b"abcde");
        assert_eq!(at_once[0].reset, Reset::Session);
        assert_eq!(at_once[1].kind, Kind::Attention);
        let mut assembler = Assembler::new(1000);
        let mut one_by_one = Vec::new();
        for byte in &bytes {
            let mut input = std::slice::from_ref(byte);
            one_by_one.extend(assembler.push(&mut input).unwrap());
        }
        assert_eq!(one_by_one, at_once);
        assert!(!assembler.is_within_message());
    }

    #[test]
    fn a_cancel_ends_a_message_that_is_not_whole() {
        let bytes = [
            packet(Kind::Rpc, 0, b"half"),
            packet(Kind::Attention, END_OF_MESSAGE, b""),
            packet(Kind::Batch, END_OF_MESSAGE | IGNORE, b"given up"),
        ]
        .concat();
        let messages = whole(&bytes);
        assert_eq!(messages[0].kind, Kind::Attention);
        assert!(messages[1].is_ignored);
    }

    #[test]
    fn nothing_longer_than_the_limit_is_kept() {
        let mut assembler = Assembler::new(5);
        let bytes = [
            packet(Kind::Batch, 0, b"abc"),
            packet(Kind::Batch, 1, b"def"),
        ]
        .concat();
        let found = assembler.push(&mut &bytes[..]);
        assert_eq!(found, Err(Error::MessageTooLong { limit: 5 }));
    }

    #[test]
    fn a_length_below_the_header_is_refused() {
        let found = Assembler::new(9).push(&mut &[1, 1, 0, 7, 0, 0, 0, 0][..]);
        assert_eq!(found, Err(Error::PacketLength { found: 7 }));
    }

    #[test]
    fn an_answer_that_fills_its_packets_ends_with_a_marked_one() {
        let mut packets = Packets::new(51);
        packets.set_packet_bytes(512);
        let (mut tokens, mut out) = (vec![7; 2 * 504], Vec::new());
        packets.move_full(&mut tokens, &mut out);
        packets.end_message(&mut tokens, &mut out);
        assert_eq!(out.len(), 2 * 512);
        assert_eq!(out[..8], [4, 0, 2, 0, 0, 51, 1, 0]);
        assert_eq!(out[512..][..8], [4, 1, 2, 0, 0, 51, 2, 0]);
    }

    #[test]
    fn an_empty_answer_is_still_one_packet() {
        let (mut tokens, mut out) = (Vec::new(), Vec::new());
        Packets::new(1).end_message(&mut tokens, &mut out);
        assert_eq!(out, [4, 1, 0, 8, 0, 1, 1, 0]);
    }
}
