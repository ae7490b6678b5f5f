//! Random histories: whatever the policy, every backup that stays can still be restored.

use std::collections::BTreeSet;
use std::path::Path;

use proptest::prelude::*;
use windlass_base::{Guid, Lsn, Moment};
use windlass_catalog::Provenance;
use windlass_codec::Compression;
use windlass_device::{DeviceAddress, DeviceFolder, Removed};
use windlass_media::SetType;
use windlass_pipeline::{BackupRequest, Overwrite, Unobserved};
use windlass_source::sqlite::{SnapshotOptions, SqliteSnapshot};

use super::{Decision, FoundFile, FoundMedia, FoundSet, Now, Policy, decide, delete, scan};
use crate::chain::{ChainSet, LogEnd, Obstacle, Times, Within};

const NOW: &str = "2026-11-21 12:00:00";

fn now() -> Now {
    let times = Times::of(Some(at(0)), None, 0).unwrap();
    Now {
        local: at(0),
        utc: times.started,
    }
}

fn at(hours_ago: u32) -> Moment {
    let now: Moment = NOW.parse().unwrap();
    let civil = now.to_civil() - jiff::Span::new().hours(i64::from(hours_ago));
    Moment::new(civil)
}

fn of(name: &str, family_guid: Guid) -> Provenance {
    Provenance {
        family_guid,
        database_guid: family_guid,
        name: name.to_owned(),
        path: format!("/d/{name}"),
        machine: String::new(),
        created_ns: None,
        at: None,
    }
}

/// A complete full backup.
fn found_set() -> FoundSet {
    let finished = Some(at(1));
    FoundSet {
        chain: ChainSet {
            set_guid: Guid::random(),
            original_guid: None,
            family_guid: Guid::NIL,
            fork: Guid::NIL,
            kind: SetType::Full,
            is_copy_only: false,
            base: None,
            first_lsn: Lsn::ZERO,
            last_lsn: Lsn::ZERO,
            times: Times::of(finished, finished, 0),
            lineage: 0,
            previous: None,
            ending: None,
            last_full: None,
            within: Within::Unread,
            ended_ms: None,
            recorded: None,
            contradicted_until: None,
            place: None,
            is_empty: false,
            obstacle: None,
        },
        of: of("db", Guid::NIL),
        started: finished,
        finished,
        expires: None,
        stored_bytes: 1,
    }
}

/// The properties of a generated set: hours ago, database, differential, unexpired, unfinished.
type Seed = (u32, u8, bool, bool, bool);

/// Media of one to three sets each; a differential counts from the full backup before it.
fn history(seeds: &[(Vec<Seed>, u16, bool)]) -> Vec<FoundMedia> {
    let mut flat: Vec<(usize, Seed)> = Vec::new();
    for (medium, (sets, _, _)) in seeds.iter().enumerate() {
        flat.extend(sets.iter().map(|set| (medium, *set)));
    }
    flat.sort_by_key(|(_, (hours, ..))| std::cmp::Reverse(*hours));
    let families = [Guid::random(), Guid::random()];
    let mut last_full: [Option<Guid>; 2] = [None, None];
    let mut media: Vec<FoundMedia> = seeds
        .iter()
        .enumerate()
        .map(|(number, (_, stripes, lacks_one))| FoundMedia {
            media_set_guid: Guid::random(),
            family_count: *stripes,
            files: (1..=*stripes - u16::from(*lacks_one && *stripes > 1))
                .map(|family| FoundFile {
                    trouble: None,
                    device: DeviceAddress::disk(format!("/b/{number}-{family}.bak")),
                    family,
                    bytes: 1,
                    defect: None,
                    may_hide: false,
                    sets: Vec::new(),
                })
                .collect(),
            sets: Vec::new(),
            trouble: None,
            may_pass: false,
            has_contradictions: false,
            lacks_known: false,
            is_outside: false,
            unseen: None,
        })
        .collect();
    for (medium, (hours, database, differential, unexpired, unfinished)) in flat {
        let database = usize::from(database % 2);
        let set_guid = Guid::random();
        let base = last_full[database].filter(|_| differential);
        let kind = if base.is_some() {
            SetType::Differential
        } else {
            SetType::Full
        };
        if kind == SetType::Full {
            last_full[database] = Some(set_guid);
        }
        let finished = Some(at(hours));
        media[medium].sets.push(FoundSet {
            chain: ChainSet {
                set_guid,
                original_guid: None,
                family_guid: families[database],
                fork: families[database],
                kind,
                is_copy_only: false,
                base,
                first_lsn: Lsn::ZERO,
                last_lsn: Lsn::ZERO,
                times: Times::of(finished, finished, 0),
                lineage: 0,
                previous: None,
                ending: None,
                last_full: None,
                within: Within::Unread,
                ended_ms: None,
                recorded: None,
                contradicted_until: None,
                place: None,
                is_empty: false,
                obstacle: unfinished.then_some(Obstacle::Incomplete),
            },
            of: of(&format!("db{database}"), families[database]),
            started: finished,
            finished,
            expires: unexpired.then(|| at(0).plus_days(1)),
            stored_bytes: 1,
        });
    }
    media
}

