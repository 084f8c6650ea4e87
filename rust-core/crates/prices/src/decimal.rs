//! Decimal numbers in configurations.

/// The maximum amount: ten billion dollars, in nanodollars.
const MAX_NANODOLLARS: u64 = 10_000_000_000 * 1_000_000_000;

/// The error returned for text that is not a valid amount of dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// The text has characters other than digits with one decimal point between two of them.
    #[error("is not a decimal number such as 0.15")]
    Malformed,
    /// There are more decimal places than can be kept exactly.
    #[error("has more than {0} decimal places")]
    TooPrecise(u32),
    /// The number is larger than the maximum price.
    #[error("is larger than the maximum price")]
    TooLarge,
}

/// Parses a decimal number and returns it times 10^`places`, at most `most`.
pub(crate) fn parse_scaled(text: &str, places: u32, most: u64) -> Result<u64, DecimalError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(DecimalError::Malformed);
    }
    let fraction = fraction.trim_end_matches('0');
    let written = u32::try_from(fraction.len()).unwrap_or(u32::MAX);
    let missing = places
        .checked_sub(written)
        .ok_or(DecimalError::TooPrecise(places))?;
    let mut number = 0u64;
    for byte in whole.bytes().chain(fraction.bytes()) {
        number = number
            .checked_mul(10)
            .and_then(|number| number.checked_add(u64::from(byte - b'0')))
            .ok_or(DecimalError::TooLarge)?;
    }
    let scaled = 10u64
        .checked_pow(missing)
        .and_then(|power| number.checked_mul(power))
        .ok_or(DecimalError::TooLarge)?;
    if scaled > most {
        return Err(DecimalError::TooLarge);
    }
    Ok(scaled)
}

/// Converts an amount of dollars to nanodollars exactly.
///
/// # Errors
/// Returns [`DecimalError`] if the text is not a decimal number, has more than nine decimal places, or is more than ten
/// billion dollars.
pub fn nanodollars(text: &str) -> Result<u64, DecimalError> {
    parse_scaled(text, 9, MAX_NANODOLLARS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decimal_is_exact_or_refused() {
        for (text, expected) in [
            ("0", Ok(0)),
            ("2.50", Ok(2_500_000)),
            ("0.000001", Ok(1)),
            ("0.0000010", Ok(1)),
            ("007", Ok(7_000_000)),
            ("0.0000001", Err(DecimalError::TooPrecise(6))),
            ("", Err(DecimalError::Malformed)),
            (".5", Err(DecimalError::Malformed)),
            ("5.", Err(DecimalError::Malformed)),
            ("1e3", Err(DecimalError::Malformed)),
            ("-1", Err(DecimalError::Malformed)),
            ("1.2.3", Err(DecimalError::Malformed)),
            ("1001", Err(DecimalError::TooLarge)),
            ("99999999999999999999", Err(DecimalError::TooLarge)),
        ] {
            assert_eq!(parse_scaled(text, 6, 1_000_000_000), expected, "{text}");
        }
    }
}
