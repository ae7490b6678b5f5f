//! Checks the backups in folders, whatever their origin.

use std::collections::BTreeSet;

use windlass_base::Message;
use windlass_base::size::counted;
use windlass_catalog::Provenance;
use windlass_device::DeviceFolder;
use windlass_instance::chain::{ChainSet, Chains, Obstacle, is_newer, rivals};
use windlass_instance::operation::Reach;
use windlass_instance::overview::AHEAD;
use windlass_instance::provenance::named_databases;
use windlass_instance::retention::{self, FoundMedia, FoundOther, Place, Scan};
use windlass_instance::{Failure, is_of_windows, is_url};

use super::verdict::{Reason, State, Subject, Verdict};
use super::{Limits, is_asked, rest, texts};
use crate::args::Common;
use crate::command::open;

/// Checks the databases that have backups in the folders.
pub(super) fn check(
    folders: &[String],
    common: &Common,
    asked: &[String],
    limits: Limits,
) -> Verdict {
    let folders = match reached(folders, common) {
        Ok(folders) => folders,
        Err(messages) => return Verdict::unknown(texts(messages)),
    };
    let scan = match retention::scan(&folders) {
        Ok(scan) => scan,
        Err(error) => return Verdict::unknown(format!("the folders cannot be listed: {error}")),
    };
    verdict(&scan, asked, limits)
}

fn verdict(scan: &Scan, asked: &[String], limits: Limits) -> Verdict {
    let (places, mut sets) = retention::settled_sets(&scan.media);
    let of: Vec<Provenance> = places
        .iter()
        .map(|(medium, place)| scan.media[*medium].sets[*place].of.clone())
        .collect();
    let mut databases = named_databases(&of);
    databases.retain(|(name, _)| is_asked(asked, name));
    databases.sort_by_key(|(name, _)| name.to_lowercase());
    let groups: Vec<&[usize]> = databases.iter().map(|(_, own)| own.as_slice()).collect();
    refuse(&mut sets, &groups, (&places, &scan.media), limits);
    let chains = Chains::of(&sets);
    let mut names = Vec::new();
    let mut subjects = Vec::new();
    for (name, group) in &databases {
        names.push(name.as_str());
        let mut subject = Subject::new(Some(name));
        let ahead = group.iter().find(|index| is_future(&sets[**index], limits));
        if let Some(future) = ahead {
            let text = format!("{} is {AHEAD}", backup_in(&scan.media[places[*future].0]));
            let reason = Reason::new(State::Warning, "dated-in-future", text);
            subject.reasons.push(reason);
        }
        let dated = dated(group, &sets, limits);
        let newest = chains.newest_among(dated.iter().copied());
        let rival = newest.and_then(|newest| Some((rivals(&sets, newest, &dated).next()?, newest)));
        subject.reasons.extend(rival.map(|(rival, newest)| {
            let of = |index: usize| backup_in(&scan.media[places[index].0]);
            Reason::contradicted(&of(rival), &of(newest))
        }));
        subject.age = newest
            .and_then(|newest| sets[newest].times)
            .map(|times| limits.now_utc - times.started);
        subject
            .reasons
            .extend(Reason::of_age(subject.age, ahead.is_some(), limits));
        let is_lost = |index: &&usize| {
            chains.verdict(**index).is_err()
                && newest.is_none_or(|newest| is_newer(&sets[**index], &sets[newest]))
        };
        let lost: Vec<&usize> = group.iter().filter(is_lost).collect();
        if let Some(last) = lost.last() {
            let why = chains.verdict(**last).err();
            let why = why.map(ToString::to_string).unwrap_or_default();
            let file = scan.media[places[**last].0].files.first();
            let file = file.map(|file| file.device.to_string());
            let text = format!(
                "{} not restorable, the last in '{}': {why}",
                counted(lost.len(), "newer backup"),
                file.unwrap_or_default()
            );
            let count = i64::try_from(lost.len()).unwrap_or(i64::MAX);
            let reason = Reason::new(State::Warning, "backups-lost", text);
            subject.reasons.push(reason.numbered(count));
        }
        subject.reasons.extend(hidden(group, &places, &scan.media));
        subject.counts.push(("backups", group.len() as u64));
        subjects.push(subject);
    }
    let mut rest = others(asked, &names, scan);
    rest.counts.push(("media", scan.media.len() as u64));
    rest.counts.push(("other_files", scan.others.len() as u64));
    subjects.push(rest);
    Verdict { subjects }
}

