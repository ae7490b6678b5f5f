//! `windlass serve`

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use windlass_instance::operation::WhenFull;

use super::follow::{parse_interval, parse_room, parse_when_full};
use super::number::{COUNT, number};
use crate::operate::parse_rpo;

/// The port of SQL Server.
const TDS_DEFAULT: &str = "127.0.0.1:1433";

const HTTP_DEFAULT: &str = "127.0.0.1:8433";

const NOTES: &str = "\
The server owns the databases of the page engine of its instance while it runs; clients connect with the
drivers that SQL Server has (TDS 7.4 and 8.0), and on this machine through the socket windlass.sock in the
instance's folder, without a password for the user whom the server runs as.

A page to look at is on --http: databases, running backups, history, sessions. It changes nothing, and asks for no
login: everybody on this machine may look. --no-http leaves it out.

SIGTERM and SIGINT end it: running requests get --patience, then they are cancelled; a second signal cancels them
at once. SIGHUP reads the certificate and the configuration files again, and opens the log file again. Logins are made with CREATE LOGIN:

  windlass sql --instance DIR -Q \"CREATE LOGIN ops WITH PASSWORD = '...'\"";

/// `windlass serve`
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct ServeArguments {
    /// Address and port for TDS; repeat for several. Port 0 picks a free one and says which
    #[arg(long, value_name = "ADDRESS", default_value = TDS_DEFAULT)]
    pub(crate) tds: Vec<SocketAddr>,
    /// Address and port of the page to look at; repeat for several. Port 0 picks a free one. On other addresses than
    /// loopback it speaks TLS and asks for a login
    #[arg(long, value_name = "ADDRESS", default_value = HTTP_DEFAULT)]
    pub(crate) http: Vec<SocketAddr>,
    /// Serve no page
    #[arg(long, conflicts_with = "http")]
    pub(crate) no_http: bool,
    /// Recovery point objective that the page judges by: minutes, or 24h, or 7d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_rpo)]
    pub(crate) rpo: i64,
    /// Listen only on the local socket
    #[arg(long, conflicts_with_all = ["tds", "http"])]
    pub(crate) local_only: bool,
    /// Accept clients that do not encrypt, on loopback addresses only
    #[arg(long)]
    pub(crate) plain: bool,
    /// Certificate in PEM, with its chain [default: one that is made, server.pem in the instance's folder]
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) certificate: Option<PathBuf>,
    /// The certificate's private key in PEM
    #[arg(long, value_name = "FILE", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
    /// How many clients may be connected at once
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = number::<usize>(COUNT))]
    pub(crate) max_connections: usize,
    /// What to call when a job fails: a command for /bin/sh, or a URL; it gets the report as JSON
    #[arg(long, value_name = "COMMAND|URL")]
    pub(crate) on_job_failure: Option<String>,
    /// How often what SQLite files with the recovery model FULL have committed becomes durable in the instance, as a
    /// moment that can be restored: 1s, 200ms, 1m
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    pub(crate) follow_every: Duration,
    /// Bytes of the log that is kept of each such file, until a log backup makes room
    #[arg(long, value_name = "BYTES", value_parser = parse_room)]
    pub(crate) spool_max: Option<u64>,
    /// What to do when there is no room, because of --spool-max or the disk: gap lets the database go on as without the
    /// server, and a differential backup closes the gap; hold keeps the database's own log, which grows until there is room
    #[arg(long, value_name = "WHAT", default_value = "gap", value_parser = parse_when_full)]
    pub(crate) when_full: WhenFull,
    /// How long running requests may go on when the server is asked to end: seconds, or forever. A second
    /// signal cancels them at once
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    pub(crate) patience: Patience,
}

/// How long the end of a server waits for what runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Patience {
    Seconds(u32),
    Forever,
}

impl Patience {
    /// Whether it lasts after a wait of this length.
    pub(crate) fn lasts(self, waited: Duration) -> bool {
        match self {
            Self::Seconds(seconds) => waited < Duration::from_secs(seconds.into()),
            Self::Forever => true,
        }
    }
}

impl FromStr for Patience {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "forever" => Ok(Self::Forever),
            seconds => seconds
                .parse()
                .map(Self::Seconds)
                .map_err(|_| "a number of seconds, or forever".to_owned()),
        }
    }
}
