//! The sessions of a process on one instance: who they are, what they do, and which databases they use.
//!
//! Every [`Session`](crate::Session) is listed from its creation until it is dropped. Outside of a server the
//! list has one entry. Neighbours: the server describes its clients with [`Client`]; `sys.dm_exec_sessions`
//! and `KILL` read the list.
//!
//! Invariant: a database is dropped, detached or replaced only by a session that holds it alone: no other
//! session has it as its current database, backs it up or checks it ([`Sessions::share`],
//! [`Sessions::exclude`]). Other processes are kept out by the locks on its files.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value as Json, json};
use windlass_base::{Guid, Moment};

/// SQL Server's lowest number of a user session; those below are the server's own.
const FIRST_NUMBER: u32 = 51;
/// The largest number, which the packets of TDS still hold.
const LAST_NUMBER: u32 = 32_767;

/// The program at the other end of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Client {
    /// The name of its login.
    pub login: String,
    /// Its machine.
    pub host: String,
    /// Its program, as it names itself.
    pub program: String,
    /// Its process on its machine; 0 if unknown.
    pub process: u32,
    /// Its driver.
    pub interface: String,
    /// Its network address; empty for a session without a connection.
    pub address: String,
    /// `TCP` or `Named pipe`, as SQL Server calls a local socket, or empty.
    pub transport: &'static str,
    pub is_encrypted: bool,
}

/// What a session is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// The current database.
    pub database: String,
    /// Since when it runs a request, or when it last did.
    pub request_at: Moment,
    /// When its last request ended.
    pub ended_at: Moment,
    pub is_running: bool,
    /// Number of batches and calls so far.
    pub requests: u64,
    /// Whether a transaction is open.
    pub in_transaction: bool,
}

/// A session in the list.
#[derive(Debug)]
pub struct Listed {
    pub number: u32,
    pub client: Client,
    pub login_at: Moment,
    pub connection_id: Guid,
    cancel: Arc<AtomicBool>,
    is_killed: AtomicBool,
    hangs_up: Mutex<Option<HangUp>>,
    activity: Mutex<Activity>,
}

/// Ends a session's connection.
struct HangUp(Box<dyn Fn() + Send>);

impl std::fmt::Debug for HangUp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HangUp")
    }
}

impl Listed {
    pub fn activity(&self) -> Activity {
        locked(&self.activity).clone()
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Activity)) {
        change(&mut locked(&self.activity));
    }

    /// Whether the session was ended by `KILL`.
    pub fn is_killed(&self) -> bool {
        self.is_killed.load(Ordering::Relaxed)
    }

    /// Sets what ends the connection when the session is killed.
    pub fn on_kill(&self, hang_up: impl Fn() + Send + 'static) {
        *locked(&self.hangs_up) = Some(HangUp(Box::new(hang_up)));
    }

    /// Cancels what the session runs, and ends its connection.
    pub fn kill(&self) {
        self.is_killed.store(true, Ordering::Relaxed);
        self.cancel.store(true, Ordering::Relaxed);
        if let Some(HangUp(hang_up)) = &*locked(&self.hangs_up) {
            hang_up();
        }
    }
}

/// The sessions of a process.
#[derive(Debug, Clone, Default)]
pub struct Sessions(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// Whether sessions have numbers of their own. Outside of a server the one session has the process's.
    is_server: AtomicBool,
    list: Mutex<BTreeMap<u32, Arc<Listed>>>,
    uses: Mutex<HashMap<String, Use>>,
}

/// The sessions that use a database, by number; a session may be among them several times.
#[derive(Debug, Default)]
struct Use {
    sharers: Vec<u32>,
    excluder: Option<u32>,
}

/// A session's entry in the list, removed on drop.
#[derive(Debug)]
pub(crate) struct Entry {
    sessions: Sessions,
    listed: Arc<Listed>,
}

impl Entry {
    pub(crate) fn listed(&self) -> &Arc<Listed> {
        &self.listed
    }

    pub(crate) fn number(&self) -> u32 {
        self.listed.number
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        locked(&self.sessions.0.list).remove(&self.listed.number);
    }
}

/// A session's use of a database, ended on drop.
#[derive(Debug)]
pub(crate) struct InUse {
    sessions: Sessions,
    database: String,
    number: u32,
    is_alone: bool,
}

impl Drop for InUse {
    fn drop(&mut self) {
        let mut uses = locked(&self.sessions.0.uses);
        let Some(found) = uses.get_mut(&self.database) else {
            return;
        };
        if self.is_alone {
            found.excluder = None;
        } else if let Some(at) = found.sharers.iter().position(|user| *user == self.number) {
            found.sharers.swap_remove(at);
        }
        if found.sharers.is_empty() && found.excluder.is_none() {
            uses.remove(&self.database);
        }
    }
}

impl Sessions {
    /// Gives each session a number of its own from now on.
    pub fn serve(&self) {
        self.0.is_server.store(true, Ordering::Relaxed);
    }

    /// Whether this process is a server.
    pub fn is_server(&self) -> bool {
        self.0.is_server.load(Ordering::Relaxed)
    }

