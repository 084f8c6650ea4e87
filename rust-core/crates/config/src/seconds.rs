//! Durations in the document: numbers of seconds, with fractions.

use std::time::Duration;

use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// The maximum duration: more than 30 years.
const MAX_SECONDS: f64 = 1e9;

/// Deserializes a number of seconds; 0 is allowed.
pub(crate) fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    duration(f64::deserialize(deserializer)?)
}

/// Deserializes a number of seconds; `None` for null and 0.
pub(crate) fn optional_seconds<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let seconds = Option::<f64>::deserialize(deserializer)?;
    let duration = seconds.map(duration).transpose()?;
    Ok(duration.filter(|duration| !duration.is_zero()))
}

fn duration<E: Error>(seconds: f64) -> Result<Duration, E> {
    if !(0.0..=MAX_SECONDS).contains(&seconds) {
        return Err(E::custom("expected a number of seconds that is not negative"));
    }
    Duration::try_from_secs_f64(seconds).map_err(E::custom)
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, F64Deserializer};

    use super::*;

    fn read(number: f64) -> Result<Duration, Error> {
        let deserializer: F64Deserializer<Error> = number.into_deserializer();
        seconds(deserializer)
    }

    #[test]
    fn seconds_are_read_with_their_fractions() {
        assert_eq!(read(0.02), Ok(Duration::from_millis(20)));
        assert_eq!(read(86_400.0), Ok(Duration::from_secs(86_400)));
        assert_eq!(read(0.0), Ok(Duration::ZERO));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for number in [-0.001, 1e10, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert!(read(number).is_err(), "{number}");
        }
    }

    #[test]
    fn nothing_and_zero_are_no_duration() {
        for text in ["null", "0", "0.0"] {
            let mut json = serde_json::Deserializer::from_str(text);
            assert_eq!(optional_seconds(&mut json).unwrap(), None, "{text}");
        }
        let mut json = serde_json::Deserializer::from_str("1.5");
        let read = optional_seconds(&mut json).unwrap();
        assert_eq!(read, Some(Duration::from_millis(1500)));
    }
}
