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
    let text = String::from_utf8_lossy(&input[..head]).to_ascii_lowercase();
    let body = if text.contains("\r\ntransfer-encoding: chunked") {
        memmem::find(&input[head..], b"0\r\n\r\n")? + 5
    } else {
        text.lines()
            .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok())
            .unwrap_or(0)
    };
    let body = input.get(head..head + body)?;
    let stream = memmem::find(body, b"\"stream\":true").or_else(|| memmem::find(body, b"\"stream\": true"));
    Some(Request {
        length: head + body.len(),
        stream: stream.is_some(),
    })
}
