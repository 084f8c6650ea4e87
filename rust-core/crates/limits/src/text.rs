//! Numbers and times in header values.

/// The largest integer of a structured field (RFC 9651 section 3.3.1).
const MAX_INTEGER: u64 = 999_999_999_999_999;

pub(crate) fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends an integer of a structured field, limited to 15 digits.
pub(crate) fn push_integer(out: &mut Vec<u8>, number: u64) {
    push_number(out, number.min(MAX_INTEGER));
}

/// Appends a duration in OpenAI's form: `59s`, `6m0s`, `1h0m0s`.
pub(crate) fn push_seconds(out: &mut Vec<u8>, seconds: u64) {
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    if hours > 0 {
        push_number(out, hours);
        out.push(b'h');
    }
    if hours > 0 || minutes > 0 {
        push_number(out, minutes);
        out.push(b'm');
    }
    push_number(out, seconds % 60);
    out.push(b's');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_written_as_openai_does() {
        for (seconds, expected) in [
            (0, "0s"),
            (59, "59s"),
            (60, "1m0s"),
            (360, "6m0s"),
            (3600, "1h0m0s"),
            (86_399, "23h59m59s"),
        ] {
            let mut text = Vec::new();
            push_seconds(&mut text, seconds);
            assert_eq!(text, expected.as_bytes());
        }
    }
}
