//! Dates, times and identifiers as numbers, from the texts that rows have.

/// The days since 1970 of `2016-05-04`.
pub(super) fn days_of(text: &str) -> Option<i32> {
    let mut parts = text.split('-');
    let (year, month, day) = (
        number(parts.next()?)?,
        number(parts.next()?)?,
        number(parts.next()?)?,
    );
    if parts.next().is_some() || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years begin in March, so that the leap day is the last one.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    i32::try_from(era * 146_097 + day_of_era - 719_468).ok()
}

/// The microseconds since 1970 of `2016-05-04 06:07:08.123456`.
pub(super) fn microseconds_of(text: &str) -> Option<i64> {
    let (date, time) = text.split_once(' ')?;
    let nanoseconds = nanoseconds_of_day(time)?;
    (nanoseconds % 1000 == 0)
        .then_some(i64::from(days_of(date)?) * 86_400_000_000 + nanoseconds / 1000)
}

/// The nanoseconds of `06:07:08.1234567`.
pub(super) fn nanoseconds_of_day(text: &str) -> Option<i64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':');
    let (hour, minute, second) = (
        number(parts.next()?)?,
        number(parts.next()?)?,
        number(parts.next()?)?,
    );
    if parts.next().is_some() || hour > 23 || minute > 59 || second > 59 || fraction.len() > 9 {
        return None;
    }
    let nanoseconds = match fraction {
        "" => 0,
        digits => number(digits)? * 10_i64.pow(9 - digits.len() as u32),
    };
    Some(((hour * 60 + minute) * 60 + second) * 1_000_000_000 + nanoseconds)
}

/// The bytes of a GUID in the order of its text.
pub(super) fn guid_of(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.chars().filter(|letter| *letter != '-').collect();
    let is_hex = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let number = u128::from_str_radix(&digits, 16).ok().filter(|_| is_hex)?;
    Some(number.to_be_bytes())
}

fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times_are_counted_from_1970() {
        assert_eq!(days_of("1970-01-01"), Some(0));
        assert_eq!(days_of("2000-02-29"), Some(11_016));
        assert_eq!(days_of("0001-01-01"), Some(-719_162));
        assert_eq!(days_of("9999-12-31"), Some(2_932_896));
        assert_eq!(microseconds_of("1969-12-31 23:59:59.999"), Some(-1000));
        assert_eq!(microseconds_of("1970-01-02 00:00:00"), Some(86_400_000_000));
        assert_eq!(microseconds_of("1970-01-01 00:00:00.0000001"), None);
        assert_eq!(nanoseconds_of_day("00:00:01.0000001"), Some(1_000_000_100));
        for wrong in ["", "24:00:00", "1:2", "aa:00:00", "00:00:00.+1"] {
            assert_eq!(nanoseconds_of_day(wrong), None, "{wrong}");
        }
        let bytes = guid_of("01020304-0506-0708-090A-0B0C0D0E0F10").unwrap();
        assert!(bytes.iter().copied().eq(1..=16));
        assert_eq!(guid_of("+1020304-0506-0708-090A-0B0C0D0E0F10"), None);
    }
}
