//! Calendar days in a configuration.

use serde::de::Error;
use serde::{Deserialize, Deserializer};

const DAY_SECONDS: u64 = 86_400;
/// Days from 1 March of the year 0 to 1 January 1970.
const EPOCH: u64 = 719_468;

/// Deserializes a day such as `2026-01-31` to the unix second at which it begins in UTC.
pub(crate) fn midnight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse(&text).ok_or_else(|| D::Error::custom("expected a day such as 2026-01-31, not before 1970"))
}

fn parse(text: &str) -> Option<u64> {
    let bytes = text.as_bytes();
    let &[_, _, _, _, b'-', _, _, b'-', _, _] = bytes else {
        return None;
    };
    let (year, month, day) = (number(&bytes[..4])?, number(&bytes[5..7])?, number(&bytes[8..])?);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        _ => return None,
    };
    if !(1..=length).contains(&day) {
        return None;
    }
    // With years that start in March, the leap day is the last day of the year.
    let (year, month) = match month {
        1 | 2 => (year.checked_sub(1)?, month + 9),
        _ => (year, month - 3),
    };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    Some(days.checked_sub(EPOCH)? * DAY_SECONDS)
}

fn number(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0, |number, digit| {
        digit
            .is_ascii_digit()
            .then(|| number * 10 + u64::from(digit - b'0'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_at_midnight() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("1970-03-01", 59 * DAY_SECONDS),
            ("2000-02-29", 951_782_400),
            ("2024-12-31", 1_735_603_200),
            ("2026-01-31", 1_769_817_600),
        ] {
            assert_eq!(parse(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_day_is_refused() {
        for text in [
            "",
            "1969-12-31",
            "2026-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "2026-1-1",
            "2026-01-01T",
            "+026-01-01",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
