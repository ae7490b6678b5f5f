//! Dates and times as stored in media headers.

use std::fmt;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::SystemTime;

use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Timestamp, Zoned};

/// Where the system stores the rules of its time zone, unless `TZ` names another.
const LOCAL_ZONE_FILE: &str = "/etc/localtime";

/// Maximum length of such a file; the longest have a few kilobytes.
const ZONE_BYTES_MAX: u64 = 1 << 20;

/// A point in time, in microseconds since 1970, UTC, as local time with its offset: `2026-11-24 10:45:20.250000+01:00`.
pub fn time_text(time_us: u64) -> String {
    let time = i64::try_from(time_us)
        .ok()
        .and_then(|time| Timestamp::from_microsecond(time).ok());
    time.map_or_else(
        || format!("{time_us} microseconds after 1970"),
        |time| {
            let local = time.to_zoned(local_zone());
            local.strftime("%Y-%m-%d %H:%M:%S.%6f%:z").to_string()
        },
    )
}

/// Microseconds since 1970, UTC, of a time in the form of [`time_text`]. Fraction and offset can be omitted: then it is
/// local time.
///
/// # Errors
/// It is no time, or not one: where clocks are set back, a local time comes twice.
pub fn time_of_text(text: &str) -> Result<u64, TimeError> {
    let time = match with_offset(text) {
        Some(time) => time,
        None => of_local(text.parse().map_err(|_| TimeError::NoTime)?, &local_zone())?,
    };
    u64::try_from(time.as_microsecond()).map_err(|_| TimeError::NoTime)
}

/// Why a text is not the time of a moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TimeError {
    #[error("it is no time")]
    NoTime,
    #[error(
        "it comes twice, because clocks are set back: write '{}' for the first, '{}' for the second",
        .0.first, .0.second
    )]
    Twice(Twice),
    #[error("there is no such time, because clocks are set forward")]
    Skipped,
}

/// What a local time means that comes twice, because clocks are set back: each with its offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Twice {
    pub first: String,
    pub second: String,
}

/// A time with its offset from UTC, or `Z`: also with a blank before the offset, as T-SQL writes a `datetimeoffset`.
fn with_offset(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let spaced = || Timestamp::strptime("%Y-%m-%d %H:%M:%S%.f %:z", text);
    text.parse().or_else(|_| spaced()).ok()
}

fn of_local(local: DateTime, zone: &TimeZone) -> Result<Timestamp, TimeError> {
    let meant = zone.to_ambiguous_zoned(local);
    let told = |offset: Offset| {
        let with_offset = local.to_zoned(offset.to_time_zone());
        let told = with_offset.map(|time| time.strftime("%Y-%m-%d %H:%M:%S%.f%:z").to_string());
        told.map_err(|_| TimeError::NoTime)
    };
    match meant.offset() {
        AmbiguousOffset::Unambiguous { .. } => {
            let only = meant.unambiguous().map_err(|_| TimeError::NoTime)?;
            Ok(only.timestamp())
        }
        AmbiguousOffset::Gap { .. } => Err(TimeError::Skipped),
        AmbiguousOffset::Fold { before, after } => Err(TimeError::Twice(Twice {
            first: told(before)?,
            second: told(after)?,
        })),
    }
}

/// A local date and time of day, to the second.
///
/// The stored form is Microsoft Tape Format's five bytes: year 14 bits, month 4, day 5, hour 5,
/// minute 6, second 6, most significant first; all zero means "none".
/// Source: MTF 1.00a "Date and time"; observed in every real `.bak` file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(DateTime);

impl Moment {
    /// From a civil date and time, dropping the fraction of a second.
    pub fn new(at: DateTime) -> Self {
        Self(at.with().subsec_nanosecond(0).build().unwrap_or(at))
    }

    /// The current local time and the offset from UTC in quarter hours.
    pub fn now() -> (Self, i8) {
        let now = local_now();
        let quarter_hours = now.offset().seconds() / 900;
        (
            Self::new(now.datetime()),
            i8::try_from(quarter_hours).unwrap_or(0),
        )
    }

    /// The local time of the system's clock; `None` outside of the calendar's range.
    pub fn of_system_time(time: SystemTime) -> Option<Self> {
        let stamp = Timestamp::try_from(time).ok()?;
        Some(Self::new(stamp.to_zoned(local_zone()).datetime()))
    }

    pub fn to_civil(self) -> DateTime {
        self.0
    }

    /// Seconds since 1970, UTC, of a local time with its offset from UTC in quarter hours.
    pub fn utc_seconds(self, quarter_hours: i32) -> i64 {
        let local = self.0.to_zoned(TimeZone::UTC);
        let local = local.map_or(0, |local| local.timestamp().as_second());
        local - i64::from(quarter_hours) * 900
    }

