//! Compares an instance's history with its media.

use std::path::Path;

use windlass_base::Moment;
use windlass_base::size::counted;
use windlass_catalog::provenance::is_named;
use windlass_catalog::{
    DatabaseRecord, DatabaseState, Error, FILE_NAME, Failures, KnownDamage, PastBackup,
};
use windlass_instance::Session;
use windlass_instance::chain::Times;
use windlass_instance::damage;
use windlass_instance::followers::followers_of;
use windlass_instance::overview::{AHEAD, seconds};
use windlass_instance::presence::Looker;
use windlass_instance::retention::Now;
use windlass_instance::standing::{Restorable, Standing, standings, tell_apart};
use windlass_instance::verified::Verifications;
use windlass_instance::watched::{self, Watched, watched};

use super::verdict::{Reason, State, Subject, Verdict, duration};
use super::{Limits, followed, is_asked, rest, texts};
use crate::args::Common;
use crate::command::open;

/// Checks the requested or all databases of the instance in `folder`.
pub(super) fn check(folder: &Path, common: &Common, asked: &[String], limits: Limits) -> Verdict {
    // A check does not create an instance.
    match folder.join(FILE_NAME).try_exists() {
        Ok(true) => {}
        Ok(false) => {
            return Verdict::unknown(format!("there is no instance in '{}'", folder.display()));
        }
        Err(error) => return Verdict::unknown(format!("'{}': {error}", folder.display())),
    }
    let instance = match open(common) {
        Ok(instance) => instance,
        Err(messages) => return Verdict::unknown(texts(messages)),
    };
    let mut session = Session::new(instance);
    match read(folder, &mut session, asked, limits) {
        Ok(verdict) => verdict,
        Err(error) => Verdict::unknown(error.to_string()),
    }
}

fn read(
    folder: &Path,
    session: &mut Session,
    asked: &[String],
    limits: Limits,
) -> Result<Verdict, Error> {
    let catalog = session.instance().catalog();
    let mut past = catalog.past_backups(None)?;
    let registered = catalog.databases()?;
    let machine = &session.instance().identity().machine;
    tell_apart(&mut past, &registered, machine);
    let failures = watched::failures(catalog, &past, &registered, machine)?;
    let copies = catalog.queued_copies()?;
    let mut looker = Looker::asking(session.instance())?;
    let now = Now {
        local: limits.now,
        utc: limits.now_utc,
    };
    let standings = standings(&past, Some(&mut looker), now);
    let all = checked(&registered, &standings, &failures, asked);
    let mut subjects: Vec<Subject> = all
        .iter()
        .map(|one| match one.standing {
            Some(standing) => {
                let verifications = looker.verifications();
                database(one.name, standing, one.failures, verifications, limits)
            }
            None => {
                let mut subject = never(one, &standings);
                let known = one.record.and_then(|record| looker.damages().of(record));
                subject.reasons.extend(known.map(ill));
                subject
            }
        })
        .collect();
    let names: Vec<&str> = all.iter().map(|one| one.name).collect();
    followers(folder, &registered, &mut subjects);
    let unknown = |name: &str| {
        let text = format!("the instance knows no database '{name}'");
        Reason::new(State::Unknown, "no-such-database", text)
    };
    let text = "the instance knows no database";
    let nothing = Reason::new(State::Unknown, "no-database", text);
    let mut rest = rest(asked, &names, unknown, nothing);
    let failing = copies.iter().filter(|copy| copy.attempts > 0).count();
    if !copies.is_empty() {
        let waiting = copies.len();
        let text = format!("{waiting} copies are waiting, {failing} of them have failed before");
        rest.reasons.push(
            Reason::new(State::Warning, "copies-waiting", text)
                .numbered(i64::try_from(waiting).unwrap_or(i64::MAX)),
        );
    }
    rest.counts.push(("copies", copies.len() as u64));
    subjects.push(rest);
    looker.note(session.instance_mut().catalog_mut(), limits.now);
    Ok(Verdict { subjects })
}

