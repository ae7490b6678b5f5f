//! A server for the load: started, asked, and ended.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use crate::load::{ACCOUNTS, BALANCE, Connection, Transfer};
use crate::tds::Client;

/// Rows of ballast that make a megabyte.
const ROWS_PER_MEGABYTE: u64 = 280;

/// A running server of the program; killed when dropped.
pub(crate) struct Served<'a> {
    program: &'a Path,
    instance: PathBuf,
    child: Child,
}

impl<'a> Served<'a> {
    pub(crate) fn start(program: &'a Path, instance: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(program)
            .args(["serve", "--local-only", "--instance"])
            .arg(instance)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("the server")?;
        let mut line = String::new();
        let out = child.stdout.take().context("the server's output")?;
        BufReader::new(out).read_line(&mut line)?;
        ensure!(line.starts_with("listening on"), "the server did not start");
        Ok(Self {
            program,
            instance: instance.to_owned(),
            child,
        })
    }

    pub(crate) fn client(&self, database: &str) -> anyhow::Result<Client> {
        Client::connect(&self.instance.join("windlass.sock"), database)
    }

    /// Runs a batch by `windlass sql`, and returns what it prints.
    pub(crate) fn sql(&self, text: &str) -> anyhow::Result<String> {
        sql(self.program, &self.instance, text)
    }

    /// Ends the server as a service manager does.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the server ended with {status}");
        Ok(())
    }
}

impl Drop for Served<'_> {
    fn drop(&mut self) {
        // It may have ended.
        let _ended = self.child.kill();
        let _ended = self.child.wait();
    }
}

/// Runs a batch on an instance.
pub(crate) fn sql(program: &Path, instance: &Path, text: &str) -> anyhow::Result<String> {
    let output = Command::new(program)
        .args(["sql", "-h", "-1", "-W", "--instance"])
        .arg(instance)
        .args(["-Q", text])
        .output()?;
    if !output.status.success() {
        let out = String::from_utf8_lossy(&output.stdout);
        let err = String::from_utf8_lossy(&output.stderr);
        bail!("{text}\n{out}{err}");
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The tables, in both systems' words; `megabytes` of ballast.
pub(crate) fn tables(megabytes: u64) -> [String; 5] {
    let count = |rows: u64| {
        format!("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})")
    };
    [
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER)".to_owned(),
        "CREATE TABLE ledger (id INTEGER PRIMARY KEY, session INTEGER, number INTEGER, source INTEGER, target INTEGER, amount INTEGER)".to_owned(),
        "CREATE TABLE ballast (id INTEGER PRIMARY KEY, body BLOB)".to_owned(),
        format!("{} INSERT INTO accounts SELECT i - 1, {BALANCE} FROM n", count(ACCOUNTS)),
        format!(
            "{} INSERT INTO ballast (body) SELECT randomblob(3500) FROM n",
            count(megabytes * ROWS_PER_MEGABYTE)
        ),
    ]
}

/// Creates the database `shop` in a folder.
pub(crate) fn create(served: &Served<'_>, folder: &Path, megabytes: u64) -> anyhow::Result<()> {
    let folder = folder.display();
    served.sql(&format!(
        "CREATE DATABASE shop ON (NAME = shop, FILENAME = '{folder}/shop.mdf') LOG ON (NAME = shop_log, FILENAME = '{folder}/shop.ldf')"
    ))?;
    for statement in tables(megabytes) {
        served.sql(&format!("USE shop; {statement}"))?;
    }
    Ok(())
}

/// A session of the server.
pub(crate) struct Session(Client);

impl Session {
    pub(crate) fn open(served: &Served<'_>) -> anyhow::Result<Self> {
        let mut client = served.client("shop")?;
        let timeout = Duration::from_secs(30).as_millis();
        let is_set = client.run(&format!("SET XACT_ABORT ON; SET LOCK_TIMEOUT {timeout}"))?;
        ensure!(is_set, "the settings of a session were refused");
        Ok(Self(client))
    }
}

impl Connection for Session {
    fn transfer(&mut self, transfer: &Transfer) -> anyhow::Result<bool> {
        let Transfer {
            session,
            number,
            from,
            to,
            amount,
        } = transfer;
        self.0.run(&format!(
            "BEGIN TRAN; \
             UPDATE accounts SET balance = balance - {amount} WHERE id = {from}; \
             UPDATE accounts SET balance = balance + {amount} WHERE id = {to}; \
             INSERT INTO ledger (session, number, source, target, amount) VALUES ({session}, {number}, {from}, {to}, {amount}); \
             COMMIT"
        ))
    }

    fn read(&mut self, account: u64) -> anyhow::Result<()> {
        let text = format!("SELECT balance FROM accounts WHERE id = {account}");
        ensure!(self.0.run(&text)?, "an account could not be read");
        Ok(())
    }
}
