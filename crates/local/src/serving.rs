//! The side of the process that has the database: runs the batches of a command in a session of its own.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use windlass_instance::{BatchEnd, Client, Event, Instance, Principal, Session, Silent, Sink};

use crate::VERSION;
use crate::event::line;

/// Batches that may wait: a client sends the next one after the end of the one before.
const WAITING: usize = 2;
/// Progress comes at every chunk; a client needs to know it less often.
const BETWEEN_PROGRESS: Duration = Duration::from_millis(100);
/// Length of the first line.
const HELLO_BYTES: u64 = 4096;

/// Sends events as lines. A client that is gone cancels what runs.
struct Lines<'a> {
    stream: &'a UnixStream,
    out: Vec<u8>,
    progressed: Option<Instant>,
    cancel: &'a AtomicBool,
}

/// Rows are sent together.
const OUT_BYTES: usize = 32 << 10;

impl Lines<'_> {
    fn put(&mut self, line: &Json) {
        self.out.extend(line.to_string().bytes());
        self.out.push(b'\n');
    }

    fn send(&mut self) {
        if { self.stream }.write_all(&self.out).is_err() {
            self.cancel.store(true, Ordering::Relaxed);
        }
        self.out.clear();
    }
}

impl Sink for Lines<'_> {
    fn event(&mut self, event: Event<'_>) {
        if let Event::Progress(progress) = &event {
            let is_last = progress.done_bytes >= progress.total_bytes;
            let is_due = |sent: Instant| sent.elapsed() >= BETWEEN_PROGRESS;
            if !is_last && !self.progressed.is_none_or(is_due) {
                return;
            }
            self.progressed = Some(Instant::now());
        }
        let is_row = matches!(event, Event::Row(_));
        let text = line(&event);
        self.put(&text);
        if !is_row || self.out.len() >= OUT_BYTES {
            self.send();
        }
    }
}

/// A process that has databases open.
pub trait Host {
    /// The instance in which a client's batches run.
    ///
    /// # Errors
    /// Why there is none; the client is told.
    fn instance(&self, hello: &Hello) -> io::Result<Instance>;

    /// For whom a client acts; the administrator if there is none.
    fn principal(&self, _hello: &Hello) -> Option<Principal> {
        None
    }

    /// Whether no further client is served.
    fn is_stopping(&self) -> bool;

    /// A client has got its session.
    fn begun(&self) {}

    /// The longest batch, in bytes of its line.
    fn request_bytes_max(&self) -> usize;
}

/// What a client says of itself first.
#[derive(Debug)]
pub struct Hello(Json);

impl Hello {
    /// The user that it says it is.
    pub fn user(&self) -> &str {
        self.0["login"].as_str().unwrap_or_default()
    }

    /// The folder in which its relative names begin.
    pub fn folder(&self) -> Option<&str> {
        self.0["folder"].as_str()
    }

    /// What it calls the database beside whose files the socket lies.
    pub fn database(&self) -> Option<&str> {
        self.0["database"].as_str()
    }

    /// The instance whose history and settings it uses.
    pub fn instance(&self) -> Option<&str> {
        self.0["instance"].as_str()
    }

    /// Device and inode of the file that it means.
    pub fn file(&self) -> Option<(u64, u64)> {
        let file = &self.0["file"];
        Some((file[0].as_u64()?, file[1].as_u64()?))
    }

    fn version(&self) -> Option<u64> {
        self.0["hello"].as_u64()
    }

    /// Who the client says it is.
    fn client(&self) -> Client {
        let text = |name: &str| self.0[name].as_str().unwrap_or_default().to_owned();
        let process = self.0["process"].as_u64();
        Client {
            login: text("login"),
            host: text("host"),
            program: text("program"),
            process: process
                .and_then(|found| u32::try_from(found).ok())
                .unwrap_or(0),
            interface: "Windlass".to_owned(),
            address: "<local machine>".to_owned(),
            transport: "Named pipe",
            is_encrypted: false,
        }
    }
}

/// Tells a client that it is not served, and why.
///
/// # Errors
/// The client is gone.
pub fn refuse(mut stream: &UnixStream, reason: &str) -> io::Result<()> {
    let line = json!({ "refused": reason });
    stream.write_all(format!("{line}\n").as_bytes())
}