    /// Lists a new session.
    pub(crate) fn enter(&self, client: Client, cancel: &Arc<AtomicBool>) -> Entry {
        let mut list = locked(&self.0.list);
        let number = match self.is_server() {
            true => (FIRST_NUMBER..LAST_NUMBER)
                .find(|number| !list.contains_key(number))
                .unwrap_or(LAST_NUMBER),
            false => std::process::id(),
        };
        let listed = Arc::new(Listed {
            number,
            client,
            login_at: Moment::now().0,
            connection_id: Guid::random(),
            cancel: Arc::clone(cancel),
            is_killed: AtomicBool::new(false),
            hangs_up: Mutex::new(None),
            activity: Mutex::new(Activity {
                database: "master".to_owned(),
                request_at: Moment::now().0,
                ended_at: Moment::now().0,
                is_running: false,
                requests: 0,
                in_transaction: false,
            }),
        });
        list.insert(number, Arc::clone(&listed));
        Entry {
            sessions: self.clone(),
            listed,
        }
    }

    /// All sessions, by number.
    pub fn list(&self) -> Vec<Arc<Listed>> {
        locked(&self.0.list).values().map(Arc::clone).collect()
    }

    /// The session of that number.
    pub fn find(&self, number: u32) -> Option<Arc<Listed>> {
        locked(&self.0.list).get(&number).map(Arc::clone)
    }

    /// The list as JSON objects, for the views.
    pub(crate) fn rows(&self) -> Vec<Json> {
        let rows = self.list().into_iter().map(|listed| {
            let (client, activity) = (&listed.client, listed.activity());
            json!({
                "session_id": listed.number,
                "login_time": listed.login_at.to_string(),
                "host_name": client.host,
                "program_name": client.program,
                "host_process_id": client.process,
                "client_interface_name": client.interface,
                "login_name": client.login,
                "status": if activity.is_running { "running" } else { "sleeping" },
                "endpoint_id": match client.transport {
                    "TCP" => 4,
                    "Named pipe" => 3,
                    _ => 0,
                },
                "last_request_start_time": activity.request_at.to_string(),
                "last_request_end_time": activity.ended_at.to_string(),
                "open_transaction_count": i32::from(activity.in_transaction),
                "database_name": activity.database,
                "requests": activity.requests,
                "net_transport": client.transport,
                "encrypt_option": if client.is_encrypted { "TRUE" } else { "FALSE" },
                "client_net_address": client.address,
                "connection_id": listed.connection_id.to_string(),
            })
        });
        rows.collect()
    }

    /// Uses a database beside others; `None` if a session has it alone.
    pub(crate) fn share(&self, number: u32, database: &str) -> Option<InUse> {
        let database = database.to_lowercase();
        let mut uses = locked(&self.0.uses);
        let found = uses.entry(database.clone()).or_default();
        if found.excluder.is_some_and(|other| other != number) {
            return None;
        }
        found.sharers.push(number);
        Some(InUse {
            sessions: self.clone(),
            database,
            number,
            is_alone: false,
        })
    }

    /// Uses a database alone; `None` if another session uses it, or this one has it alone already.
    pub(crate) fn exclude(&self, number: u32, database: &str) -> Option<InUse> {
        let database = database.to_lowercase();
        let mut uses = locked(&self.0.uses);
        let found = uses.entry(database.clone()).or_default();
        if found.excluder.is_some() || found.sharers.iter().any(|other| *other != number) {
            return None;
        }
        found.excluder = Some(number);
        Some(InUse {
            sessions: self.clone(),
            database,
            number,
            is_alone: true,
        })
    }

    /// The other sessions that use a database.
    #[cfg(test)]
    pub(crate) fn users(&self, number: u32, database: &str) -> Vec<u32> {
        let uses = locked(&self.0.uses);
        let found = uses.get(&database.to_lowercase());
        let mut users: Vec<u32> = found
            .into_iter()
            .flat_map(|found| found.sharers.iter().chain(&found.excluder))
            .copied()
            .filter(|user| *user != number)
            .collect();
        users.sort_unstable();
        users.dedup();
        users
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(sessions: &Sessions) -> Entry {
        sessions.enter(Client::default(), &Arc::default())
    }

    #[test]
    fn numbers_are_unique_and_reused() {
        let sessions = Sessions::default();
        sessions.serve();
        let (first, second) = (enter(&sessions), enter(&sessions));
        assert_eq!((first.number(), second.number()), (51, 52));
        drop(first);
        assert_eq!(enter(&sessions).number(), 51);
        assert_eq!(sessions.list().len(), 1);
        assert!(sessions.find(52).is_some());
    }

    #[test]
    fn a_database_is_held_alone_only_without_other_users() {
        let sessions = Sessions::default();
        let used = sessions.share(51, "App").unwrap();
        let own = sessions.share(52, "app").unwrap();
        assert!(sessions.exclude(52, "app").is_none(), "51 uses it");
        assert_eq!(sessions.users(52, "APP"), [51]);
        drop(used);
        let alone = sessions.exclude(52, "app").unwrap();
        assert!(sessions.share(51, "app").is_none());
        assert!(sessions.exclude(52, "app").is_none(), "once");
        assert!(sessions.share(51, "other").is_some());
        drop((own, alone));
        assert!(sessions.share(51, "app").is_some());
        assert!(locked(&sessions.0.uses).is_empty(), "nothing stays");
    }

    #[test]
    fn a_killed_session_is_cancelled_and_hung_up() {
        let sessions = Sessions::default();
        let cancel = Arc::new(AtomicBool::new(false));
        let entry = sessions.enter(Client::default(), &cancel);
        let hung_up = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&hung_up);
        entry
            .listed()
            .on_kill(move || flag.store(true, Ordering::Relaxed));
        sessions.find(entry.number()).unwrap().kill();
        assert!(cancel.load(Ordering::Relaxed) && hung_up.load(Ordering::Relaxed));
        assert!(entry.listed().is_killed());
    }
}