    /// The same of a time that was written down when it was `made` there, at that offset. Where that is the system's time
    /// zone, this time of day is meant, whatever the offset is by then: summer time may begin or end between.
    pub fn utc_seconds_from(self, made: Self, quarter_hours: i8) -> i64 {
        self.utc_seconds_in(&local_zone(), made, quarter_hours)
    }

    fn utc_seconds_in(self, zone: &TimeZone, made: Self, quarter_hours: i8) -> i64 {
        let made_at = made.utc_seconds(quarter_hours.into());
        let offset = Timestamp::from_second(made_at).map(|at| zone.to_offset(at).seconds());
        let is_of_zone = offset.is_ok_and(|offset| offset == i32::from(quarter_hours) * 900);
        let there = self.0.to_zoned(zone.clone()).ok().filter(|_| is_of_zone);
        there.map_or_else(
            || self.utc_seconds(quarter_hours.into()),
            |there| there.timestamp().as_second(),
        )
    }

    /// The system's local time of so many seconds since 1970, UTC.
    pub fn of_utc_seconds(seconds: i64) -> Option<Self> {
        let stamp = Timestamp::from_second(seconds).ok()?;
        Some(Self::new(stamp.to_zoned(local_zone()).datetime()))
    }

    /// This moment plus whole days, saturating at the calendar's end.
    pub fn plus_days(self, days: u32) -> Self {
        Self(
            self.0
                .saturating_add(jiff::Span::new().days(i64::from(days.min(3_650_000)))),
        )
    }

    /// So many minutes later, or earlier.
    #[must_use]
    pub fn plus_minutes(self, minutes: i32) -> Self {
        let span = jiff::Span::new().minutes(i64::from(minutes));
        Self(self.0.saturating_add(span))
    }

    /// The five bytes of the stored form.
    pub fn to_stored(self) -> [u8; 5] {
        let (date, time) = (self.0.date(), self.0.time());
        let mut bits = u64::from(date.year().unsigned_abs() & 0x3FFF);
        for (value, width) in [
            (date.month(), 4),
            (date.day(), 5),
            (time.hour(), 5),
            (time.minute(), 6),
            (time.second(), 6),
        ] {
            bits = bits << width | u64::from(value.unsigned_abs());
        }
        let [_, _, _, a, b, c, d, e] = bits.to_be_bytes();
        [a, b, c, d, e]
    }

    /// Reads the five bytes of the stored form: `None` when all zero or not a date.
    pub fn from_stored(bytes: [u8; 5]) -> Option<Self> {
        let [a, b, c, d, e] = bytes;
        let bits = u64::from_be_bytes([0, 0, 0, a, b, c, d, e]);
        let field = |shift: u32, width: u32| (bits >> shift & ((1 << width) - 1)) as i8;
        let year = (bits >> 26) as i16;
        DateTime::new(
            year,
            field(22, 4),
            field(17, 5),
            field(12, 5),
            field(6, 6),
            field(0, 6),
            0,
        )
        .ok()
        .map(Self)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%Y-%m-%d %H:%M:%S"))
    }
}

impl fmt::Debug for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a date in a form used in T-SQL scripts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a date and time, such as 2026-12-24 or '2026-12-24 18:00:00'")]
pub struct MomentError(String);

const FORMS: [&str; 8] = [
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M",
    "%Y%m%d %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %I:%M:%S %p",
];

const DATE_FORMS: [&str; 4] = ["%Y-%m-%d", "%Y%m%d", "%m/%d/%Y", "%b %d, %Y"];

impl FromStr for Moment {
    type Err = MomentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        civil(text).map(Self::new)
    }
}

/// A date and time in one of the forms of T-SQL scripts.
fn civil(text: &str) -> Result<DateTime, MomentError> {
    let trimmed = text.trim();
    let at = FORMS
        .iter()
        .find_map(|form| DateTime::strptime(form, trimmed).ok());
    let at = at.or_else(|| {
        let date = DATE_FORMS
            .iter()
            .find_map(|form| jiff::civil::Date::strptime(form, trimmed).ok());
        date.map(|date| date.at(0, 0, 0, 0))
    });
    at.ok_or_else(|| MomentError(text.to_owned()))
}

