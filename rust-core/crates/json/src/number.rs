/// Returns where the number that begins at `start` ends, if it follows the grammar of RFC 8259 section 6.
pub(crate) fn number_end(bytes: &[u8], start: usize) -> Option<usize> {
    let byte = |at: usize| bytes.get(at).copied();
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let integer = if byte(start) == Some(b'-') {
        start + 1
    } else {
        start
    };
    let mut at = match byte(integer) {
        Some(b'0') => integer + 1,
        Some(b'1'..=b'9') => digits(integer + 1),
        _ => return None,
    };
    if byte(at) == Some(b'.') {
        let end = digits(at + 1);
        if end == at + 1 {
            return None;
        }
        at = end;
    }
    if matches!(byte(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(byte(at + 1), Some(b'+' | b'-')));
        let end = digits(at + 1 + sign);
        if end == at + 1 + sign {
            return None;
        }
        at = end;
    }
    Some(at)
}
