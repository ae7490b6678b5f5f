//! What is known while it is decided, and how that grows: decisions say what has to be read, and what is read changes them.

use std::collections::BTreeSet;

use windlass_base::message::table;
use windlass_catalog::QueuedCopy;
use windlass_crypt::KeyRing;

use super::locked::Locks;
use super::unreadable::Doubt;
use super::{ExpireError, ExpireOptions, Reach, Removal, Trust};
use super::{announce, newer, states, unread_logs, unreadable, unseen, waiting};
use crate::chain::Ends;
use crate::damage::{self, Damages};
use crate::retention::{self, Decision, Now, Place, Scan};
use crate::{Session, Sink};

/// The media, and what is known of them.
pub(super) struct Deciding<'a> {
    options: &'a ExpireOptions<'a>,
    pub(super) scan: Scan,
    /// The state of each medium before anything was read.
    pub(super) states: Vec<String>,
    pub(super) locks: Locks,
    /// Whether something was found of which the user must know; it was reported.
    pub(super) is_damaged: bool,
    now: Now,
    /// A file that may be a newer backup.
    doubt: Option<Doubt>,
    queued: Vec<QueuedCopy>,
    damages: Damages,
    /// The damaged databases that would lose a backup, by their paths.
    ill: BTreeSet<String>,
    /// Why media stay that the rules would let go.
    held: Vec<BTreeSet<String>>,
    /// The sets that were read back.
    looked_at: BTreeSet<Place>,
    /// The media of which it was told that they cannot be read.
    told: BTreeSet<usize>,
}

impl<'a> Deciding<'a> {
    /// Looks for the media, and at their headers.
    pub(super) fn begin(
        session: &Session,
        options: &'a ExpireOptions<'a>,
        sink: &mut dyn Sink,
    ) -> Result<Self, ExpireError> {
        let mut scan = session.look(options)?;
        let catalog = session.instance.catalog();
        let now = Now::here();
        let states = states(&scan.media);
        let told = unreadable::report(&mut scan.media, options, now, sink);
        let doubt = doubted(&scan, sink);
        Ok(Self {
            options,
            states,
            locks: Locks::default(),
            is_damaged: !told.is_empty() || doubt.is_some(),
            now,
            doubt,
            queued: catalog.queued_copies().map_err(ExpireError::History)?,
            damages: Damages::read(catalog).map_err(ExpireError::History)?,
            ill: BTreeSet::new(),
            held: vec![BTreeSet::new(); scan.media.len()],
            looked_at: BTreeSet::new(),
            told,
            scan,
        })
    }

    /// Adds what was made since the last look; `false` if there is nothing.
    fn add_newer(&mut self, later: Scan, sink: &mut dyn Sink) -> bool {
        if self.doubt.is_none() {
            self.doubt = doubted(&later, sink);
            self.is_damaged |= self.doubt.is_some();
        }
        let Some(appended) = newer::add(&mut self.scan, &mut self.states, later) else {
            return self.doubt.is_some();
        };
        self.looked_at
            .retain(|(medium, _)| !appended.contains(medium));
        self.held.resize(self.scan.media.len(), BTreeSet::new());
        self.now = Now::here();
        true
    }

    /// Decides by what is known. What stays against the rules keeps what it needs.
    fn decide(&mut self) -> Vec<Decision> {
        let media = &self.scan.media;
        let (policy, database) = (self.options.policy, self.options.database);
        let mut decisions = loop {
            let held = self.held.clone();
            let mut decisions = retention::decide_holding(media, policy, database, self.now, held);
            let went: Vec<bool> = decisions.iter().map(|decision| decision.goes).collect();
            waiting::keep_waiting(media, &mut decisions, &self.queued);
            waiting::keep_ill(media, &mut decisions, &self.damages, &mut self.ill);
            self.locks.keep(media, &mut decisions);
            let mut is_settled = true;
            for ((decision, went), held) in decisions.iter().zip(went).zip(&mut self.held) {
                if went && !decision.goes {
                    held.extend(decision.reasons.iter().cloned());
                    is_settled = false;
                }
            }
            if is_settled {
                break decisions;
            }
        };
        if let Some(doubt) = &self.doubt {
            for decision in &mut decisions {
                decision.keep(doubt.reason());
            }
        }
        decisions
    }