/// The sets that can be restored from some media.
fn restorable<'a>(media: impl Iterator<Item = &'a FoundMedia> + Clone) -> BTreeSet<String> {
    let whole = media.filter(|media| media.is_whole() && media.trouble.is_none());
    let sets: Vec<&FoundSet> = whole
        .flat_map(|media| &media.sets)
        .filter(|set| set.is_complete())
        .collect();
    let has = |guid: Guid| sets.iter().any(|set| set.chain.set_guid == guid);
    sets.iter()
        .filter(|set| set.chain.base.is_none_or(has))
        .map(|set| set.chain.set_guid.to_string())
        .collect()
}

fn staying<'a>(
    media: &'a [FoundMedia],
    decisions: &'a [Decision],
) -> impl Iterator<Item = &'a FoundMedia> + Clone {
    media
        .iter()
        .zip(decisions)
        .filter(|(_, decision)| !decision.goes)
        .map(|(media, _)| media)
}

fn seeds() -> impl Strategy<Value = Vec<(Vec<Seed>, u16, bool)>> {
    let set = (
        0_u32..10_000,
        any::<u8>(),
        prop::bool::weighted(0.6),
        prop::bool::weighted(0.05),
        prop::bool::weighted(0.05),
    );
    let medium = (
        prop::collection::vec(set, 1..4),
        1_u16..4,
        prop::bool::weighted(0.1),
    );
    prop::collection::vec(medium, 0..25)
}

fn policies() -> impl Strategy<Value = Policy> {
    (
        prop::option::of(0_u32..5_000),
        0_u32..4,
        0_u32..4,
        0_u32..8,
        0_u32..6,
        0_u32..6,
        0_u32..3,
    )
        .prop_map(
            |(within_hours, last, last_of_kind, daily, weekly, monthly, yearly)| Policy {
                within_hours,
                last,
                last_of_kind,
                daily,
                weekly,
                monthly,
                yearly,
            },
        )
}

