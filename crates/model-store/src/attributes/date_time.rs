//! Date-times as in RFC 3339, as microseconds since 1970 (UTC).
//!
//! A parser of our own: `humantime`, which writes times elsewhere, knows no offsets and no time
//! before 1970, and a calendar with time zones is not needed here. Days are counted as by Howard
//! Hinnant, "chrono-Compatible Low-Level Date Algorithms": years begin in March, so that the leap
//! day is the last.

const MICROS_PER_SECOND: i64 = 1_000_000;
const SECONDS_PER_DAY: i64 = 86_400;
/// Years that RFC 3339 can write.
const YEARS: std::ops::RangeInclusive<i64> = 0..=9999;
/// Digits of a fraction of a second that are kept.
const PLACES: usize = 6;

/// Reads a date-time of RFC 3339, such as `2026-05-01T14:00:00.25+02:00`, as microseconds since
/// 1970 (UTC). Digits after the sixth of a second are left out. A leap second, a date without a
/// time and a time without an offset are none.
///
/// ```
/// use model_store::attributes::{format_date_time, parse_date_time};
///
/// assert_eq!(parse_date_time("1970-01-01T01:00:00.5+01:00"), Some(500_000));
/// assert_eq!(parse_date_time("1970-01-01"), None);
/// assert_eq!(format_date_time(-1), "1969-12-31T23:59:59.999999Z");
/// ```
pub fn parse_date_time(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let has = |at: usize, signs: &[u8]| bytes.get(at).is_some_and(|sign| signs.contains(sign));
    let digits = |at: usize, count: usize| -> Option<i64> {
        let digits = bytes.get(at..at + count)?;
        let digit = |&byte: &u8| byte.is_ascii_digit().then(|| i64::from(byte - b'0'));
        digits.iter().try_fold(0, |number, byte| Some(10 * number + digit(byte)?))
    };
    let signs: [(usize, &[u8]); 5] = [(4, b"-"), (7, b"-"), (10, b"Tt "), (13, b":"), (16, b":")];
    if !signs.iter().all(|&(at, signs)| has(at, signs)) {
        return None;
    }
    let (year, month, day) = (digits(0, 4)?, digits(5, 2)?, digits(8, 2)?);
    let (hour, minute, second) = (digits(11, 2)?, digits(14, 2)?, digits(17, 2)?);
    let is_date = (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (mut at, mut micros) = (19, 0);
    if has(at, b".") {
        let fraction = &bytes[at + 1..];
        let length = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            return None;
        }
        for place in 0..PLACES {
            let digit = fraction[..length].get(place).map_or(0, |byte| i64::from(byte - b'0'));
            micros = 10 * micros + digit;
        }
        at += 1 + length;
    }
    let offset = match &bytes[at..] {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (digits(at + 1, 2)?, digits(at + 4, 2)?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let seconds = 60 * (60 * hours + minutes);
            if *sign == b'+' { seconds } else { -seconds }
        }
        _ => return None,
    };
    let time = 60 * (60 * hour + minute) + second;
    let seconds = days_before(year, month, day) * SECONDS_PER_DAY + time - offset;
    // An offset may lead out of the years that can be written.
    let micros = seconds * MICROS_PER_SECOND + micros;
    is_date_time(micros).then_some(micros)
}

/// Whether RFC 3339 can write the year.
pub fn is_date_time(micros: i64) -> bool {
    YEARS.contains(&date_of(micros.div_euclid(MICROS_PER_SECOND * SECONDS_PER_DAY)).0)
}

/// Writes microseconds since 1970 (UTC) as in RFC 3339, with `Z` and as many digits of a second as
/// it needs.
pub fn format_date_time(micros: i64) -> String {
    let (seconds, micros) =
        (micros.div_euclid(MICROS_PER_SECOND), micros.rem_euclid(MICROS_PER_SECOND));
    let (year, month, day) = date_of(seconds.div_euclid(SECONDS_PER_DAY));
    let time = seconds.rem_euclid(SECONDS_PER_DAY);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if micros > 0 {
        let fraction = format!(".{micros:06}");
        text += fraction.trim_end_matches('0');
    }
    text + "Z"
}

fn days_of_month(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days in 400 years, after which the calendar repeats.
const DAYS_OF_ERA: i64 = 146_097;
/// Days from the first of March of the year 0 to 1970.
const DAYS_TO_1970: i64 = 719_468;

/// Days from 1970 to a date.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * DAYS_OF_ERA + day_of_era - DAYS_TO_1970
}

/// Year, month and day of a day, counted from 1970.
fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    let (era, day) = (days.div_euclid(DAYS_OF_ERA), days.rem_euclid(DAYS_OF_ERA));
    let year = (day - day / 1460 + day / 36_524 - day / (DAYS_OF_ERA - 1)) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = year + era * 400;
    (if month <= 2 { year + 1 } else { year }, month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn moments_are_counted_from_1970_in_utc() {
        for (text, micros) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01t00:00:00.000001z", 1),
            ("1970-01-01 00:00:01.5Z", 1_500_000),
            ("1969-12-31T23:59:59.999999Z", -1),
            ("1970-01-01T00:00:00+00:01", -60_000_000),
            ("1970-01-01T00:00:00-23:59", 86_340_000_000),
            ("2000-02-29T12:00:00Z", 951_825_600_000_000),
            ("2026-11-26T10:17:09.1234567891Z", 1_795_688_229_123_456),
            ("0000-01-01T00:00:00Z", -62_167_219_200_000_000),
            ("9999-12-31T23:59:59.999999Z", 253_402_300_799_999_999),
        ] {
            assert_eq!(parse_date_time(text), Some(micros), "{text}");
        }
    }

    #[test]
    fn whatever_is_not_rfc_3339_is_refused() {
        for text in [
            "",
            "2026-05-01",
            "2026-05-01T12:00:00",
            "2026-05-01T12:00Z",
            "2026-05-01T12:00:00.Z",
            "2026-05-01T12:00:00,5Z",
            "2026-05-01T12:00:00+2:00",
            "2026-05-01T12:00:00+0200",
            "2026-05-01T12:00:00+24:00",
            "2026-05-01T12:00:00Z ",
            " 2026-05-01T12:00:00Z",
            "2026-05-01T24:00:00Z",
            "2026-05-01T12:60:00Z",
            "2016-12-31T23:59:60Z",
            "2026-13-01T12:00:00Z",
            "2026-00-01T12:00:00Z",
            "2026-04-31T12:00:00Z",
            "2026-02-29T12:00:00Z",
            "1900-02-29T12:00:00Z",
            "26-05-01T12:00:00Z",
            "+2026-05-01T12:00:00Z",
            "2026-05-01T12:00:00é",
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
        ] {
            assert_eq!(parse_date_time(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_moment_is_written_as_it_is_read(
            micros in -62_167_219_200_000_000_i64..=253_402_300_799_999_999,
        ) {
            prop_assert_eq!(parse_date_time(&format_date_time(micros)), Some(micros));
        }

        #[test]
        fn no_text_panics(text in "[0-9TZ:+.é -]{0,30}") {
            if let Some(micros) = parse_date_time(&text) {
                prop_assert_eq!(parse_date_time(&format_date_time(micros)), Some(micros));
            }
        }
    }
}
