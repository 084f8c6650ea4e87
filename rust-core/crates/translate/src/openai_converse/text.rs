use std::borrow::Cow;

use serde::de::Deserialize;
use serde_json::value::RawValue;

use crate::Untranslatable;
pub(super) use crate::json::Text;

/// A value of the type that the API gives it. The parser's own message is not passed on, for it quotes.
pub(super) fn parse<'b, T: Deserialize<'b>>(
    value: &'b RawValue,
    param: impl FnOnce() -> String,
) -> Result<T, Untranslatable> {
    serde_json::from_str(value.get()).map_err(|_| wrong_type(param()))
}

/// A list, each item of the type that the API gives it.
pub(super) fn parse_list<'b, T: Deserialize<'b>>(
    value: &'b RawValue,
    param: impl Fn() -> String,
) -> Result<Vec<T>, Untranslatable> {
    serde_json::from_str(value.get()).map_err(|_| {
        let items: Vec<&RawValue> = serde_json::from_str(value.get()).unwrap_or_default();
        match items
            .iter()
            .position(|item| serde_json::from_str::<T>(item.get()).is_err())
        {
            Some(number) => wrong_type(format!("{}[{number}]", param())),
            None => wrong_type(param()),
        }
    })
}

pub(super) fn wrong_type(param: impl Into<Cow<'static, str>>) -> Untranslatable {
    Untranslatable::new(
        param,
        "The value, or one in it, is not of the type that it must have.",
    )
}

/// What stands between the quotes of a JSON string, its escapes as they are.
pub(super) fn inner(value: &RawValue) -> Option<&str> {
    value.get().strip_prefix('"')?.strip_suffix('"')
}

/// Whether the inner part of a JSON string is empty or nothing but white space.
pub(super) fn is_blank(inner: &str) -> bool {
    const ESCAPED_BLANKS: [&str; 8] = [
        "\\n", "\\r", "\\t", "\\f", "\\u0020", "\\u000a", "\\u0009", "\\u00a0",
    ];
    let mut rest = inner.trim_start();
    while let Some(behind) = ESCAPED_BLANKS.iter().find_map(|blank| rest.strip_prefix(blank)) {
        rest = behind.trim_start();
    }
    rest.is_empty()
}

/// Appends literal bytes and values between them.
pub(super) fn write_all(out: &mut Vec<u8>, parts: &[&str]) {
    for part in parts {
        out.extend_from_slice(part.as_bytes());
    }
}

/// A 64-bit hash that is the same everywhere. Source: G. Fowler, L. C. Noll, K.-P. Vo and D. Eastlake, FNV-1a.
pub(super) fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