/// A local date and time as milliseconds since 1970, UTC. Where clocks are set back, the first of two is meant, which is
/// told; an offset names the other.
///
/// # Errors
/// It is no date, or before 1970.
pub fn unix_ms_of_local(text: &str) -> Result<(u64, Option<Twice>), MomentError> {
    let refused = || MomentError(text.to_owned());
    let (at, twice) = stamp_of_local(text, &local_zone())?;
    let unix_ms = u64::try_from(at.as_millisecond()).map_err(|_| refused())?;
    Ok((unix_ms, twice))
}

fn stamp_of_local(text: &str, zone: &TimeZone) -> Result<(Timestamp, Option<Twice>), MomentError> {
    if let Some(stamp) = with_offset(text) {
        return Ok((stamp, None));
    }
    let local = civil(text)?;
    let twice = match of_local(local, zone) {
        Err(TimeError::Twice(twice)) => Some(twice),
        _ => None,
    };
    let at = local.to_zoned(zone.clone());
    let at = at.map_err(|_| MomentError(text.to_owned()))?;
    Ok((at.timestamp(), twice))
}

/// Milliseconds since 1970, UTC, as a local date and time that [`unix_ms_of_local`] reads.
pub fn local_of_unix_ms(unix_ms: u64) -> String {
    let local = stamp_of_unix_ms(unix_ms).to_zoned(local_zone());
    local.strftime(LOCAL_FORM).to_string()
}

/// The same, with the offset if the local time comes twice: [`unix_ms_of_local`] reads the same moment.
pub fn exact_local_of_unix_ms(unix_ms: u64) -> String {
    exact_local(stamp_of_unix_ms(unix_ms), local_zone())
}

const LOCAL_FORM: &str = "%Y-%m-%d %H:%M:%S.%3f";

fn stamp_of_unix_ms(unix_ms: u64) -> Timestamp {
    let stamp = i64::try_from(unix_ms).ok();
    let stamp = stamp.and_then(|unix_ms| Timestamp::from_millisecond(unix_ms).ok());
    stamp.unwrap_or(Timestamp::MAX)
}

fn exact_local(stamp: Timestamp, zone: TimeZone) -> String {
    let local = stamp.to_zoned(zone);
    let is_one = of_local(local.datetime(), local.time_zone()).is_ok();
    let offset = if is_one { "" } else { "%:z" };
    local.strftime(&format!("{LOCAL_FORM}{offset}")).to_string()
}

/// The current local time, to the nanosecond, and its offset from UTC.
///
/// The only place where this crate has an external input: callers that must be deterministic pass
/// moments in.
pub fn local_now() -> Zoned {
    Timestamp::now().to_zoned(local_zone())
}

/// The time zone of the system. The library could also find its name, which is not needed: that would
/// read the whole time zone folder, which takes longer than a small backup.
fn local_zone() -> TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();
    let found = || match std::env::var_os("TZ") {
        None => zone_of_file(Path::new(LOCAL_ZONE_FILE)).unwrap_or_else(TimeZone::system),
        Some(named) => {
            let path = match named.to_str().and_then(|named| named.strip_prefix(':')) {
                Some(path) => PathBuf::from(path),
                None => PathBuf::from(&named),
            };
            // The library reads whatever it leads to, if it takes for ever.
            match std::fs::metadata(path) {
                Ok(found) if !is_zone_file(&found) => TimeZone::UTC,
                _ => TimeZone::system(),
            }
        }
    };
    ZONE.get_or_init(found).clone()
}

/// Whether it can be read to its end at once.
fn is_zone_file(found: &Metadata) -> bool {
    found.is_file() && found.len() <= ZONE_BYTES_MAX
}

fn zone_of_file(path: &Path) -> Option<TimeZone> {
    if !is_zone_file(&std::fs::metadata(path).ok()?) {
        return None;
    }
    TimeZone::tzif("", &std::fs::read(path).ok()?).ok()
}

