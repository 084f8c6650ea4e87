//! Amounts of money in a configuration, which are exact because dollars are decimal text.

use std::num::NonZeroU64;

use proofgate_prices::nanodollars as exact;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

/// Deserializes dollars as text, such as `25.50`, to nanodollars; `None` for null.
pub(crate) fn nanodollars<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<NonZeroU64>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else {
        return Ok(None);
    };
    let amount = exact(&text).map_err(D::Error::custom)?;
    let nothing = || D::Error::custom("a limit must be greater than 0 dollars");
    NonZeroU64::new(amount).map(Some).ok_or_else(nothing)
}

#[cfg(test)]
mod tests {
    use crate::{Limits, ModelBudget};

    fn read(amount: &str) -> Option<u64> {
        let json = format!(r#"{{"dollarsPerDay": {amount}}}"#);
        let limits: Limits = serde_json::from_str(&json).ok()?;
        limits.nanodollars_per_day.map(Into::into)
    }

    #[test]
    fn dollars_are_exact() {
        assert_eq!(read(r#""25.50""#), Some(25_500_000_000));
        assert_eq!(read(r#""0.000000001""#), Some(1));
        assert_eq!(read(r#""999999999.999999999""#), Some(999_999_999_999_999_999));
        assert_eq!(read("null"), None);
    }

    #[test]
    fn what_is_no_exact_amount_is_refused() {
        for amount in [
            r#""0""#,
            r#""-1""#,
            r#""1e3""#,
            r#""0.0000000001""#,
            r#""99999999999""#,
            "25",
            "1.5",
        ] {
            let json = format!(r#"{{"dollarsPerDay": {amount}}}"#);
            assert!(serde_json::from_str::<Limits>(&json).is_err(), "{amount}");
            let json = format!(r#"{{"model": "m", "dollarsPerMonth": {amount}}}"#);
            assert!(serde_json::from_str::<ModelBudget>(&json).is_err(), "{amount}");
        }
    }
}
