//! Writing JSON.

/// Appends a string, quoted and escaped.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    // Writing into memory does not fail, and a string is always JSON.
    let _ = serde_json::to_writer(out, text);
}

/// Appends a whole number.
pub(crate) fn write_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}
