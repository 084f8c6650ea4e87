//! Calendar days in a configuration.

use proofgate_calendar::{Date, SECONDS_PER_DAY};
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Deserializes a day such as `2026-01-31` to the unix second at which it begins in UTC.
pub(crate) fn deserialize_date<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let text = String::deserialize(deserializer)?;
    Date::parse(&text)
        .map(|date| date.day_number() * SECONDS_PER_DAY)
        .ok_or_else(|| D::Error::custom("expected a day such as 2026-01-31, not before 1970"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    fn read(text: &str) -> Result<u64, Error> {
        let deserializer: StrDeserializer<'_, Error> = text.into_deserializer();
        deserialize_date(deserializer)
    }

    #[test]
    fn a_day_begins_at_midnight_in_utc() {
        assert_eq!(read("2026-01-31"), Ok(1_769_817_600));
    }

    #[test]
    fn a_text_that_is_not_a_day_is_refused() {
        let error = read("2026-02-29").unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected a day such as 2026-01-31, not before 1970"
        );
    }
}
