//! The order of states where clocks were wrong, and of the histories that share a recovery fork.

use windlass_catalog::PastBackup;
use windlass_media::SetType::{self, Differential, Full};

use super::order::is_rival;
use super::tests::{guid, log, lsn, set};
use super::{ChainSet, Chains, LogEnd, Times, is_newer, rivals, settle_dates};
use crate::presence::tests::Place;

/// The same set with other dates.
fn dated(set: ChainSet, time: i64) -> ChainSet {
    ChainSet {
        times: Some(Times {
            started: time * 10,
            finished: time * 10 + 5,
        }),
        ..set
    }
}

/// The same set of the log whose blocks before its ends have these checksums.
fn joined(set: ChainSet, previous: u64, ending: u64) -> ChainSet {
    ChainSet {
        previous: (set.kind == SetType::Log).then_some(LogEnd::Block(previous)),
        ending: Some(LogEnd::Block(ending)),
        ended_ms: set.times.map(|times| times.finished as u64 * 1000),
        lineage: 7,
        ..set
    }
}

/// The newest state of some sets, which nothing contradicts.
#[track_caller]
fn newest(sets: &[ChainSet]) -> Vec<usize> {
    let steps = Chains::of(sets).newest_state(|_| true).unwrap().steps;
    let all: Vec<usize> = (0..sets.len()).collect();
    let last = *steps.last().unwrap();
    assert_eq!(rivals(sets, last, &all).next(), None);
    steps
}

#[test]
fn of_two_forks_in_one_second_the_state_that_ended_later_is_newer() {
    let mut left = set(Full, 1, 1, None);
    left.last_lsn = lsn(9);
    let mut here = ChainSet {
        fork: guid(202),
        ..set(Full, 2, 1, None)
    };
    // By their LSNs, as long as nothing else is known.
    assert!(is_newer(&left, &here) && !is_newer(&here, &left));
    (left.ended_ms, here.ended_ms) = (Some(15_200), Some(15_201));
    assert!(is_newer(&here, &left) && !is_newer(&left, &here));
    (left.ended_ms, here.ended_ms) = (None, None);
    (left.recorded, here.recorded) = (Some(4), Some(5));
    assert!(is_newer(&here, &left) && !is_newer(&left, &here));
    // Within one fork, the log tells it.
    here.fork = left.fork;
    assert!(is_newer(&left, &here) && !is_newer(&here, &left));
    // Not if the files were put back: then nobody knows which history is meant to go on.
    (left.ended_ms, here.ended_ms) = (Some(15_200), Some(15_201));
    assert!(is_newer(&here, &left) && is_rival(&left, &here));
}

#[test]
fn what_was_overwritten_is_older_than_what_is_on_its_medium_now() {
    let past = PastBackup {
        media_set_guid: Some(guid(100)),
        ..Place::new().back_up(&["1"], true)
    };
    let at = |position, is_overwritten| {
        let past = PastBackup {
            position,
            is_overwritten,
            ..past.clone()
        };
        ChainSet::of_past(&past).unwrap().place
    };
    let placed = |number: u8, place| ChainSet {
        place,
        ..set(Full, number, number.into(), None)
    };
    let [first, last] = [placed(1, at(1, true)), placed(4, at(4, true))];
    let [now, appended] = [placed(5, at(1, false)), placed(6, at(2, false))];
    // Of two that are gone, their dates tell it.
    for sets in [&first, &last, &now, &appended].windows(2) {
        assert!(is_newer(sets[1], sets[0]) && !is_newer(sets[0], sets[1]));
    }
    // A clock that was set back does not matter, nor that the log was, with the database.
    let now = ChainSet {
        last_lsn: lsn(2),
        ..dated(now, 3)
    };
    assert!(is_newer(&now, &last) && !is_newer(&last, &now) && !is_rival(&last, &now));
}

#[test]
fn a_log_backup_is_not_dated_later_than_the_one_that_continues_it() {
    let ahead = dated(log(3, 2, 3), 900);
    let chain = [
        set(Full, 1, 1, None),
        joined(log(2, 1, 2), 10, 20),
        joined(ahead, 20, 30),
        joined(log(4, 3, 4), 30, 40),
    ];
    let mut sets = chain.clone();
    settle_dates(&mut sets);
    assert_eq!(newest(&sets), [0, 1, 2, 3]);
    assert!(!sets[2].times.unwrap().is_future(100));
    assert_eq!(sets[2].times.unwrap().finished, 40);
    // The others have the dates that they say.
    for index in [0, 1, 3] {
        assert_eq!(sets[index].times, chain[index].times);
    }
    // A history does not know the checksums: its order says it.
    let of_history = |order: [i64; 4]| -> Vec<ChainSet> {
        let of = |(set, recorded): (&ChainSet, i64)| ChainSet {
            previous: None,
            ending: None,
            recorded: Some(recorded),
            ..set.clone()
        };
        let mut sets: Vec<ChainSet> = chain.iter().zip(order).map(of).collect();
        settle_dates(&mut sets);
        sets
    };
    assert_eq!(newest(&of_history([1, 2, 3, 4])), [0, 1, 2, 3]);
    assert_eq!(of_history([1, 2, 4, 3])[2].times, chain[2].times);
    // Another log at the same LSN says nothing of it.
    let mut sets = chain.clone();
    sets[3].previous = Some(LogEnd::Block(31));
    settle_dates(&mut sets);
    assert_eq!(sets[..3], chain[..3]);
}