proptest! {
    #[test]
    fn what_goes_beside_media_that_cannot_be_read_goes_whether_they_are_whole_or_not(
        seeds in seeds(),
        policy in policies(),
        troubles in prop::collection::vec(0_u8..4, 25),
    ) {
        let mut media = history(&seeds);
        let decided = |media: &[FoundMedia]| decide(media, &policy, None, now());
        let goes = |media: &[FoundMedia]| -> Vec<bool> {
            decided(media).iter().map(|decision| decision.goes).collect()
        };
        let whole = goes(&media);
        for (media, trouble) in media.iter_mut().zip(&troubles) {
            media.trouble = (*trouble > 1).then(|| "it cannot be read".to_owned());
        }
        let gone = goes(&media);
        for (media, trouble) in media.iter_mut().zip(&troubles) {
            media.may_pass = *trouble == 2;
            media.lacks_known = *trouble == 3;
        }
        let found = decided(&media);
        for (index, decision) in found.iter().enumerate() {
            prop_assert!(!decision.goes || whole[index] && gone[index]);
            prop_assert!(decision.relied_on.is_empty() || media[index].trouble.is_none());
        }
    }

    #[test]
    fn every_backup_that_stays_can_still_be_restored(seeds in seeds(), policy in policies()) {
        let media = history(&seeds);
        let decisions = decide(&media, &policy, None, now());
        let before = restorable(media.iter());
        let after = restorable(staying(&media, &decisions));
        for set in staying(&media, &decisions).flat_map(|media| &media.sets) {
            let guid = set.chain.set_guid.to_string();
            prop_assert!(
                !before.contains(&guid) || after.contains(&guid),
                "{guid} stays and has lost what it needs"
            );
        }
        for decision in &decisions {
            prop_assert!(!decision.reasons.is_empty());
        }
        // The newest point of each database and everything young stay.
        for name in ["db0", "db1"] {
            let sets = media.iter().flat_map(|media| &media.sets);
            let newest = sets
                .filter(|set| set.of.name == name && before.contains(&set.chain.set_guid.to_string()))
                .max_by_key(|set| set.finished);
            let instant = newest.and_then(|set| set.finished);
            let survives = media.iter().flat_map(|media| &media.sets).any(|set| {
                set.of.name == name
                    && set.finished == instant
                    && after.contains(&set.chain.set_guid.to_string())
            });
            prop_assert!(newest.is_none() || survives, "the newest of {name} went");
        }
        for (media, decision) in media.iter().zip(&decisions) {
            for set in &media.sets {
                let young = set.finished.is_some_and(|at_| policy.is_within(at_, at(0)));
                let unexpired = set.expires.is_some_and(|expires| expires > at(0));
                prop_assert!(!decision.goes || !(young || unexpired));
            }
        }
    }

    #[test]
    fn deciding_twice_changes_nothing(seeds in seeds(), policy in policies()) {
        let media = history(&seeds);
        let decisions = decide(&media, &policy, None, now());
        let left: Vec<FoundMedia> = staying(&media, &decisions).cloned().collect();
        let again = decide(&left, &policy, None, now());
        let gone = again.iter().filter(|decision| decision.goes).count();
        prop_assert_eq!(gone, 0);
    }
}

#[test]
fn a_grandfather_father_son_scheme_keeps_days_weeks_and_months() {
    let daily: Vec<_> = (0..120)
        .map(|day| (vec![(day * 24, 0_u8, false, false, false)], 1, false))
        .collect();
    let media = history(&daily);
    let policy = Policy {
        daily: 7,
        weekly: 4,
        monthly: 3,
        ..Policy::default()
    };
    let decisions = decide(&media, &policy, None, now());
    let kept: Vec<usize> = (0..120).filter(|day| !decisions[*day].goes).collect();
    // 21 November 2026 is a Saturday: Sundays end weeks, 31 October and 30 September end months.
    assert_eq!(kept, [0, 1, 2, 3, 4, 5, 6, 13, 20, 21, 52]);
}

#[test]
fn the_full_below_a_kept_differential_stays_and_says_why() {
    let media = history(&[
        (vec![(900, 0, false, false, false)], 1, false),
        (vec![(800, 0, false, false, false)], 1, false),
        (vec![(1, 0, true, false, false)], 1, false),
    ]);
    let policy: Policy = "2".parse().unwrap();
    let decisions = decide(&media, &policy, None, now());
    assert!(decisions[0].goes);
    assert_eq!(decisions[1].reasons, ["the base of '/b/2-1.bak'"]);
    assert!(!decisions[2].goes);
    let other = decide(&media, &policy, Some("other"), now());
    assert!(other.iter().all(|decision| !decision.goes));
}

