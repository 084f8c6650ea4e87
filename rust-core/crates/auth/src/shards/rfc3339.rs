/// A date of RFC 3339 (section 5.6) as seconds since 1970, a fraction cut off; `None` for anything else, a leap second
/// and what was before 1970.
pub(super) fn unix_seconds(text: &str) -> Option<u64> {
    let (date, rest) = text.split_at_checked(10)?;
    let (time, rest) = rest.strip_prefix(['T', 't'])?.split_at_checked(8)?;
    let (zone, fraction) = match rest.strip_prefix('.') {
        None => (rest, None),
        Some(rest) => {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            (&rest[digits..], Some(digits))
        }
    };
    if fraction == Some(0) {
        return None;
    }
    let [year, month, day] = numbers(date, b"dddd-dd-dd", [0..4, 5..7, 8..10])?;
    let [hour, minute, second] = numbers(time, b"dd:dd:dd", [0..2, 3..5, 6..8])?;
    let in_range = (1..=12).contains(&month)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second < 60;
    if !in_range {
        return None;
    }
    let local = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    u64::try_from(local - offset(zone)?).ok()
}

/// Seconds by which a zone is ahead of UTC.
fn offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match zone.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let [hours, minutes] = numbers(&zone[1..], b"dd:dd", [0..2, 3..5])?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// The numbers that stand at `places` of a text that looks as `shape` does: `d` is a digit, all else itself.
fn numbers<const N: usize>(
    text: &str,
    shape: &[u8],
    places: [std::ops::Range<usize>; N],
) -> Option<[i64; N]> {
    let fits = |(byte, shape): (u8, &u8)| match shape {
        b'd' => byte.is_ascii_digit(),
        other => byte == *other,
    };
    if text.len() != shape.len() || !text.bytes().zip(shape).all(fits) {
        return None;
    }
    let mut numbers = [0; N];
    for (number, place) in numbers.iter_mut().zip(places) {
        *number = text[place].parse().ok()?;
    }
    Some(numbers)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970 to a date.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // The days of whole years before this one, and of the leap days in them.
    let before = year - 1;
    let years = 365 * (year - 1970) + (before / 4 - before / 100 + before / 400) - 477;
    let months: i64 = (1..month).map(|month| days_in(year, month)).sum();
    years + months + day - 1
}

#[cfg(test)]
mod tests {
    use super::unix_seconds;

    #[test]
    fn a_date_is_read_in_every_form_that_the_rfc_has() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2027-01-31T00:00:00Z", 1_801_353_600),
            ("2027-01-31t01:30:00.999+01:30", 1_801_353_600),
            ("2027-01-30T22:00:00-02:00", 1_801_353_600),
            ("2000-02-29T12:00:00z", 951_825_600),
            ("2024-12-31T23:59:59Z", 1_735_689_599),
            ("2100-03-01T00:00:00Z", 4_107_542_400),
        ] {
            assert_eq!(unix_seconds(text), Some(seconds), "{text}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "2027-01-31",
            "2027-01-31T00:00:00",
            "2027-02-29T00:00:00Z",
            "2100-02-29T00:00:00Z",
            "2027-13-01T00:00:00Z",
            "2027-00-01T00:00:00Z",
            "2027-01-31T24:00:00Z",
            "2027-01-31T00:00:60Z",
            "2027-01-31T00:00:00.Z",
            "2027-01-31T00:00:00+1:00",
            "2027-01-31T00:00:00+24:00",
            "+027-01-31T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2027-01-31T00:00:00Zé",
            "2027-01-3é",
        ] {
            assert_eq!(unix_seconds(text), None, "{text}");
        }
    }
}
