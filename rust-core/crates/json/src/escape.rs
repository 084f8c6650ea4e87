//! Decodes the escapes of strings.

use crate::error::JsonError;

/// Why an escape is invalid.
pub(crate) enum EscapeError {
    UnexpectedEnd,
    Invalid,
    LoneSurrogate,
}

impl EscapeError {
    pub(crate) fn into_json_error(self, at: usize, length: usize) -> JsonError {
        match self {
            EscapeError::UnexpectedEnd => JsonError::UnexpectedEnd { at: length },
            EscapeError::Invalid => JsonError::InvalidEscape { at },
            EscapeError::LoneSurrogate => JsonError::LoneSurrogate { at },
        }
    }
}

/// Decodes the escape, or the surrogate pair, at the beginning of `bytes`; returns its character and its length.
pub(crate) fn read_escape(bytes: &[u8]) -> Result<(char, usize), EscapeError> {
    let decoded = match bytes.get(1).ok_or(EscapeError::UnexpectedEnd)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return read_code_units(bytes),
        _ => return Err(EscapeError::Invalid),
    };
    Ok((decoded, 2))
}

fn read_code_units(bytes: &[u8]) -> Result<(char, usize), EscapeError> {
    let first = read_code_unit(bytes)?;
    if let Some(decoded) = char::from_u32(first) {
        return Ok((decoded, 6));
    }
    if first >= 0xdc00 {
        return Err(EscapeError::LoneSurrogate);
    }
    let second = match bytes.get(6..) {
        Some([b'\\', b'u', ..]) => read_code_unit(&bytes[6..])?,
        Some([] | [b'\\']) => return Err(EscapeError::UnexpectedEnd),
        _ => return Err(EscapeError::LoneSurrogate),
    };
    if !(0xdc00..0xe000).contains(&second) {
        return Err(EscapeError::LoneSurrogate);
    }
    let point = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
    char::from_u32(point)
        .map(|decoded| (decoded, 12))
        .ok_or(EscapeError::LoneSurrogate)
}

/// Returns the UTF-16 code unit of `\uXXXX` at the beginning of `bytes`.
fn read_code_unit(bytes: &[u8]) -> Result<u32, EscapeError> {
    let digits = bytes.get(2..).unwrap_or_default();
    let mut unit = 0;
    for index in 0..4 {
        let digit = *digits.get(index).ok_or(EscapeError::UnexpectedEnd)?;
        unit = unit << 4 | char::from(digit).to_digit(16).ok_or(EscapeError::Invalid)?;
    }
    Ok(unit)
}
