//! A client that speaks as much TDS as a load needs: PRELOGIN, LOGIN7 without a password on the local socket, batches.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context as _, ensure};

const PRELOGIN: u8 = 0x12;
const LOGIN: u8 = 0x10;
const BATCH: u8 = 0x01;
const HEADER_BYTES: usize = 8;
const END_OF_MESSAGE: u8 = 1;
/// The fixed part of LOGIN7.
const LOGIN_BYTES: usize = 94;

/// A session.
pub(crate) struct Client {
    stream: UnixStream,
    answer: Vec<u8>,
}

impl Client {
    /// Logs in on the socket of an instance, into a database.
    pub(crate) fn connect(socket: &Path, database: &str) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(socket).context("the server's socket")?;
        let mut client = Self {
            stream,
            answer: Vec::new(),
        };
        // VERSION, and ENCRYPTION: not supported.
        client.send(
            PRELOGIN,
            &[0, 0, 11, 0, 6, 1, 0, 17, 0, 1, 0xFF, 16, 0, 0, 0, 0, 0, 2],
        )?;
        client.receive()?;
        client.send(LOGIN, &login(database))?;
        client.receive()?;
        ensure!(!has_failed(&client.answer), "the login was refused");
        Ok(client)
    }

    /// Runs a batch; whether it succeeded.
    pub(crate) fn run(&mut self, text: &str) -> anyhow::Result<bool> {
        // ALL_HEADERS with the transaction descriptor.
        let mut payload = vec![
            22, 0, 0, 0, 18, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
        ];
        payload.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
        self.send(BATCH, &payload)?;
        self.receive()?;
        Ok(!has_failed(&self.answer))
    }

    fn send(&mut self, kind: u8, payload: &[u8]) -> anyhow::Result<()> {
        let length = u16::try_from(HEADER_BYTES + payload.len())?.to_be_bytes();
        let mut packet = vec![kind, END_OF_MESSAGE, length[0], length[1], 0, 0, 1, 0];
        packet.extend(payload);
        Ok(self.stream.write_all(&packet)?)
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        self.answer.clear();
        loop {
            let mut header = [0; HEADER_BYTES];
            self.stream.read_exact(&mut header)?;
            let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
            let start = self.answer.len();
            self.answer
                .resize(start + length.saturating_sub(HEADER_BYTES), 0);
            self.stream.read_exact(&mut self.answer[start..])?;
            if header[1] & END_OF_MESSAGE != 0 {
                return Ok(());
            }
        }
    }
}

/// LOGIN7 with no names but the database.
fn login(database: &str) -> Vec<u8> {
    let name: Vec<u8> = database.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let total = (LOGIN_BYTES + name.len()) as u32;
    let mut bytes = vec![0; LOGIN_BYTES];
    bytes[..4].copy_from_slice(&total.to_le_bytes());
    bytes[4..8].copy_from_slice(&0x7400_0004_u32.to_le_bytes());
    bytes[8..12].copy_from_slice(&4096_u32.to_le_bytes());
    // Offsets of the names; all but the database's are empty.
    for at in [36, 40, 44, 48, 52, 56, 60, 64, 68, 78, 82, 86] {
        bytes[at..at + 2].copy_from_slice(&(LOGIN_BYTES as u16).to_le_bytes());
    }
    bytes[70..72].copy_from_slice(&((name.len() / 2) as u16).to_le_bytes());
    bytes.extend(name);
    bytes
}

/// Whether an answer has an error before its first result. The load needs no more.
fn has_failed(answer: &[u8]) -> bool {
    let mut at = 0;
    while let Some(token) = answer.get(at) {
        at += match token {
            0xAA => return true,
            // DONE
            0xFD..=0xFF => 13,
            // LOGINACK, INFO, ENVCHANGE
            0xAB | 0xAD | 0xE3 => match answer.get(at + 1..at + 3) {
                Some(length) => 3 + usize::from(u16::from_le_bytes([length[0], length[1]])),
                None => return true,
            },
            _ => return false,
        };
    }
    false
}
