//! The byte classes of RFC 9110 section 5.6 that several modules use.

/// Returns whether a byte is a `tchar` (RFC 9110 section 5.6.2).
pub(crate) fn is_tchar(byte: u8) -> bool {
    TCHAR[usize::from(byte)]
}

const TCHAR: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut others: &[u8] = b"!#$%&'*+-.^_`|~";
    while let [byte, rest @ ..] = others {
        table[*byte as usize] = true;
        others = rest;
    }
    table
};

/// Returns whether a text is a non-empty run of `tchar`.
pub(crate) fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().fold(true, |all, &byte| all & is_tchar(byte))
}

/// Returns whether a byte is forbidden in a head outside a line end. All control bytes except HTAB
/// are forbidden.
pub(crate) fn is_control(byte: u8) -> bool {
    (byte < 0x20 && byte != b'\t') || byte == 0x7f
}

/// Returns whether a text contains a control byte ([`is_control`]). The loop has no early exit, so
/// that it compiles to vector code.
pub(crate) fn has_control(text: &[u8]) -> bool {
    text.iter().fold(false, |found, &byte| found | is_control(byte))
}

/// Returns `value` without surrounding OWS, which is spaces and tabs (RFC 9110 section 5.6.3).
pub(crate) fn trim_ows(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}