    /// Tells what stays though no rule keeps it, and what the user can do.
    pub(super) fn tell(&mut self, sink: &mut dyn Sink) {
        for known in self.ill.iter().filter_map(|path| self.damages.at(path)) {
            self.is_damaged = true;
            let summary = damage::summary(known);
            sink.message(table::nothing_expires(&known.database, summary));
        }
        let unreadable = unseen::tell(&self.scan.media, &self.told, self.options, self.now, sink);
        self.is_damaged |= !unreadable.is_empty();
    }
}

/// A file that may be a newer backup; tells of it.
fn doubted(scan: &Scan, sink: &mut dyn Sink) -> Option<Doubt> {
    let doubt = unreadable::doubt(scan)?;
    sink.message(table::medium_unreadable(&doubt.device, &doubt.why));
    Some(doubt)
}

impl Session {
    /// What is in the folders, and what the history knows beside them.
    fn look(&self, options: &ExpireOptions<'_>) -> Result<Scan, ExpireError> {
        let mut scan = retention::scan(options.folders).map_err(ExpireError::Folders)?;
        let catalog = self.instance.catalog();
        let past = catalog.past_backups(None).map_err(ExpireError::History)?;
        let reach = Reach::of(&self.instance).map_err(ExpireError::History)?;
        unseen::check_gone(options.gone, &past, &reach)?;
        // Before what needs them is looked for: they may be whole.
        retention::add_known(&mut scan, &past);
        retention::add_dependents(&mut scan, &past, &reach, options.gone);
        retention::add_bases(&mut scan, &past, &reach, options.gone);
        Ok(scan)
    }

    /// Decides, and reads what deletions rely on, until there is nothing more to read and nothing newer.
    pub(super) fn decided(
        &mut self,
        deciding: &mut Deciding<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Vec<Decision>, ExpireError> {
        let options = deciding.options;
        loop {
            let decisions = deciding.decide();
            let media = &deciding.scan.media;
            let unread = self.unread(
                media,
                &decisions,
                &deciding.looked_at,
                options.trust,
                deciding.now.local,
            )?;
            let logs = match options.trust {
                Trust::Headers => Vec::new(),
                Trust::Content { .. } => unread_logs(&decisions),
            };
            if unread.is_empty() && logs.is_empty() {
                let goes = decisions.iter().any(|decision| decision.goes);
                if options.removal == Removal::Delete
                    && goes
                    && deciding.add_newer(self.look(options)?, sink)
                {
                    continue;
                }
                return Ok(decisions);
            }
            let mut reading = unread.clone();
            reading.extend(logs.iter().map(|(place, _)| *place));
            reading.sort_unstable();
            reading.dedup();
            announce(media, &reading, options.removal, sink);
            if options.removal == Removal::Name {
                return Ok(decisions);
            }
            self.read_sets(deciding, unread, sink)?;
            self.read_logs(deciding, logs, sink)?;
        }
    }

    /// Reads sets on which deletions rely. One that cannot be read is in trouble from then on.
    fn read_sets(
        &mut self,
        deciding: &mut Deciding<'_>,
        unread: Vec<Place>,
        sink: &mut dyn Sink,
    ) -> Result<(), ExpireError> {
        for (medium, place) in unread {
            deciding.looked_at.insert((medium, place));
            let media = &mut deciding.scan.media[medium];
            let read = self.read_back(media, place, sink)?;
            deciding.is_damaged |= read.is_damaged;
            if let Some(reason) = read.unrestorable {
                // Another set on it may be damaged for sure.
                media.may_pass = read.may_be_whole && (media.trouble.is_none() || media.may_pass);
                media.trouble.get_or_insert(reason);
                deciding.told.insert(medium);
            }
        }
        Ok(())
    }

    /// Reads the logs of log backups for what they continue.
    fn read_logs(
        &mut self,
        deciding: &mut Deciding<'_>,
        logs: Vec<(Place, Ends)>,
        sink: &mut dyn Sink,
    ) -> Result<(), ExpireError> {
        for ((medium, place), ends) in logs {
            let media = &mut deciding.scan.media[medium];
            let looked = self.look_within(media, place, &KeyRing::default(), &ends);
            // Whatever may lead into it stays then.
            let failures = looked.err().into_iter();
            for message in failures.flat_map(|failure| failure.messages) {
                sink.message(message);
            }
            if self.is_cancelled() {
                return Err(ExpireError::Cancelled);
            }
        }
        Ok(())
    }
}
