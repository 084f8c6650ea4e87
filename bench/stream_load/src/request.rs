//! Requests as the upstream reads them. It trusts whoever sends them: they come from a gateway under test.

use memchr::memmem;

use crate::events::Events;

/// One complete request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    /// Bytes that it takes in the input.
    pub length: usize,
    /// Whether its body asks for a stream.
    pub stream: bool,
    /// Whether it asks for a stream and has tools that the answer can call.
    pub calls_tools: bool,
    /// In whose dialect it is answered, by its path.
    pub events: Events,
}

/// Reads the first request in `input`; none while it is not complete.
#[must_use]
pub fn read(input: &[u8]) -> Option<Request> {
    let head = memmem::find(input, b"\r\n\r\n")? + 4;
    let mut lines = input[..head].split(|byte| *byte == b'\n');
    let is_messages = memmem::find(lines.next()?, b"/messages").is_some();
    let mut body = 0;
    for line in lines {
        if value(line, b"transfer-encoding:").is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked")) {
            body = memmem::find(&input[head..], b"0\r\n\r\n")? + 5;
        } else if let Some(length) = value(line, b"content-length:") {
            body = str::from_utf8(length).ok()?.parse().ok()?;
        }
    }
    let body = input.get(head..head + body)?;
    let stream = memmem::find(body, b"\"stream\":true").or_else(|| memmem::find(body, b"\"stream\": true"));
    let stream = stream.is_some();
    Some(Request {
        length: head + body.len(),
        stream,
        calls_tools: stream && memmem::find(body, b"\"tools\":").is_some(),
        events: if is_messages {
            Events::Anthropic
        } else {
            Events::OpenAi
        },
    })
}

/// The value of a field whose name, with its colon, is `name`.
fn value<'l>(line: &'l [u8], name: &[u8]) -> Option<&'l [u8]> {
    let (field, value) = line.split_at_checked(name.len())?;
    field.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}