#[test]
fn a_clock_that_was_behind_makes_nothing_before_it_old() {
    let chain = [
        set(Full, 1, 1, None),
        joined(log(2, 1, 2), 10, 20),
        joined(dated(log(3, 2, 3), 0), 20, 30),
        joined(log(4, 3, 4), 30, 40),
    ];
    let mut sets = chain.clone();
    settle_dates(&mut sets);
    assert_eq!(sets, chain);
    assert_eq!(newest(&sets), [0, 1, 2, 3]);
}

#[test]
fn a_base_is_not_dated_later_than_its_differential() {
    let mut sets = [
        set(Full, 4, 1, None),
        dated(set(Full, 1, 2, None), 900),
        set(Differential, 2, 3, Some(1)),
        set(Full, 3, 4, None),
    ];
    settle_dates(&mut sets);
    assert_eq!(sets[1].times.unwrap().finished, 30);
    assert_eq!(newest(&sets), [3]);
}

#[test]
fn whatever_its_date_says_a_full_backup_is_older_than_what_was_made_upon_it() {
    // Nothing earlier tells that its clock was ahead.
    let ahead = dated(set(Full, 1, 1, None), 900);
    let sets = [
        ahead.clone(),
        set(Differential, 2, 2, Some(1)),
        joined(log(3, 2, 3), 20, 30),
    ];
    for count in 2..=3 {
        let mut sets = sets[..count].to_vec();
        settle_dates(&mut sets);
        assert_eq!(sets[0].times, ahead.times);
        assert_eq!(newest(&sets), (0..count).collect::<Vec<_>>());
    }
    // Of a later full backup, nothing tells that it is newer, unless what is based on the one before is older than it too.
    let later = set(Full, 4, 4, None);
    let own = [sets[0].clone(), later.clone()];
    let all: Vec<usize> = (0..2).collect();
    assert_eq!(rivals(&own, 0, &all).collect::<Vec<_>>(), [1]);
    let own = [sets[0].clone(), sets[1].clone(), later];
    assert_eq!(newest(&own), [2]);
}

#[test]
fn what_knew_of_the_same_wrong_clock_is_in_the_order_of_its_dates() {
    let knows = |set: ChainSet| ChainSet {
        contradicted_until: Some(9000),
        ..set
    };
    let [one, other] = [set(Full, 1, 1, None), set(Full, 2, 2, None)];
    assert!(is_rival(&knows(one.clone()), &other));
    assert!(!is_rival(&knows(one), &knows(other)));
}

#[test]
fn a_log_backup_of_a_history_that_was_left_is_no_part_of_the_one_that_replaced_it() {
    // The machine was put back to where the first log backup ended.
    let left = dated(log(3, 2, 5), 3);
    let sets = [
        set(Full, 1, 1, None),
        joined(log(2, 1, 2), 10, 20),
        joined(left, 20, 31),
        joined(dated(log(4, 2, 4), 4), 20, 32),
        joined(dated(log(5, 4, 6), 6), 32, 42),
    ];
    let chains = Chains::of(&sets);
    assert_eq!(chains.path(4), Ok(vec![0, 1, 3, 4]));
    assert_eq!(chains.path(2), Ok(vec![0, 1, 2]));
    // Neither is a full backup of it, which ended before the log backup that the last one continues.
    let mut sets = sets.to_vec();
    sets[2] = joined(dated(set(Full, 3, 5, None), 3), 0, 31);
    assert_eq!(Chains::of(&sets).path(4), Ok(vec![0, 1, 3, 4]));
    // One that was made while the log was saves the logs before it.
    sets[2] = joined(dated(set(Full, 3, 5, None), 5), 0, 31);
    assert_eq!(Chains::of(&sets).path(4), Ok(vec![2, 4]));
    // Unless the log backup knows only an earlier full backup as the last one.
    for (last_full, path) in [
        ((guid(1), lsn(1)), vec![0, 1, 3, 4]),
        ((guid(3), lsn(5)), vec![2, 4]),
        ((guid(9), lsn(6)), vec![2, 4]),
    ] {
        sets[4].last_full = Some(last_full);
        assert_eq!(Chains::of(&sets).path(4), Ok(path));
    }
    sets[4].last_full = None;
    // A log backup that cannot be restored proves nothing that helps.
    sets[2] = joined(dated(log(3, 1, 5), 5), 10, 31);
    sets[3].obstacle = Some(super::Obstacle::Damaged);
    assert_eq!(Chains::of(&sets).path(4), Ok(vec![0, 1, 2, 4]));
}