#[test]
fn erasefiles_is_read() {
    let policy = |text: &str| text.parse::<Policy>();
    assert_eq!(policy("3").unwrap().within_hours, Some(72));
    assert_eq!(policy("5h").unwrap().within_hours, Some(5));
    assert_eq!(policy(" 5B ").unwrap().last_of_kind, 5);
    for wrong in ["", "0", "h", "5d", "-1", "4294967295"] {
        assert!(policy(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn the_newest_backup_of_a_damaged_database_stays_beside_the_newest_that_can_be_restored() {
    let one = |hours| (vec![(hours, 0, false, false, false)], 1, false);
    let mut media = history(&[one(30), one(20), one(10), one(1)]);
    for damaged in [2, 3] {
        media[damaged].sets[0].chain.obstacle = Some(Obstacle::Damaged);
    }
    let policy = Policy {
        last: 1,
        ..Policy::default()
    };
    let decisions = decide(&media, &policy, None, now());
    let goes: Vec<bool> = decisions.iter().map(|decision| decision.goes).collect();
    assert_eq!(goes, [true, false, true, false]);
}

#[test]
fn a_backup_is_young_enough_to_the_second() {
    let policy = Policy {
        within_hours: Some(2),
        ..Policy::default()
    };
    let earlier = Moment::new(at(2).to_civil() - jiff::Span::new().seconds(1));
    assert!(policy.is_within(at(2), at(0)));
    assert!(!policy.is_within(earlier, at(0)));
    assert!(!Policy::default().is_within(at(0), at(0)));
    assert!(Policy::default().is_empty() && !policy.is_empty());
}

#[test]
fn what_is_not_whole_or_not_finished_or_not_expired_stays_and_says_so() {
    let old =
        |hours, unexpired, unfinished| (vec![(hours, 0, false, unexpired, unfinished)], 2, false);
    let mut media = history(&[
        (vec![(900, 0, false, false, false)], 2, true),
        old(800, false, true),
        old(700, false, false),
        old(600, true, false),
        old(500, false, false),
        old(400, false, false),
        old(1, false, false),
    ]);
    // Each alone says that it is unfinished; what expires now has expired.
    media[2].sets[0].finished = None;
    media[4].sets[0].expires = Some(at(0));
    let decisions = decide(&media, &Policy::default(), None, now());
    let reasons: Vec<&str> = decisions
        .iter()
        .map(|decision| decision.reasons[0].as_str())
        .collect();
    let expires = format!("expires on {}", at(0).plus_days(1));
    assert_eq!(
        reasons,
        [
            "not all of its 2 stripes were found",
            "contains an unfinished backup",
            "contains an unfinished backup",
            expires.as_str(),
            "no rule keeps it",
            "no rule keeps it",
            "the newest of its database",
        ]
    );
    let goes: Vec<bool> = decisions.iter().map(|decision| decision.goes).collect();
    assert_eq!(goes, [false, false, false, false, true, true, false]);
}

#[test]
fn what_goes_says_when_its_full_backup_is_not_here() {
    let mut media = history(&[
        (vec![(900, 0, false, false, false)], 1, false),
        (vec![(800, 0, true, false, false)], 1, false),
        (vec![(1, 0, false, false, false)], 1, false),
    ]);
    media.remove(0);
    let decisions = decide(&media, &Policy::default(), None, now());
    assert_eq!(
        decisions[0].reasons,
        ["no rule keeps it, and the full backup it needs was not found"]
    );
}

/// One database: a full backup a day at midnight and a log backup every six hours, each on media of its own.
fn logged_days(days: u32) -> Vec<FoundMedia> {
    let mut media = Vec::new();
    let lsn = |hour: u32| Lsn {
        vlf: 1,
        block: 1 + hour,
        slot: 1,
    };
    for hour in (0..24 * days).step_by(6) {
        let hours_ago = 24 * days - hour + 11;
        let mut kinds = vec![SetType::Log];
        if hour % 24 == 0 {
            kinds.push(SetType::Full);
        }
        for kind in kinds {
            let seed = (vec![(hours_ago, 0, false, false, false)], 1, false);
            let mut medium = history(&[seed]).remove(0);
            let set = &mut medium.sets[0];
            set.chain.kind = kind;
            (set.chain.family_guid, set.chain.fork) = (Guid::NIL, Guid::NIL);
            set.of = of("db", Guid::NIL);
            set.chain.last_lsn = lsn(hour);
            set.chain.first_lsn = match kind {
                SetType::Log => lsn(hour.saturating_sub(6)),
                _ => lsn(hour),
            };
            media.push(medium);
        }
    }
    // The first log backup has nothing to continue.
    media.remove(0);
    media
}

#[test]
fn log_backups_stay_while_they_are_young_or_lead_to_the_newest_state_and_days_keep_their_full_backup()
 {
    let media = logged_days(4);
    let policy = Policy {
        daily: 3,
        within_hours: Some(30),
        ..Policy::default()
    };
    let decisions = decide(&media, &policy, None, now());
    let hours = |index: usize| {
        let finished = media[index].sets[0].chain.times.unwrap().finished;
        (now().utc - finished) / 3600
    };
    for (index, decision) in decisions.iter().enumerate() {
        let stays = match media[index].sets[0].chain.kind {
            // The day before yesterday's is the third.
            SetType::Full => hours(index) < 24 * 3 + 12,
            // The young ones lead to the newest state.
            _ => hours(index) < 30,
        };
        assert_eq!(
            !decision.goes,
            stays,
            "{} {:?}",
            hours(index),
            decision.reasons
        );
    }
}

#[test]
fn the_moments_of_a_young_log_backup_stay_although_a_later_state_within_it_leads_to_its_end() {
    let mut media = logged_days(1);
    // Full, logs at 6, 12 and 18 hours; and a full backup while the last of them was growing.
    let seed = (vec![(18, 0, false, false, false)], 1, false);
    let mut within = history(&[seed]).remove(0);
    let set = &mut within.sets[0];
    (set.chain.family_guid, set.chain.fork) = (Guid::NIL, Guid::NIL);
    set.of = of("db", Guid::NIL);
    let last = media[3].sets[0].chain.clone();
    set.chain.last_lsn = Lsn {
        block: last.last_lsn.block - 1,
        ..last.last_lsn
    };
    set.chain.first_lsn = set.chain.last_lsn;
    media.push(within);
    let decided = |within_hours| {
        let policy = Policy {
            within_hours,
            ..Policy::default()
        };
        let decisions = decide(&media, &policy, None, now());
        let goes: Vec<bool> = decisions.iter().map(|decision| decision.goes).collect();
        goes
    };
    // Nothing is promised but the newest state.
    assert_eq!(decided(None), [true, true, true, false, false]);
    // The last log and what was made within it are young: so are the moments before.
    assert_eq!(decided(Some(20)), [false; 5]);
}

#[test]
fn logs_of_clones_with_the_same_lsns_lead_to_the_states_of_their_own_machine() {
    for knows_checksums in [true, false] {
        // Two machines that do the same, into one folder, in any order.
        let mut media = Vec::new();
        for machine in [1_u64, 2] {
            for medium in logged_days(2) {
                let mut medium = FoundMedia {
                    media_set_guid: Guid::random(),
                    ..medium
                };
                let set = &mut medium.sets[0];
                set.of.machine = format!("host{machine}");
                let chain = &mut set.chain;
                chain.set_guid = Guid::random();
                chain.lineage = if knows_checksums { 0 } else { machine };
                let sum = |lsn: Lsn| Some(LogEnd::Block(u64::from(lsn.block) * 10 + machine));
                if knows_checksums {
                    chain.previous = (chain.kind == SetType::Log)
                        .then(|| sum(chain.first_lsn))
                        .flatten();
                    chain.ending = sum(chain.last_lsn);
                }
                media.push(medium);
            }
        }
        for turn in 0..media.len() {
            let mut media = media.clone();
            media.rotate_left(turn);
            let half = media.len() / 2;
            media[..half].reverse();
            let policy = Policy {
                last: 1,
                ..Policy::default()
            };
            let decisions = decide(&media, &policy, None, now());
            for machine in ["host1", "host2"] {
                let own = media.iter().zip(&decisions);
                let stay = own.filter(|(medium, decision)| {
                    medium.sets[0].of.machine == machine && !decision.goes
                });
                // The full backup of the second day, and the three log backups after it.
                let kinds: Vec<SetType> =
                    stay.map(|(medium, _)| medium.sets[0].chain.kind).collect();
                let logs = kinds.iter().filter(|kind| **kind == SetType::Log).count();
                assert_eq!(
                    (kinds.len(), logs),
                    (4, 3),
                    "{machine} {turn} {knows_checksums}"
                );
            }
        }
    }
}

#[test]
fn the_logs_before_a_young_one_stay_although_the_full_backup_below_them_is_elsewhere() {
    let mut media = logged_days(3);
    // The full backups of the first two days are in another folder.
    let mut fulls = 0;
    media.retain(|medium| {
        fulls += u32::from(medium.sets[0].chain.kind == SetType::Full);
        medium.sets[0].chain.kind == SetType::Log || fulls > 2
    });
    let policy = Policy {
        within_hours: Some(40),
        ..Policy::default()
    };
    let decisions = decide(&media, &policy, None, now());
    let gone: Vec<_> = decisions.iter().filter(|decision| decision.goes).collect();
    assert!(gone.is_empty(), "{gone:?}");
}

#[test]
fn a_log_backup_whose_predecessor_is_not_here_stays_if_it_is_newer_than_what_can_be_restored() {
    let mut media = logged_days(1);
    // Full, logs at 6, 12 and 18 hours.
    media.remove(1);
    let decisions = decide(&media, &Policy::default(), None, now());
    assert!(decisions.iter().all(|decision| !decision.goes));
    assert!(decisions.iter().any(|decision| decision.is_doubtful));
}

/// Adds a backup set to a file, or replaces what the file holds.
fn back_up(folder: &Path, name: &str, is_new: bool) {
    let database = folder.join("db");
    std::fs::write(&database, vec![7; 100_000]).unwrap();
    let devices = vec![DeviceAddress::disk(folder.join("media").join(name))];
    let mut request = BackupRequest::new(devices, Compression::NONE);
    if is_new {
        request.media.overwrite = Overwrite::Format;
    }
    let snapshot = SqliteSnapshot::open(&database, &SnapshotOptions::default()).unwrap();
    windlass_pipeline::backup(&request, Box::new(snapshot), &Unobserved).unwrap();
}

#[test]
fn a_file_that_is_not_what_was_scanned_is_not_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let media = folder.path().join("media");
    std::fs::create_dir(&media).unwrap();
    let scanned = || scan(&[DeviceFolder::disk(&media)]).unwrap().media.remove(0);
    back_up(folder.path(), "a.bak", true);
    for is_new in [false, true] {
        let found = scanned();
        back_up(folder.path(), "a.bak", is_new);
        let refused = delete(&found).unwrap_err().to_string();
        assert!(refused.contains("has changed since"), "{refused}");
        assert!(media.join("a.bak").exists());
    }
    let deleted = delete(&scanned()).unwrap();
    let a = DeviceAddress::disk(media.join("a.bak"));
    assert_eq!(deleted, [(a, Removed::Gone)]);
    assert!(!media.join("a.bak").exists());
}

#[test]
fn an_older_copy_is_in_nobodys_way_and_copies_that_went_different_ways_need_a_look() {
    for (older, newer) in [("1.bak", "2.bak"), ("2.bak", "1.bak")] {
        let folder = tempfile::tempdir().unwrap();
        let media = folder.path().join("media");
        std::fs::create_dir(&media).unwrap();
        let scanned = || scan(&[DeviceFolder::disk(&media)]).unwrap().media;
        back_up(folder.path(), newer, true);
        std::fs::copy(media.join(newer), media.join(older)).unwrap();
        let [alike] = scanned().try_into().unwrap();
        assert!(!alike.has_contradictions && alike.trouble.is_none());
        let whole = std::fs::read(media.join(older)).unwrap();
        std::fs::write(media.join(older), &whole[..whole.len() - 9000]).unwrap();
        let [cut] = scanned().try_into().unwrap();
        assert!(!cut.has_contradictions && cut.trouble.is_none());
        assert!(cut.sets[0].is_complete() && cut.holding(1, 0).len() == 1);
        std::fs::write(media.join(older), &whole).unwrap();
        back_up(folder.path(), newer, false);
        let [found] = scanned().try_into().unwrap();
        assert!(!found.has_contradictions && found.trouble.is_none());
        assert_eq!((found.files.len(), found.sets.len()), (2, 2));
        assert_eq!(
            (found.holding(1, 0).len(), found.holding(1, 1).len()),
            (2, 1)
        );
        back_up(folder.path(), older, false);
        let [found] = scanned().try_into().unwrap();
        assert!(found.has_contradictions && found.trouble.is_some());
        let decisions = decide(&[found], &Policy::default(), None, now());
        assert!(!decisions[0].goes);
    }
}

#[test]
fn the_newest_of_each_year_stays_as_long_as_its_rule_says() {
    let yearly: Vec<_> = [1, 100, 9_000, 9_100, 18_000, 27_000]
        .map(|hours| (vec![(hours, 0_u8, false, false, false)], 1, false))
        .into();
    let media = history(&yearly);
    let goes = |years| -> Vec<bool> {
        let policy = Policy {
            yearly: years,
            ..Policy::default()
        };
        let decisions = decide(&media, &policy, None, now());
        decisions.iter().map(|decision| decision.goes).collect()
    };
    assert_eq!(goes(3), [false, true, false, true, false, true]);
    assert_eq!(goes(1), [false, true, true, true, true, true]);
}

#[test]
fn log_backups_do_not_take_the_place_of_full_and_differential_ones() {
    let one = |hours, differential| (vec![(hours, 0, differential, false, false)], 1, false);
    let mut media = history(&[
        one(90, false),
        one(80, false),
        one(70, true),
        one(60, true),
        one(50, false),
        one(40, false),
    ]);
    // Their chain begins with the oldest backup, which therefore stays.
    for log in [4, 5] {
        media[log].sets[0].chain.kind = SetType::Log;
    }
    // Of the page engine: the LSNs of a SQLite file are times.
    let fork = Guid::random();
    for medium in &mut media {
        medium.sets[0].chain.fork = fork;
    }
    let policy = Policy {
        last_of_kind: 1,
        ..Policy::default()
    };
    let decisions = decide(&media, &policy, None, now());
    let goes: Vec<bool> = decisions.iter().map(|decision| decision.goes).collect();
    assert_eq!(goes, [false, false, true, false, true, false]);
    assert_eq!(decisions[3].reasons, ["among the last 1 of its kind"]);
}

#[test]
fn where_something_goes_what_stays_for_it_is_relied_on_and_nothing_else() {
    let one = |hours, database, differential| {
        (
            vec![(hours, database, differential, false, false)],
            1,
            false,
        )
    };
    let media = history(&[
        one(90, 0, false),
        one(80, 0, false),
        one(70, 0, true),
        // Of this database nothing goes.
        one(60, 1, false),
    ]);
    let decisions = decide(&media, &Policy::default(), None, now());
    let relied_on = decisions.iter().map(|decision| &decision.relied_on);
    let relied_on: Vec<Vec<usize>> = relied_on.map(|own| own.iter().copied().collect()).collect();
    assert!(decisions[0].goes);
    assert_eq!(relied_on, [vec![], vec![0], vec![0], vec![]]);
}

#[test]
fn a_set_that_is_unfinished_in_one_copy_is_held_by_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let media = folder.path().join("media");
    std::fs::create_dir(&media).unwrap();
    let (whole, cut) = (media.join("1.bak"), media.join("2.bak"));
    back_up(folder.path(), "1.bak", true);
    let bytes = std::fs::read(&whole).unwrap();
    let scanned = || scan(&[DeviceFolder::disk(&media)]).unwrap().media.remove(0);
    std::fs::write(&cut, &bytes).unwrap();
    assert!(scanned().sets[0].is_complete());
    for (longer, shorter) in [(&whole, &cut), (&cut, &whole)] {
        std::fs::write(longer, &bytes).unwrap();
        std::fs::write(shorter, &bytes[..bytes.len() / 2]).unwrap();
        let found = scanned();
        assert_eq!((found.files.len(), found.sets.len()), (2, 1));
        assert!(found.sets[0].is_complete());
        let holding: Vec<&Path> = found
            .holding(1, 0)
            .iter()
            .filter_map(|file| file.device.file())
            .collect();
        assert_eq!(holding, [longer.as_path()]);
    }
}

#[test]
fn a_backup_that_is_dated_in_the_future_takes_the_place_of_no_other() {
    let of = |number: u8, started: Moment| {
        let mut media = history(&[(vec![(1, 0, false, false, false)], 1, false)]).remove(0);
        media.media_set_guid = Guid::from_stored([number; 16]);
        media.sets[0] = FoundSet {
            started: Some(started),
            finished: Some(started),
            ..found_set()
        };
        media.sets[0].chain.times = Times::of(Some(started), None, 0);
        media
    };
    let ahead = at(0).plus_days(2);
    let media = [of(1, ahead), of(2, at(2)), of(3, at(1))];
    let policy = Policy {
        last: 1,
        ..Policy::default()
    };
    let decisions = decide(&media, &policy, None, now());
    let goes: Vec<bool> = decisions.iter().map(|decision| decision.goes).collect();
    assert_eq!(goes, [false, true, false]);
    let doubtful: Vec<bool> = decisions
        .iter()
        .map(|decision| decision.is_doubtful)
        .collect();
    assert_eq!(doubtful, [true, false, false]);
    assert!(decisions[0].relied_on.is_empty());
}
