//! Log shipping: keeps a copy of a database current from its backups, restoring and ready to be recovered.
//!
//! A round restores what is new on the media WITH NORECOVERY: at first a full backup and what follows it, later the log
//! backups behind the state that was reached. Nothing but the files of the copy says how far it is, so a round that was
//! killed, or another program that went on, does no harm: a plan that another program has overtaken is made again. A copy to which a differential was applied in part is begun again.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use windlass_base::message::table;
use windlass_base::{Message, local_of_unix_ms};
use windlass_crypt::KeyRing;

use super::restore::{Aim, Beyond, Newest, NewestRequest, Reached, RestoreOptions, Sequence, Step};
use super::{DeviceName, device};
use crate::{Failure, Session, Silent, Sink};

/// The options of log shipping.
#[derive(Debug, Clone)]
pub struct ShipOptions {
    /// Backups, and folders of them.
    pub media: Vec<DeviceName>,
    /// Whose backups; needed if the media have those of several databases.
    pub of: Option<String>,
    /// The name of the copy.
    pub name: String,
    /// Its first file; the place of the registered database of that name if absent.
    pub target: Option<PathBuf>,
    /// Whether the copy is registered with the instance.
    pub registers: bool,
    /// Log backups are applied only when they are as old as this.
    pub delay: Duration,
    /// Keys in addition to those of the instance.
    pub keys: KeyRing,
    /// Files of public keys; one of them must have signed each set.
    pub signed_by: Vec<String>,
}

/// What a round has done.
#[derive(Debug, Clone, Default)]
pub struct Shipped {
    /// The number of sets that were restored.
    pub restored: usize,
    /// The state that the copy has reached; `None` if unknown.
    pub reached: Option<String>,
    /// How old that state is.
    pub lag: Option<Duration>,
    /// Why the copy did not get further, though there are newer log backups.
    pub hindrance: Option<Message>,
    /// A backup with a newer state, to which no log backup leads: one may still come.
    pub beyond: Option<Beyond>,
}

/// How often a round makes a plan, if another program brings the copy on meanwhile.
const PLANS_MAX: u32 = 4;

/// How far a plan was carried out.
enum Advanced {
    ToItsEnd,
    /// A step failed, and the copy waits elsewhere than before that step: another program has brought it there.
    Overtaken(Failure),
}

impl Session {
    /// Brings the copy up to the newest backups that are old enough.
    ///
    /// # Errors
    /// The reason, in messages. What was restored until then stays, and the next round continues with it.
    pub fn ship(&mut self, options: &ShipOptions, sink: &mut dyn Sink) -> Result<Shipped, Failure> {
        let now_ms = unix_ms();
        let delay_ms = u64::try_from(options.delay.as_millis()).unwrap_or(u64::MAX);
        // Without a delay nothing is held, even if another machine's clock is ahead.
        let until_ms = match delay_ms {
            0 => u64::MAX,
            delay_ms => now_ms.saturating_sub(delay_ms),
        };
        let mut shipped = Shipped::default();
        let mut plans = PLANS_MAX;
        loop {
            let plan = self.plan(options, until_ms, sink)?;
            shipped.hindrance = plan.hindrance;
            shipped.beyond = plan.beyond;
            plans -= 1;
            match self.advance(plan.steps, options, &mut shipped.restored)? {
                Advanced::ToItsEnd => break,
                Advanced::Overtaken(_) if plans > 0 => {}
                Advanced::Overtaken(failure) => return Err(failure),
            }
        }
        let reached = self.reached(&options.name, options.target.as_deref())?;
        if let Some(reached) = reached.filter(|reached| reached.unix_ms > 0) {
            shipped.reached = Some(local_of_unix_ms(reached.unix_ms));
            shipped.lag = Some(Duration::from_millis(
                unix_ms().saturating_sub(reached.unix_ms),
            ));
        }
        Ok(shipped)
    }

    /// What leads from the state of the copy to the newest.
    fn plan(
        &mut self,
        options: &ShipOptions,
        until_ms: u64,
        sink: &mut dyn Sink,
    ) -> Result<Newest, Failure> {
        let tags = self.instance.tags();
        let store = device::Store {
            takes_folders: true,
            ..device::Store::default()
        };
        let devices = device::resolve_several(self, &options.media, &tags, &store)?;
        let copy = self.reached(&options.name, options.target.as_deref())?;
        if let (None, Some(target)) = (copy, &options.target)
            && target.exists()
        {
            return Err(table::ship_no_copy(target.display()).into());
        }
        let sequence = self.sequence(&options.name, options.target.as_deref())?;
        let reached = copy.filter(|_| sequence != Sequence::Torn);
        let request = NewestRequest {
            of: options.of.as_deref(),
            name: &options.name,
            target: options.target.as_deref(),
            leaves_open: false,
            aim: Aim::Onward(reached, until_ms),
            keys: &options.keys,
        };
        let mut plan = self.newest_on(devices, &request)?;
        if let (None, Some(copy)) = (reached, copy) {
            refuse_other(&options.name, copy, &plan.steps)?;
        }
        for note in std::mem::take(&mut plan.notes) {
            sink.message(note);
        }
        Ok(plan)
    }

    /// Does the restores of a plan, and counts them.
    fn advance(
        &mut self,
        steps: Vec<Step>,
        options: &ShipOptions,
        restored: &mut usize,
    ) -> Result<Advanced, Failure> {
        for step in steps {
            let before = self.reached(&options.name, options.target.as_deref())?;
            let restore = step.restore(RestoreOptions {
                target: options.target.clone(),
                needs_target: true,
                is_unregistered: !options.registers,
                signed_by: options.signed_by.clone(),
                keys: options.keys.clone(),
                ..RestoreOptions::default()
            });
            // The round's own line says what was restored.
            if let Err(failure) = self.restore(&options.name, &restore, &mut Silent) {
                let now = self.reached(&options.name, options.target.as_deref())?;
                let sequence = self.sequence(&options.name, options.target.as_deref())?;
                let has_moved = now != before && sequence != Sequence::Torn;
                return match has_moved || is_not_ready(&failure) {
                    true => Ok(Advanced::Overtaken(failure)),
                    false => Err(failure),
                };
            }
            *restored += 1;
        }
        Ok(Advanced::ToItsEnd)
    }

    /// Ends shipping: recovers the copy, which then is a database like others.
    ///
    /// # Errors
    /// The reason, in messages.
    pub fn promote(&mut self, options: &ShipOptions, sink: &mut dyn Sink) -> Result<(), Failure> {
        let recovery = RestoreOptions {
            target: options.target.clone(),
            needs_target: true,
            is_unregistered: !options.registers,
            ..RestoreOptions::default()
        };
        self.restore(&options.name, &recovery, sink).map(|_| ())
    }
}

/// Whether it says that the copy does not wait for a backup: it did when the plan was made, so another program works on it.
fn is_not_ready(failure: &Failure) -> bool {
    let number = table::not_ready_to_rollforward().number;
    failure.messages.iter().any(|said| said.number == number)
}

/// A copy is begun again only from backups of its own database.
fn refuse_other(name: &str, copy: Reached, steps: &[Step]) -> Result<(), Failure> {
    let is_own = |step: &Step| step.set.family_guid == copy.family;
    match steps.iter().all(is_own) {
        true => Ok(()),
        false => Err(table::other_database(name).into()),
    }
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default().as_millis();
    u64::try_from(since).unwrap_or(u64::MAX)
}
