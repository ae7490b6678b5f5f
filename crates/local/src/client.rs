//! The command's side: its batches run in the process that has the databases.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use windlass_base::message::table;
use windlass_instance::{BatchEnd, Elsewhere, Identity, Sink};

use crate::event::replay;
use crate::{GREETING, VERSION, socket};

/// How often a waiting client looks whether it is cancelled.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// How long the other side may take to say that it has heard the first line.
const HEARD_TIME: Duration = Duration::from_secs(10);

/// How long it may take to begin the session: it may have a large catalog to open.
const READY_TIME: Duration = Duration::from_secs(60);

/// The longest line before the session begins.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// How long the end of a session is waited for.
const GOODBYE_TIME: Duration = Duration::from_secs(5);

/// A connection to the process that has the databases.
#[derive(Debug)]
pub struct LocalClient {
    reader: BufReader<UnixStream>,
    stream: UnixStream,
    database: String,
    in_transaction: bool,
    session: u32,
}

fn utf8(path: &Path) -> io::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| io::Error::other(format!("the name '{}' is not UTF-8", path.display())))
}

/// The next line before the session begins; `None` at the end. A refusal is an error.
fn answer(reader: &mut BufReader<UnixStream>, time: Duration) -> io::Result<Option<Json>> {
    let until = Instant::now() + time;
    let mut line = Vec::new();
    while !line.ends_with(b"\n") && line.len() < ANSWER_BYTES_MAX {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(unanswered(time));
        }
        reader.get_ref().set_read_timeout(Some(left))?;
        let found = match reader.fill_buf() {
            Ok([]) => return Ok(None),
            Ok(found) => found,
            Err(error) if is_no_answer_yet(&error) => continue,
            Err(error) => return Err(error),
        };
        let end = found.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(found.len(), |end| end + 1);
        line.extend_from_slice(&found[..taken]);
        reader.consume(taken);
    }
    let json: Json = serde_json::from_slice(&line).unwrap_or_default();
    match json["refused"].as_str() {
        Some(reason) => Err(io::Error::other(reason.to_owned())),
        None => Ok(Some(json)),
    }
}

fn closed() -> io::Error {
    io::Error::other("the server closed the connection")
}

fn unanswered(time: Duration) -> io::Error {
    let text = format!(
        "the process that listens at the socket has not answered for {} s: if it is neither a server nor a program with the extension, remove the socket",
        time.as_secs()
    );
    io::Error::new(io::ErrorKind::TimedOut, text)
}

/// What a client is for, at a socket beside a database.
#[derive(Debug)]
pub struct Purpose<'a> {
    /// What the database is to be called.
    pub database: &'a str,
    /// The instance whose history it is for.
    pub instance: Option<&'a Path>,
}

impl LocalClient {
    /// Connects to the server of the instance in `folder`; `None` if none runs.
    ///
    /// # Errors
    /// A server that does not answer as it should.
    pub fn connect(folder: &Path, program: &str, identity: &Identity) -> io::Result<Option<Self>> {
        match socket::connect(&folder.join(socket::OF_INSTANCE))? {
            Some(stream) => Self::greet(stream, program, identity, None).map(Some),
            None => Ok(None),
        }
    }

    /// Connects to the program that has the database in the file `path` open; `None` if none has.
    ///
    /// # Errors
    /// A program that does not answer as it should.
    pub fn connect_beside(
        path: &Path,
        program: &str,
        identity: &Identity,
        purpose: &Purpose<'_>,
    ) -> io::Result<Option<Self>> {
        match socket::connect(&socket::beside(path))? {
            Some(stream) => {
                let file = std::fs::metadata(path)?;
                let meant = Some((purpose, (file.dev(), file.ino())));
                Self::greet(stream, program, identity, meant).map(Some)
            }
            None => Ok(None),
        }
    }

