//! Requests as the upstream reads them. It trusts whoever sends them: they come from a gateway under test.

use memchr::memmem;

/// One complete request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes that it takes in the input.
    pub length: usize,
    /// Whether its body asks for a stream.
    pub stream: bool,
}

/// Reads the first request in `input`; none while it is not complete.
#[must_use]
pub fn read(input: &[u8]) -> Option<Request> {
    let head = memmem::find(input, b"\r\n\r\n")? + 4;
    let mut body = 0;
    for line in input[..head].split(|byte| *byte == b'\n') {
        if value(line, b"transfer-encoding:").is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")) {
            body = memmem::find(&input[head..], b"0\r\n\r\n")? + 5;
        } else if let Some(length) = value(line, b"content-length:") {
            body = str::from_utf8(length).ok()?.parse().ok()?;
        }
    }
    let body = input.get(head..head + body)?;
    let stream = memmem::find(body, b"\"stream\":true").or_else(|| memmem::find(body, b"\"stream\": true"));
    Some(Request {
        length: head + body.len(),
        stream: stream.is_some(),
    })
}

/// The value of a field whose name, with its colon, is `name`.
fn value<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (field, value) = line.split_at_checked(name.len())?;
    field.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}
