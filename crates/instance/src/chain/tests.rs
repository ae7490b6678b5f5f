//! Random sets: everything promised can be restored, and nothing restorable is omitted.

use proptest::prelude::*;
use windlass_base::{Guid, Lsn};
use windlass_catalog::PastBackup;
use windlass_media::{SetConfiguration, SetType};

use super::order::is_rival;
use super::{ChainSet, Chains, LeftOut, Obstacle, Times, Why, Within, is_newer};
use crate::presence::tests::Place;

pub(super) fn guid(number: u8) -> Guid {
    Guid::from_stored([number; 16])
}

pub(super) fn lsn(block: u32) -> Lsn {
    Lsn {
        vlf: 1,
        block,
        slot: 1,
    }
}

/// A set that was made at `time`, with the same position in the log.
pub(super) fn set(kind: SetType, number: u8, time: u32, base: Option<u8>) -> ChainSet {
    ChainSet {
        set_guid: guid(number),
        original_guid: None,
        family_guid: guid(200),
        fork: guid(201),
        kind,
        is_copy_only: false,
        base: base.map(guid),
        first_lsn: lsn(time),
        last_lsn: lsn(time),
        times: Some(Times {
            started: i64::from(time) * 10,
            finished: i64::from(time) * 10 + 5,
        }),
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
    }
}

pub(super) fn log(number: u8, from: u32, to: u32) -> ChainSet {
    ChainSet {
        first_lsn: lsn(from),
        ..set(SetType::Log, number, to, None)
    }
}

use SetType::{Differential, Full, Log};

#[test]
fn where_log_and_dates_of_one_fork_disagree_neither_set_is_the_newer() {
    let [mut old, new] = [set(Full, 1, 1, None), set(Full, 2, 2, None)];
    let are_rivals = |old: &ChainSet, new: &ChainSet| {
        assert!(!is_rival(new, old));
        is_rival(old, new)
    };
    assert!(!are_rivals(&old, &new));
    old.last_lsn = lsn(3);
    assert!(are_rivals(&old, &new));
    // A restore began a new fork, and with it the LSNs again.
    let fork = guid(202);
    assert!(!are_rivals(
        &old,
        &ChainSet {
            fork,
            ..new.clone()
        }
    ));
    // The LSNs of a SQLite file are times.
    let times = |set: &ChainSet| ChainSet {
        fork: set.family_guid,
        ..set.clone()
    };
    assert!(!are_rivals(&times(&old), &times(&new)));
    // The history knew of one that is dated later.
    let known = |until| ChainSet {
        contradicted_until: Some(until),
        ..times(&set(Full, 1, 1, None))
    };
    assert!(are_rivals(&known(25), &times(&new)));
    assert!(!are_rivals(&known(24), &times(&new)));
    // One stands behind the other on a medium.
    let on = |set: &ChainSet, position| set.clone().on(guid(203), position);
    assert!(!are_rivals(&on(&old, 1), &on(&new, 2)));
    assert!(are_rivals(&old.clone().on(guid(204), 1), &on(&new, 2)));
}

#[test]
fn the_log_of_a_file_that_ends_before_a_gap_is_older_than_a_full_backup_behind_it() {
    let at = |second: u32, set: ChainSet| ChainSet {
        fork: set.family_guid,
        last_lsn: Lsn {
            vlf: second,
            ..set.last_lsn
        },
        ..set
    };
    let begins = |log: ChainSet| ChainSet {
        first_lsn: lsn(1),
        ..log
    };
    // The log was written after the full backup, and has the state of second 25.
    let log = begins(at(25, set(Log, 2, 5, None)));
    for kind in [Full, Differential] {
        let behind = at(30, set(kind, 3, 3, Some(1)));
        let mut sets = [at(12, set(Full, 1, 1, None)), log.clone(), behind];
        for is_on_one_medium in [false, true] {
            let newest = Chains::of(&sets).newest_state(|_| true).unwrap();
            assert_eq!(newest.steps.last(), Some(&2), "{kind:?}");
            for (set, position) in sets.iter_mut().zip([1, 3, 2]) {
                set.place = (!is_on_one_medium).then_some((guid(203), position));
            }
        }
    }
    // What is not behind the log is not newer.
    let before = at(20, set(Full, 3, 2, None));
    let sets = [before, log];
    let newest = Chains::of(&sets).newest_state(|_| true).unwrap();
    assert_eq!(newest.steps, [0, 1]);
}

