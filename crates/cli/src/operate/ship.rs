//! `windlass ship`: keeps a copy of a database current from its log backups.

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::json;
use windlass_base::message::table;
use windlass_base::size::counted;
use windlass_base::{Message, json_time};
use windlass_instance::operation::{Beyond, ShipOptions, Shipped};
use windlass_instance::{Session, logical_name};

use crate::args::{Common, KeyArguments, number_and_unit};
use crate::command::{
    Outcome, absolute, disks, keys, misused, placed, refused, reported, session_for,
};
use crate::output::{Console, Layout, result_json, result_line};

/// How often a pause looks whether it is over.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

const NOTES: &str = "\
At first a full backup is restored WITH NORECOVERY, with what follows it; from then on every round applies the log backups
behind the state that was reached. How far the copy is, its own files say: rounds can be killed and begun again. A round that
fails is tried again after --every; with --once the exit code is 1. --promote applies what there is, without --delay, and
recovers the copy.";

/// `windlass ship`
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct ShipArguments {
    /// Backup files, and folders of them
    #[arg(required = true)]
    pub(crate) media: Vec<String>,
    /// Database whose backups to use, if the media hold backups of several
    #[arg(long, value_name = "NAME")]
    pub(crate) of: Option<String>,
    /// First file of the copy
    #[arg(long, value_name = "FILE", required_unless_present = "database")]
    pub(crate) to: Option<PathBuf>,
    /// Register the copy with the instance under this name
    #[arg(long, value_name = "NAME")]
    pub(crate) database: Option<String>,
    /// Time between two rounds: 5s, 60s, 15m
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = parse_time)]
    pub(crate) every: Duration,
    /// Apply log backups only when they are as old as this: 15m, 4h
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = parse_time)]
    pub(crate) delay: Duration,
    /// One round, then exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Apply what there is, and recover the copy
    #[arg(long, conflicts_with_all = ["once", "delay"])]
    pub(crate) promote: bool,
    #[command(flatten)]
    pub(crate) keys: KeyArguments,
    /// Refuse backup sets that were not signed with the key whose public half is in this file; can be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) signed_by: Vec<PathBuf>,
}

fn parse_time(text: &str) -> Result<Duration, String> {
    let seconds = number_and_unit(text).and_then(|(number, unit)| {
        let seconds = match unit {
            "s" | "" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return None,
        };
        Some(number.saturating_mul(seconds))
    });
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "a time such as 30s, 15m or 4h".to_owned())
}

/// Runs the command.
pub(super) fn run(arguments: &ShipArguments, common: &Common) -> Outcome {
    if arguments.database.is_some() && common.instance.is_none() {
        return misused("--database registers the copy with an instance: name it by --instance");
    }
    if arguments.every.is_zero() {
        return misused("--every: the shortest time between two rounds is 1s");
    }
    let mut console = Console::new(common.json, Layout::Table);
    let Some(mut session) = session_for(false, common, &mut console) else {
        return Outcome::Failed;
    };
    crate::cancel::ends_reads(session.cancel_flag());
    let keys = match keys::ring(&arguments.keys) {
        Ok(keys) => keys,
        Err(message) => return refused(message, &mut console),
    };
    let Some(target) = placed(&session, &arguments.to, &mut console) else {
        return Outcome::Failed;
    };
    let target = target.first().map(|path| PathBuf::from(absolute(path)));
    let of_target = target.as_deref().map(logical_name).unwrap_or_default();
    let name = arguments.database.clone().unwrap_or(of_target);
    let options = ShipOptions {
        media: disks(&arguments.media),
        of: arguments.of.clone(),
        name,
        target,
        registers: arguments.database.is_some(),
        delay: match arguments.promote {
            true => Duration::ZERO,
            false => arguments.delay,
        },
        keys,
        signed_by: arguments
            .signed_by
            .iter()
            .map(|path| absolute(path))
            .collect(),
    };
    rounds(
        &mut session,
        &options,
        arguments,
        (&mut console, common.json),
    )
}

/// Makes rounds until the command ends.
fn rounds(
    session: &mut Session,
    options: &ShipOptions,
    arguments: &ShipArguments,
    (console, is_json): (&mut Console, bool),
) -> Outcome {
    let cancel = session.cancel_flag();
    let mut is_first = true;
    let mut told = Told::default();
    loop {
        let shipped = reported(session.ship(options, console), console);
        if let Some(shipped) = &shipped
            && (shipped.restored > 0 || is_first)
        {
            print(shipped, is_json);
            is_first = false;
        }
        let shipped = shipped.filter(|shipped| told.tell(shipped, arguments.promote, console));
        if arguments.promote || arguments.once {
            return match (shipped, arguments.promote) {
                (None, _) => Outcome::Failed,
                (Some(_), false) => Outcome::Succeeded,
                (Some(_), true) => {
                    let promoted = session.promote(options, console);
                    reported(promoted, console).map_or(Outcome::Failed, |()| Outcome::Succeeded)
                }
            };
        }
        let begun = Instant::now();
        while begun.elapsed() < arguments.every {
            if cancel.load(Ordering::Relaxed) {
                return Outcome::Succeeded;
            }
            std::thread::sleep(BETWEEN_LOOKS);
        }
    }
}

/// What has been said of newer backups that the copy cannot reach: it is said again only if it changes.
#[derive(Default)]
struct Told {
    hindrance: Option<Message>,
    /// The backup with a later state.
    beyond: Option<String>,
}

impl Told {
    /// Says what is new; whether the round has succeeded.
    fn tell(&mut self, shipped: &Shipped, promotes: bool, console: &mut Console) -> bool {
        if let Some(why) = &shipped.hindrance
            && self.hindrance.as_ref() != Some(why)
        {
            console.message(why.clone());
        }
        self.hindrance.clone_from(&shipped.hindrance);
        let beyond = shipped.beyond.as_ref();
        if let Some(Beyond { reached, set }) = beyond
            && self.beyond.as_ref() != Some(set)
        {
            console.message(match promotes {
                false => table::ship_state_beyond(reached, set),
                true => table::ship_promotes_older(reached, set),
            });
        }
        self.beyond = beyond.map(|beyond| beyond.set.clone());
        // Log backups may still come, but not to a copy that is recovered.
        self.hindrance.is_none() && !(promotes && self.beyond.is_some())
    }
}

fn print(shipped: &Shipped, is_json: bool) {
    let lag = shipped.lag.map(|lag| lag.as_secs_f64());
    if is_json {
        let json = json!({
            "restored": shipped.restored,
            "reached": shipped.reached.as_deref().map(json_time),
            "lag_seconds": lag,
        });
        return result_json(&json.to_string());
    }
    let reached = match (&shipped.reached, shipped.restored) {
        (Some(reached), _) => format!("; reached {reached}"),
        (None, 0) => String::new(),
        (None, _) => "; reached an unknown time".to_owned(),
    };
    let lag = lag.map_or_else(String::new, |lag| format!(", {lag:.1} s ago"));
    let sets = counted(shipped.restored, "backup set");
    result_line(&format!("{sets} restored{reached}{lag}"));
}
