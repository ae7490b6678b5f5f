//! Schedules against a reference that looks at every minute.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

const ZONES: [&str; 5] = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Sao_Paulo",
    "UTC",
];

fn zone(name: &str) -> TimeZone {
    TimeZone::get(name).unwrap()
}

fn daily(start: &str, end: &str) -> Schedule {
    Schedule {
        frequency: Frequency::Daily(1),
        repeated: Repeated::Once,
        days: (Date::constant(2026, 1, 1), Date::constant(2027, 12, 31)),
        times: (start.parse().unwrap(), end.parse().unwrap()),
    }
}

/// The local times at which a schedule is due within two moments.
fn due(schedule: &Schedule, from: &str, until: &str, name: &str) -> Vec<String> {
    let zone = zone(name);
    let moment = |text: &str| zone.to_timestamp(text.parse().unwrap()).unwrap();
    let until = moment(until);
    let mut at = moment(from);
    let mut found = Vec::new();
    while let Some(next) = schedule.next_after(at, &zone) {
        assert!(next > at);
        if next > until {
            break;
        }
        found.push(zone.to_datetime(next).strftime("%d %H:%M").to_string());
        at = next;
    }
    found
}

#[test]
fn a_time_that_the_clocks_skip_runs_after_the_gap_and_one_shown_twice_runs_once() {
    let schedule = daily("02:30", "23:59:59");
    let spring = due(&schedule, "2026-03-28 12:00", "2026-03-30 12:00", ZONES[0]);
    assert_eq!(spring, ["29 03:00", "30 02:30"]);
    let autumn = due(&schedule, "2026-10-24 12:00", "2026-10-26 12:00", ZONES[0]);
    assert_eq!(autumn, ["25 02:30", "26 02:30"]);
    // Where the clocks skip midnight itself.
    let mut midnight = daily("00:00", "23:59:59");
    midnight.days = (Date::constant(2018, 1, 1), Date::constant(2018, 12, 31));
    let skipped = due(&midnight, "2018-11-02 12:00", "2018-11-05 12:00", ZONES[3]);
    assert_eq!(skipped, ["03 00:00", "04 01:00", "05 00:00"]);
}

#[test]
fn an_interval_counts_the_time_that_passes() {
    let mut hourly = daily("00:00", "23:59:59");
    hourly.repeated = Repeated::Every(3600);
    let count = |day: &str| {
        let until = format!("{day} 23:59:59");
        let from: DateTime = format!("{day} 00:00").parse().unwrap();
        let from = from.checked_sub(Span::new().seconds(1)).unwrap();
        due(&hourly, &from.to_string(), &until, ZONES[0]).len()
    };
    assert_eq!(count("2026-03-29"), 23);
    assert_eq!(count("2026-06-01"), 24);
    assert_eq!(count("2026-10-25"), 25);
}

#[test]
fn a_window_that_ends_before_it_starts_lasts_into_the_next_day() {
    let mut night = daily("22:00", "02:00");
    night.repeated = Repeated::Every(2 * 3600);
    night.frequency = Frequency::Weekly { days: 2, weeks: 2 };
    // 2026-01-01 is a Thursday: the Monday of its own week has passed, that of the next does not count.
    let found = due(&night, "2026-01-01 00:00", "2026-01-31 00:00", "UTC");
    let expected = [
        "12 22:00", "13 00:00", "13 02:00", "26 22:00", "27 00:00", "27 02:00",
    ];
    assert_eq!(found, expected);
}

