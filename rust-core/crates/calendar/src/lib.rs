//! UTC days, months and dates, counted from 1970-01-01.
//!
//! Limits need the month of a day, the log and AWS signatures need its date, and prices need the
//! day of a date. All algorithms are from H. Hinnant, "chrono-Compatible Low-Level Date Algorithms"
//! (howardhinnant.github.io/date_algorithms.html). They use years that start in March, so that the
//! leap day is the last day of a year.

/// Seconds in a day. UTC days here have no leap seconds, as in POSIX.
pub const SECONDS_PER_DAY: u64 = 86_400;

/// Days in 400 years of the Gregorian calendar, and in the years from 0000-03-01 to 1970-01-01.
const DAYS_PER_ERA: u64 = 146_097;
const DAYS_BEFORE_1970: u64 = 719_468;

/// A day of the Gregorian calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Date {
    /// The year, at least 1970.
    pub year: u64,
    /// The month, 1 to 12.
    pub month: u64,
    /// The day of the month, 1 to 31.
    pub day: u64,
}

impl Date {
    /// Returns the date of a day, in days since 1970-01-01.
    #[must_use]
    pub fn from_day_number(day: u64) -> Self {
        let (year, month, day_of_year) = march_based(day);
        let day = day_of_year - (153 * month + 2) / 5 + 1;
        let (year, month) = if month < 10 {
            (year, month + 3)
        } else {
            (year + 1, month - 9)
        };
        Self { year, month, day }
    }

    /// Parses a date such as `2026-01-31`. Returns `None` if the text is not a date, or a date before 1970.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let &[a, b, c, d, b'-', e, f, b'-', g, h] = text.as_bytes() else {
            return None;
        };
        let date = Self {
            year: number(&[a, b, c, d])?,
            month: number(&[e, f])?,
            day: number(&[g, h])?,
        };
        let length = match date.month {
            2 if is_leap(date.year) => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            _ => return None,
        };
        (date.year >= 1970 && (1..=length).contains(&date.day)).then_some(date)
    }

    /// Returns the days from 1970-01-01 to this date; 0 for an earlier one.
    #[must_use]
    pub fn day_number(self) -> u64 {
        let (year, month) = match self.month {
            1 | 2 => (self.year.saturating_sub(1), self.month + 9),
            _ => (self.year, self.month.saturating_sub(3)),
        };
        let days = year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + self.day;
        days.saturating_sub(DAYS_BEFORE_1970 + 1)
    }
}

/// Returns the month of a day, in months since January 1970.
#[inline]
#[must_use]
pub fn month_of(day: u64) -> u64 {
    let (year, month, _) = march_based(day);
    // March of year 0 is 1970 years minus two months before January 1970.
    (year * 12 + month).saturating_sub(1970 * 12 - 2)
}

/// Returns the first day of a month, both counted from January 1970.
#[must_use]
pub fn first_day_of(month: u64) -> u64 {
    let date = Date {
        year: 1970 + month / 12,
        month: month % 12 + 1,
        day: 1,
    };
    date.day_number()
}

/// Returns the year, the month (0 is March), and the day of the year (0 is 1 March), where years begin in March.
#[inline]
fn march_based(day: u64) -> (u64, u64, u64) {
    let day = day.saturating_add(DAYS_BEFORE_1970);
    let (era, day_of_era) = (day / DAYS_PER_ERA, day % DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / (DAYS_PER_ERA - 1)) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    (era * 400 + year_of_era, (5 * day_of_year + 2) / 153, day_of_year)
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
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
    fn days_months_and_dates_are_those_of_the_calendar() {
        let (mut number, mut months) = (0, 0);
        for year in 1970..2500 {
            let february = if is_leap(year) { 29 } else { 28 };
            let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
            for (month, length) in (1..).zip(lengths) {
                assert_eq!(first_day_of(months), number, "{year}-{month}");
                for day in 1..=length {
                    let date = Date { year, month, day };
                    assert_eq!(Date::from_day_number(number), date);
                    assert_eq!(date.day_number(), number);
                    assert_eq!(Date::parse(&format!("{year}-{month:02}-{day:02}")), Some(date));
                    assert_eq!(month_of(number), months, "{date:?}");
                    number += 1;
                }
                assert_eq!(Date::parse(&format!("{year}-{month:02}-{:02}", length + 1)), None);
                months += 1;
            }
        }
    }

    #[test]
    fn known_days_have_their_dates() {
        for (text, seconds) in [
            ("1970-01-01", 0),
            ("1970-03-01", 59 * SECONDS_PER_DAY),
            ("2000-02-29", 951_782_400),
            ("2024-12-31", 1_735_603_200),
            ("2026-01-31", 1_769_817_600),
            ("9999-12-31", 253_402_214_400),
        ] {
            let date = Date::parse(text).unwrap();
            assert_eq!(date.day_number() * SECONDS_PER_DAY, seconds, "{text}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_date_since_1970_is_refused() {
        for text in [
            "",
            "1969-12-31",
            "0000-02-29",
            "2026-02-29",
            "2100-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "2026-1-1",
            "2026-01-01T",
            "+026-01-01",
            "2026/01/01",
        ] {
            assert_eq!(Date::parse(text), None, "{text}");
        }
    }

    #[test]
    fn days_near_the_end_of_the_range_do_not_overflow() {
        assert!(month_of(u64::MAX / 2) > month_of(1 << 40));
        assert!(Date::from_day_number(u64::MAX / SECONDS_PER_DAY).year > 1970);
    }
}
