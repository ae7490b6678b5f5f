//! LOGIN7: who may come in, and the answer.
//!
//! Over TCP a login needs a name and a password. On the local socket the operating system says who the client
//! is: the user whom the server runs as, and root, are administrators.

use std::time::Instant;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_instance::{Client, Instance, PRODUCT, Principal, Session, Silent, authenticate};
use windlass_tds::answer::{Answer, Change, Ends, done};
use windlass_tds::collation::Collation;
use windlass_tds::login::{Login, Proof};
use windlass_tds::packet::{PACKET_BYTES_DEFAULT, PACKET_BYTES_LEGAL, Packets};

use super::greeting::VERSION;
use super::note::note;
use crate::error::invalid;
use crate::listen::Context;
use crate::wire::{Socket, Wire};

/// The product by which drivers choose their features.
const PROGRAM: &str = "Microsoft SQL Server";
/// The largest packet in TLS: one fits into a record.
const TLS_PACKET_BYTES: u16 = 16_000;
const LANGUAGE: &str = "us_english";

/// The session of a client that has logged in.
pub(crate) struct LoggedIn {
    pub(crate) session: Session,
    pub(crate) packets: Packets,
}

/// Checks a login, and answers it; the reason for the log if it is refused.
pub(crate) fn log_in(
    wire: &Wire,
    payload: &[u8],
    context: &Context,
) -> std::io::Result<Result<LoggedIn, String>> {
    let login = Login::parse(payload).map_err(invalid)?;
    let instance = context.instance()?;
    let server = instance.identity().server.clone();
    let refuse = |messages: &[Message]| {
        let mut answer = Answer::default();
        for message in messages {
            note(&mut answer, message, &server);
        }
        answer.done(Ends::Statement, done::ERROR, 0, 0);
        let mut out = Vec::new();
        Packets::new(0).end_message(&mut answer.tokens, &mut out);
        wire.write(&out)
    };
    let peer = wire.socket().peer();
    let principal = match admitted(wire.socket(), &login, &instance, context) {
        Ok(principal) => principal,
        Err((message, reason)) => {
            std::thread::sleep(context.throttle.failed(peer, Instant::now()));
            refuse(&[message])?;
            return Ok(Err(reason));
        }
    };
    context.throttle.succeeded(peer);
    let user = principal.name().to_owned();
    let client = Client {
        login: user.clone(),
        host: login.host.clone(),
        program: login.application.clone(),
        process: login.process,
        interface: login.library.clone(),
        address: wire
            .socket()
            .peer()
            .map_or_else(|| "<local machine>".to_owned(), |peer| peer.to_string()),
        transport: match wire.socket() {
            Socket::Tcp(_) => "TCP",
            Socket::Local(_) => "Named pipe",
        },
        is_encrypted: wire.is_encrypted(),
    };
    let mut session = Session::of_client(instance, client);
    if context.is_stopping() {
        refuse(&[table::shutdown_in_progress(), table::login_failed(&user)])?;
        return Ok(Err("the server ends".to_owned()));
    }
    let wanted = match login.database.as_str() {
        "" => principal.default_database().to_owned(),
        named => named.to_owned(),
    };
    let acting = session.act_as(principal);
    let used = acting.and_then(|()| match wanted.eq_ignore_ascii_case("master") {
        true => Ok(()),
        false => session.use_database(&wanted, &mut Silent),
    });
    if used.is_err() {
        refuse(&[
            table::cannot_open_database(&wanted),
            table::login_failed(&user),
        ])?;
        return Ok(Err(format!("database '{wanted}' cannot be used")));
    }
    let mut packets = Packets::new(u16::try_from(session.number()).unwrap_or(0));
    accept(wire, &login, &session, &mut packets)?;
    Ok(Ok(LoggedIn { session, packets }))
}

/// Who logs in, or why nobody does: what the client is told, and what the log says.
fn admitted(
    socket: &Socket,
    login: &Login,
    instance: &Instance,
    context: &Context,
) -> Result<Principal, (Message, String)> {
    if login.proof != Proof::Password {
        let reason = "integrated and federated logins are not supported";
        return Err((table::login_from_untrusted_domain(), reason.to_owned()));
    }
    if login.changes_password || !login.attach_file.is_empty() {
        let reason = "a new password or a file to attach in a login is not supported";
        return Err((table::login_failed(&login.user), reason.to_owned()));
    }
    if socket.is_own_user() {
        let user = match login.user.as_str() {
            "" => instance.identity().user.as_str(),
            user => user,
        };
        return Ok(Principal::administrator(user));
    }
    let turn = context.turns.of(socket.peer());
    let _turn = turn.blocking_lock();
    let _check = context.turns.check.blocking_lock();
    let password = login.password.reveal();
    authenticate(instance.catalog(), &login.user, password).map_err(|refusal| {
        let reason = format!("{refusal} (state {})", refusal.state());
        (table::login_failed(&login.user), reason)
    })
}

fn accept(
    wire: &Wire,
    login: &Login,
    session: &Session,
    packets: &mut Packets,
) -> std::io::Result<()> {
    let server = session.instance().identity().server.clone();
    let bytes = packet_bytes(login.packet_bytes, wire.is_encrypted());
    let database = session.current_database();
    let mut answer = Answer::default();
    answer.change(Change::Database(database, "master"));
    note(
        &mut answer,
        &table::changed_database(database).with_state(2),
        &server,
    );
    answer.change(Change::Collation(Collation::DEFAULT));
    answer.change(Change::Language(LANGUAGE, ""));
    note(&mut answer, &table::changed_language(LANGUAGE), &server);
    let [major, minor, high, low, ..] = VERSION;
    answer.login_accepted(login.tds_version, PROGRAM, [major, minor, high, low]);
    answer.change(Change::PacketBytes(bytes, PACKET_BYTES_DEFAULT));
    if login.knows_utf8 {
        answer.utf8_accepted();
    }
    answer.done(Ends::Statement, 0, 0, 0);
    let mut out = Vec::new();
    packets.end_message(&mut answer.tokens, &mut out);
    wire.write(&out)?;
    packets.set_packet_bytes(bytes);
    tracing::info!(
        session = session.number(),
        login = session.listed().client.login,
        host = session.listed().client.host,
        program = session.listed().client.program,
        driver = login.user_agent.as_deref().unwrap_or(&login.library),
        product = PRODUCT,
        "a client logged in"
    );
    Ok(())
}

/// The size of packets: what the client asks for, within what the connection can take.
fn packet_bytes(asked: u32, is_encrypted: bool) -> u16 {
    let most = match is_encrypted {
        true => TLS_PACKET_BYTES,
        false => *PACKET_BYTES_LEGAL.end(),
    };
    match u16::try_from(asked) {
        Ok(0) => PACKET_BYTES_DEFAULT,
        Ok(asked) => asked.clamp(*PACKET_BYTES_LEGAL.start(), most),
        Err(_) => most,
    }
}
