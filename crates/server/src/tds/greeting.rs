//! The start of a connection: `PRELOGIN`, and TLS if both sides agree on it.
//!
//! The first byte tells which way a client takes: 0x16 is the hello of TLS (TDS 8.0, "strict"), 0x12 is
//! `PRELOGIN`. In TDS 7.x the TLS handshake travels in packets of `PRELOGIN`; from its end on the packets
//! travel in TLS.

use std::io;
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};
use windlass_tds::packet::{Assembler, HEADER_BYTES, Kind, Message, Packets};
use windlass_tds::prelogin::{Continuation, Policy, Prelogin};

use crate::certificate::Certificate;
use crate::error::invalid;
use crate::wire::{Protection, Wire, process};

/// The first byte of a TLS connection.
const TLS_HELLO: u8 = 0x16;
const PRELOGIN: u8 = 0x12;
const END_OF_MESSAGE: u8 = 1;
/// Payload of a packet of the handshake.
const FLIGHT_BYTES: usize = 4096 - HEADER_BYTES;

/// The version that clients see: SQL Server 2022. Drivers choose their features by it.
pub(crate) const VERSION: [u8; 6] = [16, 0, 0x10, 0x00, 0, 0];

/// Reads messages of a client.
#[derive(Debug)]
pub(crate) struct Incoming {
    assembler: Assembler,
    bytes: Vec<u8>,
    used: usize,
}

impl Incoming {
    pub(crate) fn new(message_bytes_max: usize) -> Self {
        Self {
            assembler: Assembler::new(message_bytes_max),
            bytes: Vec::new(),
            used: 0,
        }
    }

    /// Begins with bytes that were read already.
    pub(crate) fn begin(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    pub(crate) fn set_limit(&mut self, message_bytes_max: usize) {
        self.assembler.set_limit(message_bytes_max);
    }

    /// The next message; `None` at the end of the connection.
    pub(crate) fn next(&mut self, wire: &Wire) -> io::Result<Option<Message>> {
        loop {
            let mut input = self.bytes.get(self.used..).unwrap_or_default();
            let before = input.len();
            let message = self.assembler.push(&mut input).map_err(invalid)?;
            self.used += before - input.len();
            if message.is_some() {
                return Ok(message);
            }
            self.used = 0;
            wire.read(&mut self.bytes)?;
            if self.bytes.is_empty() {
                return Ok(None);
            }
        }
    }

    /// What was read beyond the last message.
    fn take_rest(&mut self) -> Vec<u8> {
        let rest = self.bytes.split_off(self.used.min(self.bytes.len()));
        self.bytes.clear();
        self.used = 0;
        rest
    }
}

fn refused(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionRefused, text)
}

/// Greets a client. Afterwards its login can be read; `false` if it said nothing.
pub(crate) fn greet(
    wire: &mut Wire,
    incoming: &mut Incoming,
    certificate: &Certificate,
    protection: Protection,
) -> io::Result<bool> {
    let is_local = wire.socket().peer().is_none();
    if incoming.bytes.is_empty() {
        wire.read_raw(&mut incoming.bytes)?;
    }
    let Some(first) = incoming.bytes.first() else {
        return Ok(false);
    };
    if *first == TLS_HELLO && !is_local {
        let hello = incoming.take_rest();
        let tls = start_with_tls(wire, &hello, &certificate.strict)?;
        wire.encrypt(tls);
        let prelogin = prelogin(wire, incoming)?;
        let answer = prelogin.answer(VERSION, prelogin.encryption);
        send(wire, answer)?;
        return Ok(true);
    }
    let policy = match protection {
        _ if is_local => Policy::Absent,
        Protection::Required => Policy::Required,
        Protection::Offered => Policy::Offered,
    };
    let prelogin = prelogin(wire, incoming)?;
    let (encryption, continuation) = prelogin.negotiate(policy);
    send(wire, prelogin.answer(VERSION, encryption))?;
    match continuation {
        Continuation::Plain => {}
        Continuation::Close => {
            return Err(refused(match is_local {
                true => "it asked for encryption, which a local socket has no need of",
                false => "it does not encrypt, and this server requires that",
            }));
        }
        Continuation::Tls => {
            let tls = handshake_in_packets(wire, incoming, &certificate.in_packets)?;
            wire.encrypt(tls);
        }
    }
    Ok(true)
}

fn prelogin(wire: &Wire, incoming: &mut Incoming) -> io::Result<Prelogin> {
    match incoming.next(wire)? {
        Some(message) if message.kind == Kind::Prelogin => {
            Prelogin::parse(&message.payload).map_err(invalid)
        }
        Some(message) => Err(invalid(format!(
            "PRELOGIN was expected, and a message of type {:?} came",
            message.kind
        ))),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Sends an answer that is one message.
fn send(wire: &Wire, mut payload: Vec<u8>) -> io::Result<()> {
    let mut out = Vec::new();
    Packets::new(0).end_message(&mut payload, &mut out);
    wire.write(&out)
}

fn new_tls(config: &Arc<ServerConfig>) -> io::Result<ServerConnection> {
    let mut tls = ServerConnection::new(Arc::clone(config)).map_err(invalid)?;
    tls.set_buffer_limit(None);
    Ok(tls)
}

/// The handshake of a client that starts with TLS.
fn start_with_tls(
    wire: &Wire,
    hello: &[u8],
    config: &Arc<ServerConfig>,
) -> io::Result<ServerConnection> {
    let mut tls = new_tls(config)?;
    let mut raw = hello.to_vec();
    while tls.is_handshaking() {
        feed(&mut tls, &raw)?;
        let flight = flight(&mut tls)?;
        wire.write_raw(&flight)?;
        if tls.is_handshaking() {
            wire.read_raw(&mut raw)?;
            if raw.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
    Ok(tls)
}

fn handshake_in_packets(
    wire: &Wire,
    incoming: &mut Incoming,
    config: &Arc<ServerConfig>,
) -> io::Result<ServerConnection> {
    let mut tls = new_tls(config)?;
    while tls.is_handshaking() {
        let message = incoming.next(wire)?;
        let Some(message) = message else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        if message.kind != Kind::Prelogin {
            return Err(invalid("the TLS handshake was expected"));
        }
        let outcome = feed(&mut tls, &message.payload);
        let flight = flight(&mut tls)?;
        let count = flight.chunks(FLIGHT_BYTES).count();
        let mut out = Vec::with_capacity(flight.len() + count * HEADER_BYTES);
        for (index, piece) in flight.chunks(FLIGHT_BYTES).enumerate() {
            let status = match index + 1 == count {
                true => END_OF_MESSAGE,
                false => 0,
            };
            let length = u16::try_from(piece.len() + HEADER_BYTES).unwrap_or(u16::MAX);
            out.extend([PRELOGIN, status]);
            out.extend(length.to_be_bytes());
            out.extend([0, 0, index as u8, 0]);
            out.extend(piece);
        }
        wire.write_raw(&out)?;
        outcome?;
    }
    let rest = incoming.take_rest();
    feed(&mut tls, &rest)?;
    Ok(tls)
}

fn feed(tls: &mut ServerConnection, mut raw: &[u8]) -> io::Result<()> {
    while !raw.is_empty() {
        if tls.read_tls(&mut raw)? == 0 {
            break;
        }
        process(tls)?;
    }
    Ok(())
}

/// What TLS has to say now.
fn flight(tls: &mut ServerConnection) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    while tls.wants_write() {
        tls.write_tls(&mut out)?;
    }
    Ok(out)
}