#[test]
fn the_newest_state_is_the_newest_full_backup_and_the_differential_upon_it() {
    let sets = [
        set(Full, 1, 1, None),
        set(Differential, 2, 2, Some(1)),
        set(Full, 3, 3, None),
        set(Differential, 4, 5, Some(3)),
        set(Differential, 5, 4, Some(3)),
    ];
    let state = Chains::of(&sets).newest_state(|_| true).unwrap();
    assert_eq!(state.steps, [2, 3]);
    let older = [0, 1, 4].map(|index| (index, LeftOut::Older));
    assert_eq!(state.left_out, older);
}

#[test]
fn without_its_base_a_differential_gives_way_to_the_full_backup_before_it() {
    let mut sets = vec![
        set(Full, 1, 1, None),
        set(Full, 2, 2, None),
        set(Differential, 3, 3, Some(2)),
    ];
    sets[1].obstacle = Some(Obstacle::Incomplete);
    let state = Chains::of(&sets).newest_state(|_| true).unwrap();
    assert_eq!(state.steps, [0]);
    let base_unusable = Why::BaseUnusable {
        base: 1,
        why: Obstacle::Incomplete,
    };
    assert_eq!(state.left_out[1], (2, LeftOut::Unrestorable(base_unusable)));
    sets.remove(1);
    let chains = Chains::of(&sets);
    assert_eq!(chains.path(1), Err(&Why::BaseMissing { base: guid(2) }));
    assert_eq!(chains.newest(|_| true), Some(0));
}

#[test]
fn a_database_restored_to_an_older_state_goes_on_from_there() {
    let abandoned = set(Full, 1, 9, None);
    let mut continued = set(Full, 2, 20, None);
    continued.last_lsn = lsn(4);
    assert!(is_newer(&continued, &abandoned) && !is_newer(&abandoned, &continued));
    let sets = [abandoned, continued];
    assert_eq!(Chains::of(&sets).newest(|_| true), Some(1));
}

#[test]
fn of_two_backups_at_once_the_one_further_in_the_log_is_newer() {
    let mut slow = set(Full, 1, 1, None);
    let quick = set(Full, 2, 2, None);
    slow.times = Some(Times {
        started: 0,
        finished: 100,
    });
    assert!(is_newer(&quick, &slow) && !is_newer(&slow, &quick));
}

#[test]
fn the_end_of_summer_time_does_not_make_an_older_backup_newer() {
    let of = |at: &str, zone: i32| {
        let at = Some(at.parse().unwrap());
        Times::of(at, at, zone).unwrap()
    };
    let (summer, winter) = (of("2026-10-25 02:30:00", 8), of("2026-10-25 02:00:00", 4));
    assert_eq!(winter.started - summer.started, 1800);
}

/// Made when the clock showed `time`.
fn dated(number: u8, time: u32) -> ChainSet {
    ChainSet {
        last_lsn: lsn(1),
        ..set(Full, number, time, None)
    }
}

#[test]
fn where_the_clock_was_set_back_the_later_position_is_newer() {
    let mut before = dated(1, 900).on(guid(100), 1);
    let after = dated(2, 5).on(guid(100), 2);
    assert!(is_newer(&after, &before) && !is_newer(&before, &after));
    // Also if a set on other media is between them by its date.
    let between = dated(3, 500);
    for order in [
        [0, 1, 2],
        [1, 2, 0],
        [2, 0, 1],
        [0, 2, 1],
        [1, 0, 2],
        [2, 1, 0],
    ] {
        let all = [&before, &after, &between];
        let sets = order.map(|index: usize| all[index].clone());
        let newest = Chains::of(&sets).newest(|_| true).unwrap();
        assert_ne!(sets[newest].set_guid, before.set_guid, "{order:?}");
    }
    // On other media nothing but the dates is known.
    before.place = Some((guid(101), 1));
    assert!(is_newer(&before, &after));
}

#[test]
fn a_sqlite_files_place_in_the_log_is_a_time_that_never_goes_back() {
    let of = |number, second: u32, block, shown: i64| ChainSet {
        last_lsn: Lsn {
            vlf: second,
            block,
            slot: 1,
        },
        times: Some(Times {
            started: shown,
            finished: shown,
        }),
        ..set(Full, number, 1, None)
    };
    let before = of(1, 1_900_000_000, 1, 1_900_000_000);
    let after = of(2, 1_900_000_000, 2, 1_800_000_000);
    assert!(is_newer(&after, &before) && !is_newer(&before, &after));
}

