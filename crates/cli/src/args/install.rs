//! `windlass install`

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

const NOTES: &str = "\
The unit starts windlass serve with this instance and the options after --, as a user without rights, confined to
the instance's folder and the --writable ones. Run it as root on the machine that is to serve:

  windlass install --instance /srv/windlass --user windlass --writable /srv/backup -- --on-job-failure 'mail -s failed ops'

To look at the unit first, print it: --to -";

/// `windlass install`
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct InstallArguments {
    /// File of the unit; - prints it
    #[arg(
        long,
        value_name = "FILE",
        default_value = "/etc/systemd/system/windlass.service"
    )]
    pub(crate) to: PathBuf,
    /// User whom the server runs as
    #[arg(long, value_name = "NAME", default_value = "windlass")]
    pub(crate) user: String,
    /// Folder of databases or backups that the server may write besides its instance's; repeat for several
    #[arg(long, value_name = "FOLDER")]
    pub(crate) writable: Vec<PathBuf>,
    /// Replace a unit that is there
    #[arg(long)]
    pub(crate) replace: bool,
    /// Options of windlass serve, after --
    #[arg(last = true, value_name = "OPTIONS")]
    pub(crate) options: Vec<OsString>,
}
