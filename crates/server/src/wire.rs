//! Bytes to and from a client: over TCP or a local socket, plain or in TLS.
//!
//! One thread reads, another writes. The TLS state is locked only while bytes are encrypted or decrypted in
//! memory, never while a socket is read or written: a client may cancel without reading what it is sent.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustls::ServerConnection;

/// Bytes read from a socket at once.
const READ_BYTES: usize = 16 << 10;

/// Whether connections over TCP are encrypted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protection {
    /// A client that does not encrypt is refused.
    #[default]
    Required,
    /// As the client asks, on a loopback address only.
    Offered,
}

#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpStream),
    Local(UnixStream),
}

impl Socket {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => { stream }.read(buffer),
            Self::Local(stream) => { stream }.read(buffer),
        }
    }

    fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => { stream }.write_all(bytes),
            Self::Local(stream) => { stream }.write_all(bytes),
        }
    }

    fn set_timeouts(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
            Self::Local(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
        }
    }

    /// Ends the connection for both sides, and wakes up a thread that reads or writes.
    pub(crate) fn shut_down(&self) {
        // It may be closed already.
        let _ended = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Self::Local(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    /// The client's address; `None` on a local socket.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(stream) => stream.peer_addr().ok().map(|address| address.ip()),
            Self::Local(_) => None,
        }
    }

    /// Whether the client is on a local socket, and is the user whom the server runs as, or root.
    pub(crate) fn is_own_user(&self) -> bool {
        match self {
            Self::Tcp(_) => false,
            Self::Local(stream) => windlass_local::socket::is_own_user(stream),
        }
    }
}

/// Ends a connection when it is dropped, also by a panic: the thread that reads would keep it open, and the client
/// would wait for an answer for ever.
pub(crate) struct HangUp<'a>(pub(crate) &'a Socket);

impl Drop for HangUp<'_> {
    fn drop(&mut self) {
        self.0.shut_down();
    }
}

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Wire {
    socket: Socket,
    tls: Option<Mutex<ServerConnection>>,
    deadline: Option<Instant>,
}

impl Wire {
    /// A plain connection, to be used up to the deadline.
    pub(crate) fn new(socket: Socket, deadline: Instant) -> Self {
        Self {
            socket,
            tls: None,
            deadline: Some(deadline),
        }
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// From now on the connection waits as long as the client does.
    pub(crate) fn lift_deadline(&mut self) -> io::Result<()> {
        self.deadline = None;
        self.socket.set_timeouts(None)
    }

    /// From now on everything is encrypted. The handshake is complete.
    pub(crate) fn encrypt(&mut self, tls: ServerConnection) {
        self.tls = Some(Mutex::new(tls));
    }

    fn await_deadline(&self) -> io::Result<()> {
        let Some(deadline) = self.deadline else {
            return Ok(());
        };
        let left = deadline.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(io::ErrorKind::TimedOut.into()),
            false => self.socket.set_timeouts(Some(left)),
        }
    }

    /// Reads from the socket; nothing at its end.
    pub(crate) fn read_raw(&self, buffer: &mut Vec<u8>) -> io::Result<()> {
        self.await_deadline()?;
        buffer.resize(READ_BYTES, 0);
        let read = loop {
            match self.socket.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        let read = read.map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
            _ => error,
        });
        buffer.truncate(*read.as_ref().unwrap_or(&0));
        read.map(|_| ())
    }

    pub(crate) fn write_raw(&self, bytes: &[u8]) -> io::Result<()> {
        self.await_deadline()?;
        self.socket.write_all(bytes)
    }

    /// Reads what the client says; nothing at its end.
    pub(crate) fn read(&self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let Some(tls) = &self.tls else {
            return self.read_raw(buffer);
        };
        if decrypt(tls, &[], buffer)? {
            return Ok(());
        }
        let mut raw = Vec::new();
        loop {
            self.read_raw(&mut raw)?;
            let is_end = raw.is_empty();
            if decrypt(tls, &raw, buffer)? || is_end {
                return Ok(());
            }
        }
    }

    /// Sends whole packets. In TLS each is a record of its own, as SQL Server sends them.
    pub(crate) fn write(&self, packets: &[u8]) -> io::Result<()> {
        let Some(tls) = &self.tls else {
            return self.write_raw(packets);
        };
        let mut records = Vec::with_capacity(packets.len() + packets.len() / 16 + 64);
        {
            let mut tls = tls.lock().unwrap_or_else(PoisonError::into_inner);
            let mut rest = packets;
            while !rest.is_empty() {
                let length = match rest {
                    [_, _, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
                    _ => rest.len(),
                };
                let (packet, after) = rest.split_at(length.clamp(1, rest.len()));
                tls.writer().write_all(packet)?;
                while tls.wants_write() {
                    tls.write_tls(&mut records)?;
                }
                rest = after;
            }
        }
        self.write_raw(&records)
    }
}

/// Processes what was read from the client.
pub(crate) fn process(tls: &mut ServerConnection) -> io::Result<rustls::IoState> {
    tls.process_new_packets()
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Decrypts bytes of the client; `false` if they contain no data yet.
fn decrypt(
    tls: &Mutex<ServerConnection>,
    mut raw: &[u8],
    buffer: &mut Vec<u8>,
) -> io::Result<bool> {
    buffer.clear();
    let mut tls = tls.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let state = process(&mut tls)?;
        let waiting = state.plaintext_bytes_to_read();
        if waiting > 0 {
            let start = buffer.len();
            buffer.resize(start + waiting, 0);
            tls.reader().read_exact(&mut buffer[start..])?;
        }
        if raw.is_empty() {
            break;
        }
        tls.read_tls(&mut raw)?;
    }
    Ok(!buffer.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_the_connection_although_another_thread_reads_it() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let wire = std::sync::Arc::new(Wire::new(
            Socket::Local(ours),
            Instant::now() + Duration::from_secs(60),
        ));
        let reading = {
            let wire = std::sync::Arc::clone(&wire);
            std::thread::spawn(move || wire.read(&mut Vec::new()))
        };
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _hang_up = HangUp(wire.socket());
            panic!("a defect");
        }));
        assert!(panicked.is_err());
        assert_eq!({ &theirs }.read(&mut [0]).unwrap(), 0);
        assert!(reading.join().unwrap().is_ok());
    }
}