#[test]
fn months_have_days_and_kinds_of_days() {
    let mut schedule = daily("06:00", "23:59:59");
    let mut on = |frequency| {
        schedule.frequency = frequency;
        let from = "2026-01-01 00:00";
        let found = due(&schedule, from, "2026-04-30 23:00", "UTC");
        found
            .iter()
            .map(|text| text[..2].to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(on(Frequency::Monthly { day: 31, months: 1 }), ["31", "31"]);
    assert_eq!(on(Frequency::Monthly { day: 1, months: 3 }), ["01", "01"]);
    let mut relative = |which, kind| {
        on(Frequency::Relative {
            which,
            kind,
            months: 1,
        })
    };
    assert_eq!(relative(16, 6), ["30", "27", "27", "24"], "last Friday");
    assert_eq!(relative(1, 9), ["01", "02", "02", "01"], "first weekday");
    assert_eq!(
        relative(2, 10),
        ["04", "07", "07", "05"],
        "second day of a weekend"
    );
    assert_eq!(relative(16, 8), ["31", "28", "31", "30"], "last day");
}

#[test]
fn a_schedule_ends_and_once_is_once() {
    let mut schedule = daily("06:00", "23:59:59");
    schedule.days.1 = Date::constant(2026, 1, 2);
    assert_eq!(
        due(&schedule, "2026-01-01 00:00", "2027-01-01 00:00", "UTC").len(),
        2
    );
    schedule.frequency = Frequency::Once;
    assert_eq!(
        due(&schedule, "2026-01-01 00:00", "2027-01-01 00:00", "UTC"),
        ["01 06:00"]
    );
    assert_eq!(
        due(&schedule, "2026-01-01 06:00", "2027-01-01 00:00", "UTC").len(),
        0
    );
    schedule.frequency = Frequency::AgentStart;
    assert_eq!(
        due(&schedule, "2026-01-01 00:00", "2027-01-01 00:00", "UTC").len(),
        0
    );
}

/// The first minute after `after` at which a schedule is due, by its definition: tries each.
fn slow(schedule: &Schedule, after: Timestamp, zone: &TimeZone, minutes: i64) -> Option<Timestamp> {
    let minute = SignedDuration::from_mins(1);
    let first = after.as_second().div_euclid(60) * 60 + 60;
    let mut at = Timestamp::from_second(first).unwrap();
    for _ in 0..minutes {
        let today = zone.to_datetime(at).date();
        let days = [today.yesterday().unwrap(), today];
        if days.iter().any(|day| is_due(schedule, *day, at, zone)) {
            return Some(at);
        }
        at = at.checked_add(minute).unwrap();
    }
    None
}

fn is_due(schedule: &Schedule, day: Date, at: Timestamp, zone: &TimeZone) -> bool {
    if day < schedule.days.0 || day > schedule.days.1 || !slow_is_on(schedule, day) {
        return false;
    }
    let minute = SignedDuration::from_mins(1);
    let start = day.to_datetime(schedule.times.0);
    // The first minute that shows the start or later, from a moment that certainly shows less.
    let mut begin = zone
        .to_timestamp(day.to_datetime(Time::midnight()))
        .unwrap();
    begin = begin.checked_sub(SignedDuration::from_hours(4)).unwrap();
    while zone.to_datetime(begin) < start {
        begin = begin.checked_add(minute).unwrap();
    }
    let Repeated::Every(seconds) = schedule.repeated else {
        return at == begin;
    };
    let last = match schedule.times.1 < schedule.times.0 {
        true => day.tomorrow().unwrap(),
        false => day,
    };
    let end = last.to_datetime(schedule.times.1);
    // Whether the clocks still show the end or less now, or do again.
    let hours =
        (0..=180).map(|minutes| at.checked_add(SignedDuration::from_mins(minutes)).unwrap());
    let mut later = hours.map(|later| zone.to_datetime(later));
    at >= begin
        && later.any(|shown| shown <= end)
        && (at.as_second() - begin.as_second()) % seconds == 0
}

fn slow_is_on(schedule: &Schedule, day: Date) -> bool {
    let first = schedule.days.0;
    let days = || {
        first
            .series(Span::new().days(1))
            .take_while(|other| *other < day)
    };
    match schedule.frequency {
        Frequency::Daily(every) => days().count() as i64 % every == 0,
        Frequency::Weekly { days: mask, weeks } => {
            let sundays = days()
                .filter(|other| other.tomorrow().unwrap().weekday() == Weekday::Sunday)
                .count() as i64;
            sundays % weeks == 0 && mask & 1 << day.weekday().to_sunday_zero_offset() != 0
        }
        Frequency::Monthly {
            day: of_month,
            months,
        } => {
            let turns = days()
                .filter(|other| other.tomorrow().unwrap().day() == 1)
                .count();
            turns as i64 % months == 0 && i64::from(day.day()) == of_month
        }
        _ => false,
    }
}

fn frequency() -> impl Strategy<Value = Frequency> {
    prop_oneof![
        (1..4i64).prop_map(Frequency::Daily),
        (1..128i64, 1..3i64).prop_map(|(days, weeks)| Frequency::Weekly { days, weeks }),
        (1..32i64, 1..3i64).prop_map(|(day, months)| Frequency::Monthly { day, months }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_next_moment_is_that_of_the_reference(
        frequency in frequency(),
        every in prop_oneof![Just(None), (1..200i64).prop_map(Some)],
        start in 0..1440i64,
        end in 0..1440i64,
        zone_number in 0..ZONES.len(),
        // Around the days on which clocks change.
        month in prop_oneof![Just(3i8), Just(4), Just(10), Just(11), 1..13i8],
        day in 1..29i8,
        after in 0..1440i64,
        first in 0..20i32,
    ) {
        let zone = zone(ZONES[zone_number]);
        let day = Date::constant(2018, month, day);
        let of_day = |minute: i64| Time::constant((minute / 60) as i8, (minute % 60) as i8, 0, 0);
        let schedule = Schedule {
            frequency,
            repeated: every.map_or(Repeated::Once, |minutes| Repeated::Every(minutes * 60)),
            days: (day.checked_sub(Span::new().days(first)).unwrap(), day.saturating_add(Span::new().days(40))),
            times: (of_day(start), of_day(end)),
        };
        let after = zone.to_timestamp(day.to_datetime(of_day(after))).unwrap();
        let fast = schedule.next_after(after, &zone);
        let minutes = 4 * 1440;
        let slow = slow(&schedule, after, &zone, minutes);
        let seen = after.checked_add(SignedDuration::from_mins(minutes)).unwrap();
        prop_assert_eq!(fast.filter(|fast| *fast <= seen), slow);
    }
}