/// What is wrong with the followers of SQLite files.
fn followers(folder: &Path, registered: &[DatabaseRecord], subjects: &mut [Subject]) {
    for shown in followers_of(folder, registered) {
        let is_it = |subject: &&mut Subject| subject.database.as_deref() == Some(&*shown.database);
        if let Some(subject) = subjects.iter_mut().find(is_it) {
            subject.reasons.extend(followed::reasons(&shown));
        }
    }
}

/// The databases to check.
fn checked<'a, 's>(
    registered: &'a [DatabaseRecord],
    standings: &'s [Standing<'a>],
    failures: &'a [Failures],
    asked: &[String],
) -> Vec<Watched<'a, 's>> {
    let mut all = watched(registered, standings, failures);
    // Plain commands register no databases. A dropped one is checked if requested, or if there are no others. A copy of a
    // registered one counts as long as its last run failed.
    let is_copy = |one: &Watched<'_, '_>| {
        let mut records = registered.iter();
        one.record.is_none() && records.any(|record| is_named(one.name, &record.name))
    };
    let is_due = |one: &Watched<'_, '_>| {
        let is_failing = one.failures.is_some_and(|failures| failures.is_latest);
        let is_wanted = one.is_kept || registered.is_empty() || !asked.is_empty();
        is_wanted && (is_failing || !is_copy(one))
    };
    all.retain(|one| is_asked(asked, one.name) && is_due(one));
    all.sort_unstable_by_key(|one| one.name);
    all
}