    fn greet(
        stream: UnixStream,
        program: &str,
        identity: &Identity,
        meant: Option<(&Purpose<'_>, (u64, u64))>,
    ) -> io::Result<Self> {
        let current = utf8(&std::env::current_dir()?)?;
        let (purpose, file) = meant.unzip();
        let instance = purpose.and_then(|purpose| purpose.instance);
        let hello = json!({
            "hello": VERSION,
            "program": program,
            "login": identity.user,
            "host": identity.machine,
            "process": std::process::id(),
            "folder": current,
            "database": purpose.map(|purpose| purpose.database),
            "file": file.map(|(device, inode)| [device, inode]),
            "instance": instance.map(utf8).transpose()?,
        });
        // A side that serves no more says so and closes; its reason can still be read then.
        let greeting = [&[GREETING], hello.to_string().as_bytes(), b"\n"].concat();
        let said = { &stream }.write_all(&greeting);
        let mut reader = BufReader::new(stream.try_clone()?);
        let heard = answer(&mut reader, HEARD_TIME)?;
        let heard = heard.ok_or_else(|| said.err().unwrap_or_else(closed))?;
        if heard["heard"].as_u64() != Some(VERSION) {
            return Err(closed());
        }
        let ready = answer(&mut reader, READY_TIME)?.ok_or_else(closed)?;
        if ready["ready"].as_u64() != Some(VERSION) {
            return Err(closed());
        }
        stream.set_read_timeout(Some(BETWEEN_LOOKS))?;
        Ok(Self {
            reader,
            stream,
            database: ready["database"].as_str().unwrap_or_default().to_owned(),
            in_transaction: false,
            session: ready["session_id"]
                .as_u64()
                .and_then(|found| u32::try_from(found).ok())
                .unwrap_or(0),
        })
    }

    fn run(
        &mut self,
        text: &str,
        first_line: u32,
        cancel: &AtomicBool,
        sink: &mut dyn Sink,
    ) -> io::Result<BatchEnd> {
        let batch = json!({ "batch": text, "first_line": first_line });
        { &self.stream }.write_all(format!("{batch}\n").as_bytes())?;
        let mut has_cancelled = false;
        let mut line = Vec::new();
        loop {
            match self.reader.read_until(b'\n', &mut line) {
                Ok(0) => {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof,
                        "the server has ended this session (by KILL, or because the server itself ends)",
                    ));
                }
                Ok(_) if line.ends_with(b"\n") => {}
                Ok(_) => continue,
                Err(error) if is_no_answer_yet(&error) => {
                    // What was read so far stays in the line.
                    if cancel.load(Ordering::Relaxed) && !has_cancelled {
                        has_cancelled = true;
                        { &self.stream }.write_all(b"{\"cancel\": true}\n")?;
                    }
                    continue;
                }
                Err(error) => return Err(error),
            }
            let json: Json = serde_json::from_slice(&line).map_err(io::Error::other)?;
            line.clear();
            if let Some(end) = json["end"].as_str() {
                let database = json["database"].as_str().unwrap_or_default();
                database.clone_into(&mut self.database);
                self.in_transaction = json["in_transaction"].as_bool() == Some(true);
                return Ok(match end {
                    "clean" => BatchEnd::Clean,
                    "refused" => BatchEnd::Refused,
                    _ => BatchEnd::Failed,
                });
            }
            replay(&json, sink)
                .ok_or_else(|| io::Error::other("the server sent what is no event"))?;
        }
    }
}

impl Drop for LocalClient {
    /// Waits for the end of the session: the next command may drop the database that this one was in.
    fn drop(&mut self) {
        if self.stream.shutdown(Shutdown::Write).is_err() {
            return;
        }
        let until = Instant::now() + GOODBYE_TIME;
        let mut rest = [0; 4096];
        while Instant::now() < until {
            match self.reader.read(&mut rest) {
                Ok(0) => return,
                Err(error) if !is_no_answer_yet(&error) => return,
                _ => {}
            }
        }
    }
}

/// Whether a read only has to be tried again.
fn is_no_answer_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

impl Elsewhere for LocalClient {
    fn execute(
        &mut self,
        text: &str,
        first_line: u32,
        cancel: &AtomicBool,
        sink: &mut dyn Sink,
    ) -> BatchEnd {
        match self.run(text, first_line, cancel, sink) {
            Ok(end) => end,
            Err(error) => {
                sink.message(table::server_lost(error));
                BatchEnd::Failed
            }
        }
    }

    fn database(&self) -> &str {
        &self.database
    }

    fn is_in_transaction(&self) -> bool {
        self.in_transaction
    }

    fn session(&self) -> u32 {
        self.session
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    fn pair() -> (UnixStream, UnixStream) {
        UnixStream::pair().unwrap()
    }

    #[test]
    fn a_reason_is_read_even_if_the_other_side_has_closed() {
        let (ours, theirs) = pair();
        crate::serving::refuse(&theirs, "16 at once already").unwrap();
        drop(theirs);
        let identity = Identity::of_process(None);
        let refused = LocalClient::greet(ours, "test", &identity, None).unwrap_err();
        assert_eq!(refused.to_string(), "16 at once already");
    }

    #[test]
    fn a_listener_that_says_nothing_or_dribbles_does_not_hold_a_command() {
        let time = Duration::from_millis(200);
        let (ours, theirs) = pair();
        let silent = answer(&mut BufReader::new(ours), time).unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
        drop(theirs);

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dribbles");
        let listener = UnixListener::bind(&path).unwrap();
        let dribbling = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            while { &stream }.write_all(b" ").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let stream = UnixStream::connect(&path).unwrap();
        let held = answer(&mut BufReader::new(stream), time).unwrap_err();
        assert_eq!(held.kind(), io::ErrorKind::TimedOut);
        dribbling.join().unwrap();
    }
}
