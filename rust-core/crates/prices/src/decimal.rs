//! Decimal numbers as they stand in configurations.

/// Why a text is no amount of dollars.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecimalError {
    /// Something else than digits, with a point between two of them.
    #[error("is not a decimal number such as 0.15")]
    Malformed,
    /// More decimal places than are exact.
    #[error("has more than {0} decimal places")]
    TooFine(u32),
    /// Larger than any price is.
    #[error("is larger than the maximum price")]
    TooLarge,
}

/// A decimal number times 10^`places`, at most `most`.
pub(crate) fn parse_scaled(text: &str, places: u32, most: u64) -> Result<u64, DecimalError> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return Err(DecimalError::Malformed);
    }
    let fraction = fraction.trim_end_matches('0');
    let written = u32::try_from(fraction.len()).unwrap_or(u32::MAX);
    let missing = places.checked_sub(written).ok_or(DecimalError::TooFine(places))?;
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
            ("0.0000001", Err(DecimalError::TooFine(6))),
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