#[test]
fn logs_continue_what_ends_within_them_and_a_missing_one_ends_the_chain() {
    let sets = [
        log(1, 1, 5),
        set(Full, 2, 6, None),
        log(3, 5, 9),
        log(5, 12, 14),
        log(6, 14, 15),
        set(Differential, 7, 16, Some(2)),
        log(8, 15, 20),
    ];
    let chains = Chains::of(&sets);
    let broken: Vec<usize> = (0..sets.len())
        .filter(|index| chains.verdict(*index) == Err(&Why::LogMissing))
        .collect();
    assert_eq!(broken, [0, 3, 4]);
    assert_eq!(chains.path(2).unwrap(), [1, 2]);
    assert_eq!(chains.path(6).unwrap(), [1, 5, 6]);
    let mut forked = sets.clone();
    forked[6].fork = guid(99);
    assert!(Chains::of(&forked).verdict(6).is_err());
}

#[test]
fn any_copy_that_can_be_restored_serves() {
    let mut sets = vec![
        set(Full, 1, 1, None),
        set(Full, 1, 1, None),
        set(Differential, 2, 2, Some(1)),
    ];
    for broken in [0, 1] {
        for copy in [0, 1] {
            sets[copy].obstacle = (copy == broken).then_some(Obstacle::Incomplete);
        }
        assert_eq!(Chains::of(&sets).path(2).unwrap(), [1 - broken, 2]);
    }
}

/// Kind, base or start of the log, whether it has an obstacle.
type Seed = (u8, u8, u8);

fn sets_of(seeds: &[Seed]) -> Vec<ChainSet> {
    let sets = seeds
        .iter()
        .zip(1_u8..)
        .map(|((kind, link, obstacle), number)| {
            let time = u32::from(number) * 2;
            let mut set = match kind % 3 {
                0 => set(Full, number, time, None),
                1 => set(Differential, number, time, Some(link % 40)),
                _ => log(number, time.saturating_sub(u32::from(link % 6)), time),
            };
            set.obstacle = (obstacle % 5 == 0).then_some(Obstacle::Incomplete);
            set
        });
    sets.collect()
}

/// Whether what comes after can be restored onto what comes before.
fn follows(before: &ChainSet, after: &ChainSet) -> bool {
    match after.kind {
        SetType::Full => false,
        SetType::Differential => before.is_base_of(after),
        SetType::Log => (after.first_lsn..=after.last_lsn).contains(&before.last_lsn),
    }
}

