//! The `tracestate` of other vendors, which is only checked for its syntax (section 3.3 of W3C's Trace Context).

use proofgate_wire::Headers;

/// Maximum length in bytes. A longer value is not propagated.
const MAX_BYTES: usize = 512;
/// Maximum number of list members.
const MAX_MEMBERS: usize = 32;

/// Returns the `tracestate` of a request head unchanged, with several fields joined; `None` if it
/// is absent or invalid.
pub(super) fn from_headers(headers: &Headers<'_>) -> Option<Box<[u8]>> {
    let mut state = Vec::new();
    for (name, value) in headers.iter() {
        if name.eq_ignore_ascii_case("tracestate") {
            if !state.is_empty() {
                state.push(b',');
            }
            if state.len() + value.len() > MAX_BYTES {
                return None;
            }
            state.extend_from_slice(value);
        }
    }
    is_list(&state).then(|| state.into())
}

fn is_list(state: &[u8]) -> bool {
    let mut keys = [&b""[..]; MAX_MEMBERS];
    let mut count = 0;
    // A member may be empty.
    let members = state.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    for member in members.filter(|member| !member.is_empty()) {
        let Some(at) = member.iter().position(|byte| *byte == b'=') else {
            return false;
        };
        let (key, value) = (&member[..at], &member[at + 1..]);
        if !is_key(key) || !is_value(value) || keys[..count].contains(&key) || count == MAX_MEMBERS {
            return false;
        }
        keys[count] = key;
        count += 1;
    }
    count > 0
}

fn is_key(key: &[u8]) -> bool {
    let is_begin = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    key.len() <= 256
        && key.first().is_some_and(is_begin)
        && key.iter().all(|byte| is_begin(byte) || b"_-*/@".contains(byte))
}

fn is_value(value: &[u8]) -> bool {
    // The list was split at commas, and trailing spaces are not part of a value.
    (1..=256).contains(&value.len())
        && value
            .iter()
            .all(|byte| (b' '..=b'~').contains(byte) && *byte != b'=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_keys_and_values_are_well_formed() {
        let long = format!("{}={}", "k".repeat(256), "v".repeat(255));
        for state in [
            "congo=t61rcWkgMzE",
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
            "a=1 , b=2\t,,c=3",
            "1a=x y",
            "tenant@system=1",
            "a_b-c*d/e=1",
            &long,
        ] {
            assert!(is_list(state.as_bytes()), "{state}");
        }
    }

    #[test]
    fn what_is_no_such_list_is_not_passed_on() {
        let many = (0..33)
            .map(|member| format!("k{member}=1"))
            .collect::<Vec<_>>()
            .join(",");
        let long_key = format!("{}=1", "k".repeat(257));
        for state in [
            "", ",", " ", "a", "=1", "a=", "A=1", "_a=1", "a=1,a=2", "a=b=c", "a b=1", "a=\u{7f}",
            "\u{e4}=1", &many, &long_key,
        ] {
            assert!(!is_list(state.as_bytes()), "{state}");
        }
    }
}
