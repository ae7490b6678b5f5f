//! What a server, and a client of one, need of a session: its place among the others, its end, and batches that run
//! in another process.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use windlass_base::Message;
use windlass_base::message::table;
use windlass_catalog::{DatabaseState, Drive};

use crate::session_settings::Settings;
use crate::sessions::{InUse, Listed};
use crate::{BatchEnd, Collected, Failure, Instance, Session, Sink, Value, tsql};

impl Session {
    /// Its place in the list of sessions.
    pub fn listed(&self) -> &Arc<Listed> {
        self.entry.listed()
    }

    /// Its number, `@@SPID`.
    pub fn number(&self) -> u32 {
        self.entry.number()
    }

    /// Uses a database beside other sessions for as long as the value lives.
    ///
    /// # Errors
    /// 952 if another session is about to replace or drop it.
    pub(crate) fn use_beside(&self, database: &str) -> Result<InUse, Failure> {
        let shared = self.instance.sessions().share(self.number(), database);
        shared.ok_or_else(|| Failure::from(table::database_in_transition(database)))
    }

    /// Keeps all other sessions away from a database for as long as the value lives; `None` if one uses it.
    pub(crate) fn use_alone(&self, database: &str) -> Option<InUse> {
        self.instance.sessions().exclude(self.number(), database)
    }

    /// Opens all databases of the page engine that are online, and keeps them open; returns those that could not
    /// be opened.
    pub fn open_engine_databases(&mut self) -> Vec<(String, Failure)> {
        let databases = match self.instance.catalog().databases() {
            Ok(databases) => databases,
            Err(error) => return vec![(String::new(), error.into())],
        };
        let engines = databases
            .into_iter()
            .filter(|record| record.log_path.is_some() && record.state == DatabaseState::Online);
        engines
            .filter_map(|record| {
                let opened = self.instance.engine(&record);
                opened.err().map(|failure| (record.name, failure))
            })
            .collect()
    }

    /// Ends the session; the instance goes on.
    pub fn into_instance(self) -> Instance {
        self.instance
    }

    /// Whether a transaction is open.
    pub fn is_in_transaction(&self) -> bool {
        self.queries.is_in_transaction()
    }

    /// Whether the last transaction that ended was rolled back.
    pub fn was_rolled_back(&self) -> bool {
        self.queries.was_rolled_back()
    }

    /// The value of a variable after a batch; `None` if it has none of that name.
    pub fn variable_value(&self, name: &str) -> Option<Value> {
        self.variables.value(name).ok()
    }

    /// Puts the session back to its state after login: settings, variables, `#temp` tables, cursors. An open
    /// transaction is rolled back.
    ///
    /// A client that resets its connection within its own transaction may ask to keep that.
    pub fn reset(&mut self, keeps_transaction: bool) {
        // Temporary tables live as long as the connection, and the transaction in it.
        if !(keeps_transaction && self.queries.is_in_transaction()) {
            self.queries.roll_back_all();
            self.queries.forget_temporary();
        }
        self.queries.forget_lock_timeout();
        self.settings = Settings::default();
        self.variables.clear();
        self.cursors = tsql::cursor::Cursors::default();
        self.last_error = 0;
        self.row_count = 0;
    }

    /// Runs the batches of this session in another process from now on.
    pub fn run_elsewhere(&mut self, elsewhere: Box<dyn Elsewhere>) {
        self.elsewhere = Some(elsewhere);
    }

    /// Whether its batches run in another process.
    pub fn is_elsewhere(&self) -> bool {
        self.elsewhere.is_some()
    }

    /// The refusal of a batch that runs in another process and names a drive which the command line maps here to another
    /// folder than there: it would read or write other files than the user means.
    pub fn differing_drive(&mut self, text: &str) -> Option<Message> {
        let cancel = self.cancel_flag();
        let elsewhere = self.elsewhere.as_mut()?;
        let given = self.instance.drives_of_process();
        let named: Vec<&Drive> = given.iter().filter(|drive| names(text, drive)).collect();
        if named.is_empty() {
            return None;
        }
        let mut heard = Collected::default();
        elsewhere.execute("EXECUTE sp_windlass_drive", 1, &cancel, &mut heard);
        let rows = heard.results.iter().flat_map(|result| &result.rows);
        let theirs: Vec<(String, String)> = rows
            .filter_map(|row| match row.as_slice() {
                [letter, folder] => Some((letter.to_string(), folder.to_string())),
                _ => None,
            })
            .collect();
        named.into_iter().find_map(|drive| {
            let (letter, here) = (drive.letter.to_string(), drive.folder.display().to_string());
            let there = theirs.iter().find(|(other, _)| *other == letter);
            let there = there.map(|(_, folder)| folder.as_str());
            (there != Some(here.as_str())).then(|| {
                let there = there.map_or("no folder".to_owned(), |folder| format!("'{folder}'"));
                table::drive_of_server(drive.letter, there, here)
            })
        })
    }
}

/// Whether a text has the drive's letter with a colon, which does not end a word, as in a URL.
fn names(text: &str, drive: &Drive) -> bool {
    let is_letter = |(_, found): &(usize, char)| found.eq_ignore_ascii_case(&drive.letter);
    let mut letters = text.char_indices().filter(is_letter);
    letters.any(|(at, _)| {
        text[at + drive.letter.len_utf8()..].starts_with(':')
            && !text[..at].ends_with(char::is_alphanumeric)
    })
}

/// A session in another process, which runs the batches of one here: a server owns the instance.
pub trait Elsewhere: std::fmt::Debug + Send {
    /// Runs a batch there; sets of `cancel` cancel it.
    fn execute(
        &mut self,
        text: &str,
        first_line: u32,
        cancel: &AtomicBool,
        sink: &mut dyn Sink,
    ) -> BatchEnd;

    /// Its current database.
    fn database(&self) -> &str;

    fn is_in_transaction(&self) -> bool;

    /// Its number.
    fn session(&self) -> u32;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Silent;

    #[test]
    fn a_reset_session_waits_for_locks_as_a_new_one() {
        let mut session = Session::new(Instance::open(None).unwrap());
        let shown = |session: &mut Session| {
            session.execute_batch("DECLARE @t int = @@LOCK_TIMEOUT", 1, &mut Silent);
            (session.variable_value("@t"), session.queries.waits())
        };
        let new = shown(&mut session);
        session.execute_batch("SET LOCK_TIMEOUT 7", 1, &mut Silent);
        assert_ne!(shown(&mut session), new);
        session.reset(false);
        assert_eq!(shown(&mut session), new);
    }

    #[test]
    fn a_reset_keeps_a_transaction_only_if_it_is_asked_to() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.db");
        let app = rusqlite::Connection::open(&path).unwrap();
        app.execute_batch("CREATE TABLE t (x)").unwrap();
        let mut instance = Instance::open(None).unwrap();
        instance.pass_as("app", &path).unwrap();
        let mut session = Session::new(instance);
        let began = "USE app; BEGIN TRAN; INSERT t VALUES (1)";
        let end = session.execute_batch(began, 1, &mut Silent);
        assert_eq!(end, BatchEnd::Clean);
        session.reset(true);
        assert!(session.is_in_transaction());
        session.reset(false);
        assert!(!session.is_in_transaction());
        let rows: i64 = app
            .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
            .unwrap();
        assert_eq!(rows, 0);
    }
}