/// A date and time of a text for people, `YYYY-MM-DD hh:mm:ss`, as JSON has it: `YYYY-MM-DDThh:mm:ss.mmm`. Another text
/// stays as it is.
pub fn json_time(text: &str) -> String {
    const SECONDS: usize = "YYYY-MM-DD hh:mm:ss".len();
    let is_time = text.as_bytes().get(10) == Some(&b' ') && text.len() >= SECONDS;
    if !is_time {
        return text.to_owned();
    }
    let with_mark = text.replacen(' ', "T", 1);
    match with_mark.len() {
        SECONDS => with_mark + ".000",
        _ => with_mark,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_for_people_becomes_one_for_programs() {
        for (text, json) in [
            ("2026-11-25 20:16:26", "2026-11-25T20:16:26.000"),
            ("2026-11-25 20:16:26.123", "2026-11-25T20:16:26.123"),
            ("never", "never"),
            ("", ""),
        ] {
            assert_eq!(json_time(text), json);
        }
    }

    #[test]
    fn a_time_that_was_written_down_keeps_its_time_of_day_over_the_end_of_summer_time() {
        let at = |text: &str| text.parse::<Moment>().unwrap();
        let (made, expires) = (at("2026-07-01 12:00:00"), at("2026-12-24 00:00:00"));
        // Central European time: an hour ahead in winter, two from March to October.
        let europe = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let in_winter = expires.utc_seconds(4);
        assert_eq!(expires.utc_seconds_in(&europe, made, 8), in_winter);
        // Somewhere else nobody knows what the offset is by then.
        let of_then = expires.utc_seconds(8);
        assert_eq!(expires.utc_seconds_in(&TimeZone::UTC, made, 8), of_then);
    }

    #[test]
    fn stored_form_round_trips() {
        for text in [
            "2026-11-20 23:59:59",
            "1999-01-01 00:00:00",
            "2007-03-30 23:13:00",
        ] {
            let moment: Moment = text.parse().unwrap();
            assert_eq!(Moment::from_stored(moment.to_stored()), Some(moment));
            assert_eq!(moment.to_string(), text);
        }
    }

    #[test]
    fn a_time_survives_its_text() {
        for time_us in [0, 1_764_000_000_123_456, 1_764_000_000_000_000] {
            assert_eq!(time_of_text(&time_text(time_us)), Ok(time_us));
        }
        assert_eq!(time_of_text("1970-01-02T00:00:00Z"), Ok(86_400_000_000));
        assert_eq!(
            time_of_text("1970-01-01 02:00:00.5+01:00"),
            Ok(3_600_500_000)
        );
        assert!(time_of_text("2026-11-24 10:45").is_ok(), "local");
        assert_eq!(time_of_text("yesterday"), Err(TimeError::NoTime));
    }

    /// Central Europe.
    fn zone() -> TimeZone {
        TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap()
    }

    #[test]
    fn a_local_time_that_comes_twice_is_told_and_an_offset_says_which() {
        let twice = Twice {
            first: "2026-10-25 02:30:00.5+02:00".to_owned(),
            second: "2026-10-25 02:30:00.5+01:00".to_owned(),
        };
        let written = "2026-10-25 02:30:00.5";
        let refused = of_local(written.parse().unwrap(), &zone());
        assert_eq!(refused, Err(TimeError::Twice(twice.clone())));
        let (first, told) = stamp_of_local(written, &zone()).unwrap();
        assert_eq!(told, Some(twice.clone()));
        let of = |text: &str| {
            let (stamp, told) = stamp_of_local(text, &zone()).unwrap();
            assert_eq!(told, None, "{text}");
            stamp
        };
        assert_eq!(of(&twice.first), first);
        for second in [
            twice.second.as_str(),
            "2026-10-25T01:30:00.5Z",
            "2026-10-25 02:30:00.5000000 +01:00",
        ] {
            assert_eq!(of(second).duration_since(first).as_secs(), 3600, "{second}");
        }
        // The hours around it come once, and one in spring does not come at all.
        of("2026-10-25 01:59:59");
        of("2026-10-25 03:00:00");
        let skipped = "2026-03-29 02:30:00".parse().unwrap();
        assert_eq!(of_local(skipped, &zone()), Err(TimeError::Skipped));
    }

    #[test]
    fn a_moment_of_an_hour_that_comes_twice_is_written_with_its_offset() {
        for (text, local) in [
            ("2026-10-25T00:30:00Z", "2026-10-25 02:30:00.000+02:00"),
            ("2026-10-25T01:30:00Z", "2026-10-25 02:30:00.000+01:00"),
            ("2026-10-25T02:30:00Z", "2026-10-25 03:30:00.000"),
        ] {
            let stamp: Timestamp = text.parse().unwrap();
            assert_eq!(exact_local(stamp, zone()), local);
            assert_eq!(stamp_of_local(local, &zone()).unwrap(), (stamp, None));
        }
    }

    #[test]
    fn all_zero_and_impossible_dates_are_none() {
        assert_eq!(Moment::from_stored([0; 5]), None);
        assert_eq!(Moment::from_stored([0xFF; 5]), None);
    }

    #[test]
    fn dates_of_scripts_are_understood() {
        for text in [
            "2026-12-31",
            "20261231",
            "12/31/2026",
            "2026-12-31T00:00:00",
        ] {
            assert_eq!(
                text.parse::<Moment>().unwrap().to_string(),
                "2026-12-31 00:00:00"
            );
        }
        assert!("tomorrow".parse::<Moment>().is_err());
    }
}
