//! What a relay has to know of the events of a stream: where each ends, which one ends the answer, and which one only
//! brings its usage.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::usage::Usage;

/// Finds the ends of server-sent events, however the stream is cut into pieces; keeps none of their bytes.
///
/// Lines end with LF, CRLF or CR; an empty line ends an event (WHATWG HTML, section 9.2.5 and 9.2.6).
#[derive(Debug)]
pub struct EventEnds {
    line_is_empty: bool,
    /// Whether the last byte was a CR: a LF behind it ends no line of its own.
    after_return: bool,
}

impl Default for EventEnds {
    fn default() -> Self {
        EventEnds {
            line_is_empty: true,
            after_return: false,
        }
    }
}

impl EventEnds {
    /// Looks at the next bytes of the stream and returns how many of them complete an event; `None`, and all of them
    /// are taken, when they complete none.
    pub fn next_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let Some(offset) = memchr::memchr2(b'\n', b'\r', &bytes[at..]) else {
                self.line_is_empty = false;
                self.after_return = false;
                return None;
            };
            let end = at + offset;
            let in_line = offset > 0;
            at = end + 1;
            if bytes[end] == b'\n' && !in_line && std::mem::take(&mut self.after_return) {
                continue;
            }
            let ends_event = self.line_is_empty && !in_line;
            self.line_is_empty = true;
            self.after_return = bytes[end] == b'\r';
            if ends_event {
                // The LF of a CRLF belongs to the same end, if it is there.
                if self.after_return && bytes.get(at) == Some(&b'\n') {
                    self.after_return = false;
                    at += 1;
                }
                return Some(at);
            }
        }
        None
    }
}

/// Whether an event of an OpenAI stream is the last one of its answer: its last line is `data: [DONE]`. The empty line
/// behind it may be missing.
///
/// Text inside an event is JSON, where a line break is escaped, so no model output can imitate it.
pub fn is_end_marker(event: &[u8]) -> bool {
    let text = event.trim_ascii_end();
    if !text.ends_with(b"[DONE]") {
        return false;
    }
    let begin = memchr::memrchr2(b'\n', b'\r', text).map_or(0, |end| end + 1);
    data_lines(&text[begin..]).any(|data| data == b"[DONE]")
}

/// Whether an event of an OpenAI stream brings nothing but the usage of the whole answer, as the one that
/// `stream_options.include_usage` adds: its `choices` are empty.
pub fn is_usage_alone(event: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Chunk {
        choices: Vec<IgnoredAny>,
        #[serde(rename = "usage")]
        _usage: Usage,
    }
    let mut lines = data_lines(event);
    let (Some(data), None) = (lines.next(), lines.next()) else {
        return false;
    };
    serde_json::from_slice::<Chunk>(data).is_ok_and(|chunk| chunk.choices.is_empty())
}

/// The values of an event's `data` lines.
fn data_lines(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = event.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.filter_map(|line| {
        let value = line.strip_prefix(b"data:")?;
        Some(value.strip_prefix(b" ").unwrap_or(value))
    })
}
