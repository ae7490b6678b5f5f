//! Dates and times as text, in the form that SQLite and ISO 8601 share.

/// Days of the calendar: 0001-01-01 to 9999-12-31.
const DAYS: u32 = 3_652_059;

/// Maximum scale of a time; no type stores nanoseconds.
const SCALE_MAX: u8 = 7;

/// A day, counted from 0001-01-01.
pub(super) fn date_text(days: u32) -> Result<String, String> {
    if days >= DAYS {
        return Err(format!("a date {days} days from the year 1"));
    }
    let (year, month, day) = civil(days);
    Ok(format!("{year:04}-{month:02}-{day:02}"))
}

/// A time of day in units of 10^-scale seconds.
pub(super) fn time_text(units: u64, scale: u8) -> Result<String, String> {
    let scale = scale.min(SCALE_MAX);
    let unit = 10_u64.pow(scale.into());
    let (seconds, fraction) = (units / unit, units % unit);
    if seconds >= 86_400 {
        return Err(format!("a time of {seconds} seconds"));
    }
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let whole = format!("{hour:02}:{minute:02}:{second:02}");
    if scale == 0 {
        return Ok(whole);
    }
    let width = usize::from(scale);
    Ok(format!("{whole}.{fraction:0width$}"))
}

/// A date and time.
pub(super) fn datetime2_text(days: u32, units: u64, scale: u8) -> Result<String, String> {
    Ok(format!("{} {}", date_text(days)?, time_text(units, scale)?))
}

/// A moment stored as UTC, in its own time zone.
pub(super) fn offset_text(
    days: u32,
    units: u64,
    scale: u8,
    minutes: i16,
) -> Result<String, String> {
    let scale = scale.min(SCALE_MAX);
    let day = 86_400 * 10_i64.pow(scale.into());
    let shift = i64::from(minutes) * 60 * 10_i64.pow(scale.into());
    if units >= day.cast_unsigned() || minutes.unsigned_abs() > 14 * 60 {
        return Err(format!(
            "a time of {units} units, {minutes} minutes from UTC"
        ));
    }
    let local = units.cast_signed() + shift;
    let days = i64::from(days) + local.div_euclid(day);
    let days = u32::try_from(days).map_err(|_| "a date before the year 1".to_owned())?;
    let text = datetime2_text(days, local.rem_euclid(day).cast_unsigned(), scale)?;
    let sign = if minutes < 0 { '-' } else { '+' };
    let minutes = minutes.unsigned_abs();
    Ok(format!(
        "{text} {sign}{:02}:{:02}",
        minutes / 60,
        minutes % 60
    ))
}

/// Year, month and day of a day counted from 0001-01-01.
fn civil(days: u32) -> (u32, u32, u32) {
    // Counted from 0000-03-01, so that the leap day is the last day of the year.
    let days = days + 306;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    (era * 400 + year_of_era + u32::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (days, text) in [
            (0, "0001-01-01"),
            (58, "0001-02-28"),
            (59, "0001-03-01"),
            (693_595, "1900-01-01"),
            (730_178, "2000-02-29"),
            (3_652_058, "9999-12-31"),
        ] {
            assert_eq!(date_text(days).unwrap(), text);
        }
        assert!(date_text(DAYS).is_err());
    }

    #[test]
    fn an_offset_moves_the_day() {
        let text = offset_text(693_595, 0, 0, -90).unwrap();
        assert_eq!(text, "1899-12-31 22:30:00 -01:30");
        let text = offset_text(693_595, 36_000_000_000, 7, 330).unwrap();
        assert_eq!(text, "1900-01-01 06:30:00.0000000 +05:30");
    }
}