/// Whether a set is dated in the future: it proves nothing.
fn is_future(set: &ChainSet, limits: Limits) -> bool {
    let times = set.times;
    times.is_some_and(|times| times.is_future(limits.now_utc))
}

/// The sets of a database that are not dated in the future.
fn dated(group: &[usize], sets: &[ChainSet], limits: Limits) -> Vec<usize> {
    let dated = group.iter().copied();
    dated
        .filter(|index| !is_future(&sets[*index], limits))
        .collect()
}

/// Finds out what the newest state of each database needs and a restore would refuse, as the start of a set that is damaged. Then
/// another state is the newest.
fn refuse(
    sets: &mut [ChainSet],
    groups: &[&[usize]],
    (places, media): (&[Place], &[FoundMedia]),
    limits: Limits,
) {
    let mut opened = BTreeSet::new();
    loop {
        let known = &*sets;
        let chains = Chains::of(known);
        let needed = groups.iter().flat_map(|group| {
            let newest = chains.newest_among(dated(group, known, limits).into_iter());
            let path = newest.and_then(|newest| chains.path(newest).ok());
            path.unwrap_or_default()
        });
        let needed: BTreeSet<usize> = needed.filter(|index| opened.insert(*index)).collect();
        if needed.is_empty() {
            return;
        }
        let own: Vec<Place> = needed.iter().map(|index| places[*index]).collect();
        for (index, why) in needed.into_iter().zip(retention::refusals(media, &own)) {
            if let Some(why) = why {
                sets[index].obstacle = Some(Obstacle::Media(why));
            }
        }
    }
}

/// The folders, by drives and with the keys of their stores: an instance is needed for no others.
fn reached(written: &[String], common: &Common) -> Result<Vec<DeviceFolder>, Vec<Message>> {
    let has_keys = common.instance.is_some() && written.iter().any(|name| is_url(name));
    let reach = match has_keys || written.iter().any(|name| is_of_windows(name)) {
        true => {
            let reach = Reach::of(&open(common)?);
            reach.map_err(|error| Failure::from(&error).messages)?
        }
        false => Reach::default(),
    };
    let folders = written.iter().map(|name| reach.folder(name));
    let folders: Result<Vec<DeviceFolder>, Failure> = folders.collect();
    folders.map_err(|failure| failure.messages)
}

/// A backup, by the first file of its medium.
fn backup_in(media: &FoundMedia) -> String {
    let file = media.files.first();
    let file = file.map(|file| file.device.to_string());
    format!("the backup in '{}'", file.unwrap_or_default())
}

/// Damage of a database's media behind the sets that they show: a newer one may be there, which a restore does not
/// ignore.
fn hidden(group: &[usize], places: &[Place], media: &[FoundMedia]) -> Option<Reason> {
    let mut own = group.iter().map(|index| &media[places[*index].0]);
    let (file, defect) = own.find_map(|media| {
        let file = media.torn().filter(|file| file.may_hide)?;
        Some((&file.device, file.defect.as_ref()?))
    })?;
    let text =
        format!("'{file}' is damaged behind its backup sets, where a newer one may be: {defect}");
    Some(Reason::new(State::Warning, "backups-lost", text).numbered(1))
}

/// The findings beside the databases that have backups.
fn others(asked: &[String], names: &[&str], scan: &Scan) -> Subject {
    let is_unseen = |file: &&FoundOther| file.is_unknown || file.may_be_medium;
    let mut unseen = scan.others.iter().filter(is_unseen);
    if let Some(file) = unseen.next() {
        // What cannot be read may be the backup that is missing.
        let text = format!("'{}' cannot be read: {}", file.device, file.reason);
        let count = i64::try_from(1 + unseen.count()).unwrap_or(i64::MAX);
        let mut rest = Subject::new(None);
        let reason = Reason::new(State::Unknown, "media-unseen", text);
        rest.reasons.push(reason.numbered(count));
        return rest;
    }
    let critical = |text: String| Reason::new(State::Critical, "never-backed-up", text);
    let absent = |name: &str| critical(format!("{name}: no backup of it in these folders"));
    let nothing = critical("there is no backup in these folders".to_owned());
    rest(asked, names, absent, nothing)
}