/// A database without a backup, and others that have or had its name.
fn never(one: &Watched<'_, '_>, standings: &[Standing<'_>]) -> Subject {
    use DatabaseState::{Restoring, Standby};
    let (name, record, failures) = (one.name, one.record, one.failures);
    let mut subject = Subject::new(Some(name));
    if record.is_some_and(|record| matches!(record.state, Restoring | Standby)) {
        // It waits for further restores: there is nothing to back up.
        let text = "is being restored, so it has no backups of its own".to_owned();
        subject
            .reasons
            .push(Reason::new(State::Ok, "restoring", text));
        failed(&mut subject, failures);
        return subject;
    }
    let others = standings.iter().map(|other| other.database);
    let others: Vec<&str> = others.filter(|other| is_named(other, name)).collect();
    let text = match others.as_slice() {
        [] => "has never been backed up".to_owned(),
        others => format!(
            "has never been backed up where it is now; other databases of this name: {} (if the name of this \
             machine changes, set machine_name)",
            others.join(", ")
        ),
    };
    let reason = Reason::new(State::Critical, "never-backed-up", text);
    subject.reasons.push(reason);
    failed(&mut subject, failures);
    subject
}

fn database(
    name: &str,
    standing: &Standing<'_>,
    failures: Option<&Failures>,
    verifications: &Verifications,
    limits: Limits,
) -> Subject {
    let mut subject = Subject::new(Some(name));
    let reasons = &mut subject.reasons;
    subject.age = age(standing.newest(), limits);
    if let Some(ahead) = standing.ahead.last() {
        let dated = ahead.started.map_or_else(String::new, |at| at.to_string());
        let text = format!("the backup of {dated} is {AHEAD}");
        reasons.push(Reason::new(State::Warning, "dated-in-future", text));
    }
    reasons.extend(standing.ill.as_ref().map(ill));
    reasons.extend(contradicted(standing));
    reasons.extend(damaged(standing));
    media(standing, limits, subject.age, reasons);
    verified(standing, verifications, limits, reasons);
    failed(&mut subject, failures);
    subject
}

/// Checks the last run.
fn failed(subject: &mut Subject, failures: Option<&Failures>) {
    let Some(failures) = failures else {
        return;
    };
    subject.counts.push(("failures", failures.count));
    let last = &failures.last;
    if failures.is_latest {
        let text = format!(
            "the last run failed on {}: message {}: {}",
            last.failed, last.error_number, last.message
        );
        let reason = Reason::new(State::Warning, "last-run-failed", text);
        subject
            .reasons
            .push(reason.numbered(last.error_number.into()));
    }
}

/// Seconds since the start of a backup.
fn age(backup: Option<&PastBackup>, limits: Limits) -> Option<i64> {
    let backup = backup?;
    let began = Times::of(backup.started, backup.started, backup.time_zone)?;
    Some(limits.now_utc - began.started)
}

/// Checks what can be restored now.
fn media(standing: &Standing<'_>, limits: Limits, age: Option<i64>, reasons: &mut Vec<Reason>) {
    reasons.extend(Reason::of_age(age, !standing.ahead.is_empty(), limits));
    if let [(newest, why), ..] = standing.lost.iter().rev().collect::<Vec<_>>().as_slice() {
        let made = newest
            .finished
            .map_or_else(String::new, |at| at.to_string());
        let count = standing.lost.len();
        let lost = counted(count, "newer backup");
        let text = format!("{lost} lost, the last of {made}: {why}");
        reasons.push(
            Reason::new(State::Warning, "backups-lost", text)
                .numbered(i64::try_from(count).unwrap_or(i64::MAX)),
        );
    }
    if let Restorable::Unknown(why) = standing.restorable() {
        reasons.push(
            Reason::new(State::Unknown, "media-unseen", why)
                .numbered(i64::try_from(standing.unseen.len()).unwrap_or(i64::MAX)),
        );
    }
}

/// A backup that may be newer than the newest by its date.
fn contradicted(standing: &Standing<'_>) -> Option<Reason> {
    let of = |backup: &PastBackup| {
        let made = backup
            .finished
            .map_or_else(String::new, |at| at.to_string());
        format!("the backup of {made} on '{}'", backup.devices.join("', '"))
    };
    let (rival, newest) = (standing.rivals.first()?, standing.newest()?);
    Some(Reason::contradicted(&of(rival), &of(newest)))
}

/// The damage of the database itself.
fn ill(known: &KnownDamage) -> Reason {
    let reason = Reason::new(State::Critical, "database-damaged", damage::summary(known));
    reason.numbered(known.error_number.into())
}

/// The damage that verifications and restores have found.
fn damaged(standing: &Standing<'_>) -> Option<Reason> {
    let (backup, error) = standing.damaged?;
    let made = backup.finished;
    let made = made.map_or_else(String::new, |at| at.to_string());
    let text = format!(
        "the last verification or restore of what the backup of {made} needs found damage: message {error}"
    );
    let reason = Reason::new(State::Critical, "verification-failed", text);
    Some(reason.numbered(error.into()))
}

/// Checks when backups were last verified.
fn verified(
    standing: &Standing<'_>,
    verifications: &Verifications,
    limits: Limits,
    reasons: &mut Vec<Reason>,
) {
    let Some(within) = limits.verified_within else {
        return;
    };
    let backups = standing.backups.iter();
    let valid = backups.filter_map(|(backup, _)| verifications.valid(backup));
    // What a clock that was ahead has dated is recent for as long as it was ahead. Local times go back by an hour.
    let is_ahead = |at: Moment| seconds(limits.now, at) > 3600;
    let (ahead, past): (Vec<_>, Vec<_>) = valid.partition(|(at, _)| is_ahead(*at));
    match past.into_iter().max() {
        None if !ahead.is_empty() => reasons.push(Reason::new(
            State::Warning,
            "verification-old",
            format!("the last verification is {AHEAD}"),
        )),
        None => reasons.push(Reason::new(
            State::Warning,
            "never-verified",
            "no backup was ever verified",
        )),
        Some((at, depth)) => {
            let age = seconds(at, limits.now);
            if age > within {
                let text = format!(
                    "the last verification ({}) was {} ago, more than {}",
                    depth.name(),
                    duration(age),
                    duration(within)
                );
                reasons.push(Reason::new(State::Warning, "verification-old", text).numbered(age));
            }
        }
    }
}
