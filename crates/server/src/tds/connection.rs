//! A client's connection: one thread reads its messages, another runs its requests in turn.
//!
//! The reader never waits for a request: a cancel reaches the session while it runs. A cancelled request ends
//! with a DONE that says so; the cancel itself is acknowledged by a message of its own.

use std::io::{self, Read as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Instant;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_instance::{Session, Silent};
use windlass_tds::answer::{Answer, Change, Ends, done};
use windlass_tds::packet::{Kind, Message as Received, Packets, Reset};
use windlass_tds::request::{Batch, Rpc, Transaction};

use super::call::{self, Statements};
use super::greeting::{Incoming, greet};
use super::login::{LoggedIn, log_in};
use super::note::note;
use super::reply::{Answering, Reply};
use crate::error::invalid;
use crate::listen::Context;
use crate::wire::{HangUp, Socket, Wire};

/// Requests that may wait. A client sends the next one after the answer, except for cancels.
const WAITING: usize = 16;

/// Serves a client until it goes.
pub(crate) fn serve(socket: Socket, context: &Context) -> io::Result<()> {
    let limits = &context.options.limits;
    let deadline = Instant::now() + limits.login_time;
    let mut incoming = Incoming::new(limits.login_bytes);
    if let Socket::Local(stream) = &socket {
        stream.set_read_timeout(Some(limits.login_time))?;
        let mut first = [0];
        { stream }.read_exact(&mut first)?;
        if first == [windlass_local::GREETING] {
            let _hang_up = HangUp(&socket);
            return windlass_local::serving::serve(stream, socket.is_own_user(), context);
        }
        incoming.begin(&first);
    }
    let mut wire = Wire::new(socket, deadline);
    let certificate = context.certificate();
    if !greet(
        &mut wire,
        &mut incoming,
        &certificate,
        context.options.protection,
    )? {
        return Ok(());
    }
    let Some(message) = incoming.next(&wire)? else {
        return Ok(());
    };
    if message.kind != Kind::Login {
        return Err(invalid("LOGIN7 was expected"));
    }
    // The client has done its part: passwords are checked a few at a time, and many may wait for their turn.
    wire.lift_deadline()?;
    let logged_in = match log_in(&wire, &message.payload, context)? {
        Ok(logged_in) => logged_in,
        Err(reason) => {
            tracing::warn!(reason, "a login was refused");
            return Ok(());
        }
    };
    incoming.set_limit(limits.request_bytes);
    context.logged_in();
    converse(&Arc::new(wire), incoming, logged_in, context)
}

fn converse(
    wire: &Arc<Wire>,
    mut incoming: Incoming,
    logged_in: LoggedIn,
    context: &Context,
) -> io::Result<()> {
    let LoggedIn { session, packets } = logged_in;
    let _hang_up = HangUp(wire.socket());
    let listed = Arc::clone(session.listed());
    let closing = Arc::downgrade(wire);
    listed.on_kill(move || {
        if let Some(wire) = closing.upgrade() {
            wire.socket().shut_down();
        }
    });
    let cancels = Arc::new(AtomicU32::new(0));
    let cancel = session.cancel_flag();
    let (sender, receiver) = sync_channel(WAITING);
    let reader = {
        let (wire, cancels, cancel) = (Arc::clone(wire), Arc::clone(&cancels), Arc::clone(&cancel));
        std::thread::Builder::new()
            .name("tds-reader".to_owned())
            .spawn(move || {
                let ended = read(&wire, &mut incoming, &sender, &cancels, &cancel);
                if let Err(error) = ended {
                    tracing::debug!(%error, "a client's connection ended");
                }
                // Nobody would see the end of what runs.
                cancel.store(true, Ordering::Relaxed);
            })?
    };
    let mut requests = Requests {
        server: session.instance().identity().server.clone(),
        database: session.current_database().to_owned(),
        statements: Statements::new(context.options.limits.prepared),
        answer_bytes: context.options.limits.answer_bytes,
        wire: Arc::clone(wire),
        session,
        packets,
        cancel,
        cancels,
        transaction: 0,
        transactions: 0,
    };
    let outcome = requests.run(&receiver);
    wire.socket().shut_down();
    drop(receiver);
    // Its outcome is logged by itself; a panic there ended this connection alone.
    let _ended = reader.join();
    requests.session.close(&mut Silent);
    outcome
}

/// Reads messages until the client goes.
fn read(
    wire: &Wire,
    incoming: &mut Incoming,
    sender: &SyncSender<Received>,
    cancels: &AtomicU32,
    cancel: &AtomicBool,
) -> io::Result<()> {
    while let Some(message) = incoming.next(wire)? {
        if message.kind == Kind::Attention {
            cancels.fetch_add(1, Ordering::SeqCst);
            cancel.store(true, Ordering::SeqCst);
        }
        match sender.try_send(message) {
            Ok(()) => {}
            Err(TrySendError::Disconnected(_)) => return Ok(()),
            Err(TrySendError::Full(_)) => {
                wire.socket().shut_down();
                return Err(invalid(
                    "requests were sent without waiting for their answers",
                ));
            }
        }
    }
    Ok(())
}

/// Runs the requests of a session.
struct Requests {
    wire: Arc<Wire>,
    session: Session,
    packets: Packets,
    statements: Statements,
    server: String,
    /// Where the session began, and is again after a reset.
    database: String,
    answer_bytes: usize,
    cancel: Arc<AtomicBool>,
    /// Cancels that have not been acknowledged.
    cancels: Arc<AtomicU32>,
    /// The open transaction as the client knows it; 0 for none.
    transaction: u64,
    /// How many transactions there were.
    transactions: u64,
}

impl Requests {
    fn run(&mut self, receiver: &Receiver<Received>) -> io::Result<()> {
        while let Ok(message) = receiver.recv() {
            if self.session.listed().is_killed() {
                break;
            }
            if message.kind == Kind::Attention {
                self.acknowledge()?;
                continue;
            }
            self.request(&message)?;
        }
        Ok(())
    }

    /// Answers a cancel; the request that it was meant for has ended.
    fn acknowledge(&mut self) -> io::Result<()> {
        if self.cancels.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.cancel.store(false, Ordering::SeqCst);
        }
        let mut answer = Answer::default();
        answer.cancel_acknowledged();
        self.send(answer)
    }

    fn send(&mut self, mut answer: Answer) -> io::Result<()> {
        let mut out = Vec::new();
        self.packets.end_message(&mut answer.tokens, &mut out);
        self.wire.write(&out)
    }

    fn request(&mut self, message: &Received) -> io::Result<()> {
        if message.is_ignored {
            let mut answer = Answer::default();
            answer.done(Ends::Statement, done::ERROR, 0, 0);
            return self.send(answer);
        }
        let is_reset = message.reset != Reset::None;
        if is_reset {
            self.reset(message.reset);
        }
        match message.kind {
            Kind::Batch => {
                let batch = Batch::parse(&message.payload).map_err(invalid)?;
                self.batch(&batch.text, is_reset);
                Ok(())
            }
            Kind::Rpc => match Rpc::parse(&message.payload) {
                Ok(rpc) => {
                    self.calls(&rpc, is_reset);
                    Ok(())
                }
                Err(windlass_tds::Error::NotSupported { what }) => {
                    self.refuse(&table::protocol_not_supported(what))
                }
                Err(error) => Err(invalid(error)),
            },
            Kind::Transaction => {
                let request = Transaction::parse(&message.payload).map_err(invalid)?;
                self.transaction(&request)
            }
            Kind::Bulk => self.refuse(&table::protocol_not_supported("bulk copy")),
            Kind::Attention => Ok(()),
            Kind::Login | Kind::Sspi | Kind::Prelogin => {
                Err(invalid("the client has logged in already"))
            }
        }
    }

    /// Puts the session back to its state after login, for a pool's next user.
    fn reset(&mut self, reset: Reset) {
        self.session.reset(reset == Reset::KeepTransaction);
        if !self.session.is_in_transaction() {
            self.transaction = 0;
            let is_there = self.session.current_database() == self.database;
            // It may be gone meanwhile; the client is told where it is.
            let _used = is_there
                || self
                    .session
                    .use_database(&self.database, &mut Silent)
                    .is_ok();
        }
        self.statements.clear();
    }

    fn reply(&mut self, ends: Ends) -> (Reply<'_>, &mut Session, &mut Statements) {
        let answering = Answering {
            wire: &self.wire,
            packets: &mut self.packets,
            server: &self.server,
            answer_bytes: self.answer_bytes,
            cancel: &self.cancel,
            transaction: self.transaction,
        };
        let reply = Reply::new(answering, ends, &self.session);
        (reply, &mut self.session, &mut self.statements)
    }

    fn batch(&mut self, text: &str, is_reset: bool) {
        let (next, cancels) = (self.transactions + 1, Arc::clone(&self.cancels));
        let before = self.transaction;
        let (mut reply, session, _) = self.reply(Ends::Statement);
        if is_reset {
            reply.tokens().change(Change::Reset);
        }
        session.execute_batch(text, 1, &mut reply);
        let after = after(session, before, next);
        let is_cancelled = cancels.load(Ordering::SeqCst) > 0;
        reply.end(session, after, is_cancelled);
        self.note_transaction(after);
    }

    fn calls(&mut self, rpc: &Rpc, is_reset: bool) {
        let (next, cancels) = (self.transactions + 1, Arc::clone(&self.cancels));
        let before = self.transaction;
        let (mut reply, session, statements) = self.reply(Ends::StatementInProcedure);
        if is_reset {
            reply.tokens().change(Change::Reset);
        }
        let count = rpc.calls.len();
        let mut last = before;
        for (at, called) in rpc.calls.iter().enumerate() {
            let ended = call::run(called, statements, session, &mut reply);
            last = after(session, before, next);
            let is_cancelled = cancels.load(Ordering::SeqCst) > 0;
            let is_last = at + 1 == count || is_cancelled;
            let status = if is_cancelled { done::ERROR } else { ended };
            reply.end_call(session, last, status, is_last);
            if is_last {
                break;
            }
        }
        reply.finish();
        self.note_transaction(last);
    }

    fn note_transaction(&mut self, transaction: u64) {
        self.transaction = transaction;
        self.transactions = self.transactions.max(transaction);
    }

    /// A request to the transaction manager: drivers begin and end transactions by it.
    fn transaction(&mut self, request: &Transaction) -> io::Result<()> {
        let text = match request {
            Transaction::Begin { .. } => "BEGIN TRANSACTION",
            Transaction::Commit { begins_next: false } => "COMMIT TRANSACTION",
            Transaction::Commit { begins_next: true } => "COMMIT TRANSACTION; BEGIN TRANSACTION",
            Transaction::Rollback { begins_next, name } if name.is_empty() => {
                match (self.transaction, begins_next) {
                    // The server may have rolled it back already.
                    (0, false) => "",
                    (0, true) => "BEGIN TRANSACTION",
                    (_, false) => "ROLLBACK TRANSACTION",
                    (_, true) => "ROLLBACK TRANSACTION; BEGIN TRANSACTION",
                }
            }
            Transaction::Rollback { .. } | Transaction::Save { .. } => {
                return self.refuse(&table::protocol_not_supported("a savepoint"));
            }
            Transaction::Distributed(_) => {
                return self.refuse(&table::protocol_not_supported("a distributed transaction"));
            }
        };
        self.batch(text, false);
        Ok(())
    }

    /// Answers a request with an error.
    fn refuse(&mut self, message: &Message) -> io::Result<()> {
        let mut answer = Answer::default();
        note(&mut answer, message, &self.server);
        answer.done(Ends::Statement, done::ERROR, 0, 0);
        self.send(answer)
    }
}

/// The transaction after a request, by number; `next` if a new one is open.
fn after(session: &Session, before: u64, next: u64) -> u64 {
    match (session.is_in_transaction(), before) {
        (false, _) => 0,
        (true, 0) => next,
        (true, before) => before,
    }
}