/// What can be restored, found by adding sets until nothing changes.
fn restorable(sets: &[ChainSet]) -> Vec<bool> {
    let mut found = vec![false; sets.len()];
    loop {
        let before = found.clone();
        for (index, set) in sets.iter().enumerate() {
            let stands = set.kind == Full
                || (0..sets.len())
                    .any(|other| other != index && before[other] && follows(&sets[other], set));
            found[index] = set.obstacle.is_none() && stands;
        }
        if found == before {
            return found;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_set_is_promised_exactly_when_it_can_be_restored(
        seeds in prop::collection::vec(any::<Seed>(), 1..30),
        rotation in any::<prop::sample::Index>(),
    ) {
        let mut sets = sets_of(&seeds);
        let middle = rotation.index(sets.len());
        sets.rotate_left(middle);
        let (chains, expected) = (Chains::of(&sets), restorable(&sets));
        for index in 0..sets.len() {
            prop_assert_eq!(chains.verdict(index).is_ok(), expected[index], "set {}", index);
            let Ok(path) = chains.path(index) else { continue };
            prop_assert_eq!(path.last(), Some(&index));
            prop_assert_eq!(sets[path[0]].kind, Full);
            for pair in path.windows(2) {
                prop_assert!(follows(&sets[pair[0]], &sets[pair[1]]));
            }
            prop_assert!(path.iter().all(|step| expected[*step]));
        }
        let newest = (0..sets.len()).filter(|index| expected[*index]).max_by_key(|index| sets[*index].last_lsn);
        prop_assert_eq!(chains.newest(|_| true), newest);
        if let Some(state) = chains.newest_state(|_| true) {
            prop_assert_eq!(state.steps.len() + state.left_out.len(), sets.len());
        }
    }
}

#[test]
fn time_decides_between_sets_that_were_made_apart_and_the_log_between_others() {
    let times = |started, finished| Some(Times { started, finished });
    let mut first = set(Full, 1, 9, None);
    let mut second = set(Full, 2, 3, None);
    // The second began in the second in which the first ended.
    (first.times, second.times) = (times(100, 105), times(105, 110));
    assert!(is_newer(&first, &second) && !is_newer(&second, &first));
    second.times = times(106, 110);
    assert!(is_newer(&second, &first) && !is_newer(&first, &second));
    assert!(!is_newer(&first, &first));
}

#[test]
fn what_may_be_a_base_is_full_and_no_copy() {
    let full = set(Full, 1, 1, None);
    assert!(full.can_be_base());
    let copy = ChainSet {
        is_copy_only: true,
        ..full
    };
    assert!(!copy.can_be_base());
    assert!(!set(Differential, 2, 2, Some(1)).can_be_base());
    assert!(!log(3, 1, 2).can_be_base());
}

#[test]
fn a_copied_differential_is_based_on_a_copy_of_its_base_and_on_nothing_else_of_that_guid() {
    let copy = |set: ChainSet, own: u8| ChainSet {
        original_guid: Some(set.set_guid),
        set_guid: guid(own),
        ..set
    };
    let full = copy(set(Full, 1, 1, None), 11);
    let differential = copy(set(Differential, 2, 2, Some(1)), 12);
    let damaged = ChainSet {
        obstacle: Some(Obstacle::Damaged),
        ..copy(set(Full, 1, 1, None), 13)
    };
    let sets = [damaged, full.clone(), differential.clone()];
    let chains = Chains::of(&sets);
    assert_eq!(chains.path(2), Ok(vec![1, 2]));
    assert_eq!(chains.newest(|_| true), Some(2));
    // A set of Windlass that has the GUID of SQL Server's, and the reverse.
    let foreign = [set(Full, 1, 1, None), differential];
    assert!(Chains::of(&foreign).verdict(1).is_err());
    let foreign = [full, set(Differential, 2, 2, Some(1))];
    assert!(Chains::of(&foreign).verdict(1).is_err());
}

#[test]
fn a_set_found_on_media_says_what_hinders_its_restore() {
    let full = SetConfiguration {
        differential_base_guid: guid(7),
        ..SetConfiguration::default()
    };
    let complete = ChainSet::of(&full, true);
    assert_eq!((complete.obstacle, complete.base), (None, None));
    let unfinished = ChainSet::of(&full, false);
    assert_eq!(unfinished.obstacle, Some(Obstacle::Incomplete));
    let damaged = SetConfiguration {
        is_damaged: true,
        set_type: Differential,
        ..full
    };
    let damaged = ChainSet::of(&damaged, true);
    assert_eq!(damaged.obstacle, Some(Obstacle::Damaged));
    assert_eq!(damaged.base, Some(guid(7)));
}

#[test]
fn a_row_of_the_history_says_what_hinders_its_restore() {
    let past = Place::new().back_up(&["1"], true);
    let of = |change: fn(&mut PastBackup)| {
        let mut past = past.clone();
        change(&mut past);
        ChainSet::of_past(&past)
    };
    let obstacle = |change| of(change).unwrap().obstacle;
    assert_eq!(obstacle(|_| {}), None);
    assert_eq!(
        obstacle(|past| past.is_damaged = true),
        Some(Obstacle::Damaged)
    );
    assert_eq!(
        obstacle(|past| past.is_overwritten = true),
        Some(Obstacle::Overwritten)
    );
    assert_eq!(
        obstacle(|past| past.finished = None),
        Some(Obstacle::Undated)
    );
    assert_eq!(
        obstacle(|past| past.started = None),
        Some(Obstacle::Undated)
    );
    for (letter, kind) in [("D", Full), ("I", Differential), ("L", SetType::Log)] {
        let past = PastBackup {
            kind: letter.to_owned(),
            ..past.clone()
        };
        assert_eq!(ChainSet::of_past(&past).unwrap().kind, kind);
    }
    assert_eq!(of(|past| past.kind = "F".to_owned()), None);
}

#[test]
fn a_log_backup_without_commits_is_not_of_an_empty_database() {
    let is_empty = |set_type, letter: &str| {
        let set = SetConfiguration {
            files: vec![windlass_media::DatabaseFile::default()],
            set_type,
            ..SetConfiguration::default()
        };
        let past = PastBackup {
            kind: letter.to_owned(),
            database_bytes: Some(0),
            ..Place::new().back_up(&["1"], true)
        };
        let known = ChainSet::of_past(&past).unwrap();
        [ChainSet::of(&set, true).is_empty, known.is_empty]
    };
    assert_eq!(is_empty(SetType::Log, "L"), [false; 2]);
    assert_eq!(is_empty(Full, "D"), [true; 2]);
}
