//! UTC days and months, counted from January 1970.

/// Days in 400 years of the Gregorian calendar, and in the years from 0000-03-01 to 1970-01-01.
const DAYS_PER_ERA: u64 = 146_097;
const DAYS_BEFORE_1970: u64 = 719_468;

/// Returns the month of a day, in months since January 1970. For the calculation a year begins in March, so that the leap
/// day is its last day (Hinnant, "chrono-Compatible Low-Level Date Algorithms").
#[inline]
pub(crate) fn month_of(day: u64) -> u64 {
    let day = day.saturating_add(DAYS_BEFORE_1970);
    let (era, day_of_era) = (day / DAYS_PER_ERA, day % DAYS_PER_ERA);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / (DAYS_PER_ERA - 1)) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months_from_march = (5 * day_of_year + 2) / 153;
    let months = (era * 400 + year_of_era) * 12 + months_from_march;
    // March of year 0 is 1970 years less two months before January 1970.
    months.saturating_sub(1970 * 12 - 2)
}

/// Returns the first day of a month.
pub(crate) fn first_day_of(month: u64) -> u64 {
    // Start from a lower bound (years of 365 days, months of 28) and advance a few steps.
    let mut day = month / 12 * 365 + month % 12 * 28;
    while month_of(day) < month {
        day += 28;
    }
    while day > 0 && month_of(day - 1) >= month {
        day -= 1;
    }
    day
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_those_of_the_calendar() {
        let leap =
            |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let (mut day, mut month) = (0, 0);
        for year in 1970..2500 {
            let february = if leap(year) { 29 } else { 28 };
            for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
                assert_eq!(first_day_of(month), day, "{year}, month {month}");
                for _ in 0..length {
                    assert_eq!(month_of(day), month, "day {day}");
                    day += 1;
                }
                month += 1;
            }
        }
    }
}