/// Serves a command until it goes. Its greeting has been read.
///
/// `is_own` tells whether the client is the process' user, or root.
///
/// # Errors
/// A client that does not say what it should, or is gone.
pub fn serve(stream: &UnixStream, is_own: bool, host: &dyn Host) -> io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut first = String::new();
    reader.by_ref().take(HELLO_BYTES).read_line(&mut first)?;
    let hello = Hello(serde_json::from_str(&first).map_err(io::Error::other)?);
    if !is_own {
        return refuse(stream, "this socket is for the server's own user");
    }
    if hello.version() != Some(VERSION) {
        let reason = "the program is of another version than the process that has the database open: restart that";
        return refuse(stream, reason);
    }
    { stream }.write_all(format!("{}\n", json!({ "heard": VERSION })).as_bytes())?;
    let mut instance = match host.instance(&hello) {
        Ok(instance) => instance,
        Err(error) => return refuse(stream, &error.to_string()),
    };
    if let Some(folder) = hello.folder() {
        instance.begin_in(folder.into());
    }
    let mut session = Session::of_client(instance, hello.client());
    if let Some(principal) = host.principal(&hello)
        && let Err(failure) = session.act_as(principal)
    {
        let reason = failure
            .messages
            .first()
            .map(|message| message.text.as_str());
        return refuse(stream, reason.unwrap_or("the session cannot begin"));
    }
    if host.is_stopping() {
        return refuse(stream, "the server ends");
    }
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    host.begun();
    let ready = json!({
        "ready": VERSION,
        "session_id": session.number(),
        "database": session.current_database(),
    });
    { stream }.write_all(format!("{ready}\n").as_bytes())?;
    let closing = stream.try_clone()?;
    session.listed().on_kill(move || {
        // It may be closed already.
        let _ended = closing.shutdown(std::net::Shutdown::Both);
    });
    let cancel = session.cancel_flag();
    let (sender, receiver) = sync_channel::<Json>(WAITING);
    let limit = host.request_bytes_max() as u64;
    let flag = Arc::clone(&cancel);
    let thread = std::thread::Builder::new().name("local-reader".to_owned());
    let reading = thread.spawn(move || {
        if let Err(error) = read(&mut reader, limit, &sender, &flag) {
            tracing::debug!(%error, "a command's connection ended");
        }
        flag.store(true, Ordering::Relaxed);
    })?;
    execute(stream, &mut session, &receiver);
    // Wakes the thread that reads.
    let _ended = stream.shutdown(std::net::Shutdown::Read);
    drop(receiver);
    // It logs what went wrong by itself.
    let _ended = reading.join();
    session.close(&mut Silent);
    // The command sees the end of its connection when its session has left the database.
    let _ended = stream.shutdown(std::net::Shutdown::Both);
    Ok(())
}

fn invalid(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn read(
    reader: &mut BufReader<UnixStream>,
    limit: u64,
    sender: &SyncSender<Json>,
    cancel: &AtomicBool,
) -> io::Result<()> {
    loop {
        let mut text = String::new();
        if reader.by_ref().take(limit).read_line(&mut text)? == 0 {
            return Ok(());
        }
        if !text.ends_with('\n') {
            return Err(invalid("a line that is too long, or cut short"));
        }
        let request: Json = serde_json::from_str(&text).map_err(io::Error::other)?;
        if request["cancel"].as_bool() == Some(true) {
            cancel.store(true, Ordering::Relaxed);
            continue;
        }
        // The batch before has ended: a cancel of it that came late is none of this one.
        cancel.store(false, Ordering::Relaxed);
        match sender.try_send(request) {
            Ok(()) => {}
            Err(TrySendError::Disconnected(_)) => return Ok(()),
            Err(TrySendError::Full(_)) => {
                return Err(invalid("batches without waiting for their ends"));
            }
        }
    }
}

/// Runs batches until there are no more.
fn execute(stream: &UnixStream, session: &mut Session, receiver: &Receiver<Json>) {
    let cancel = session.cancel_flag();
    while let Ok(request) = receiver.recv() {
        if session.listed().is_killed() {
            break;
        }
        let mut lines = Lines {
            stream,
            out: Vec::new(),
            progressed: None,
            cancel: &cancel,
        };
        let batch = request["batch"].as_str().unwrap_or_default();
        let first_line = request["first_line"].as_u64().unwrap_or(1);
        let first_line = u32::try_from(first_line).unwrap_or(1);
        let end = session.execute_batch(batch, first_line, &mut lines);
        lines.put(&json!({
            "end": match end {
                BatchEnd::Clean => "clean",
                BatchEnd::Failed => "failed",
                BatchEnd::Refused => "refused",
            },
            "database": session.current_database(),
            "in_transaction": session.is_in_transaction(),
        }));
        lines.send();
    }
}
