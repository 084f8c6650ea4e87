//! Classifies the events of a stream for a relay: where each event ends, which one ends the response or reports a
//! failure, and which one only carries the usage.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::dialect::Dialect;

/// Finds the ends of server-sent events, however the stream is cut into pieces; buffers no bytes.
///
/// Lines end with LF, CRLF or CR; an empty line ends an event (WHATWG HTML, sections 9.2.5 and 9.2.6).
#[derive(Debug)]
pub struct EventBoundaries {
    line_is_empty: bool,
    /// Whether the last byte was a CR: a LF after it does not end another line.
    is_after_cr: bool,
}

impl Default for EventBoundaries {
    fn default() -> Self {
        EventBoundaries {
            line_is_empty: true,
            is_after_cr: false,
        }
    }
}

impl EventBoundaries {
    /// Reads the next bytes of the stream and returns how many of them complete an event. Returns `None` if they
    /// complete none; then all of them have been read.
    pub fn next_boundary(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            let Some(offset) = memchr::memchr2(b'\n', b'\r', &bytes[at..]) else {
                self.line_is_empty = false;
                self.is_after_cr = false;
                return None;
            };
            let end = at + offset;
            let in_line = offset > 0;
            at = end + 1;
            if bytes[end] == b'\n' && !in_line && std::mem::take(&mut self.is_after_cr) {
                continue;
            }
            let ends_event = self.line_is_empty && !in_line;
            self.line_is_empty = true;
            self.is_after_cr = bytes[end] == b'\r';
            if ends_event {
                // The LF of a CRLF belongs to the same line end, if it is present.
                if self.is_after_cr && bytes.get(at) == Some(&b'\n') {
                    self.is_after_cr = false;
                    at += 1;
                }
                return Some(at);
            }
        }
        None
    }
}

/// The role of an event in its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventMeaning {
    /// A part of the response.
    Part,
    /// Its successful end: the last event after generation succeeded.
    SuccessfulEnd,
    /// The provider reports a failure.
    Failure,
}

impl EventMeaning {
    /// Classifies an event of a stream in this dialect. The empty line after the event may be missing.
    ///
    /// Text inside an event is JSON with escaped quotes and line breaks, so model output cannot imitate another
    /// event.
    pub fn classify(dialect: Dialect, event: &[u8]) -> EventMeaning {
        match dialect {
            Dialect::Chat | Dialect::Completions => {
                if is_done(event) {
                    EventMeaning::SuccessfulEnd
                } else if has_error(event) {
                    EventMeaning::Failure
                } else {
                    EventMeaning::Part
                }
            }
            Dialect::Responses => meaning_by_type(event, &RESPONSE_END_TYPES, |kind| match kind {
                "response.completed" | "response.incomplete" => EventMeaning::SuccessfulEnd,
                "response.failed" | "error" => EventMeaning::Failure,
                _ => EventMeaning::Part,
            }),
            Dialect::Messages => meaning_by_type(event, &[b"message_stop", b"error"], |kind| match kind {
                "message_stop" => EventMeaning::SuccessfulEnd,
                "error" => EventMeaning::Failure,
                _ => EventMeaning::Part,
            }),
            Dialect::Images => media_event_meaning(event, IMAGE_COMPLETED),
            Dialect::Speech => media_event_meaning(event, SPEECH_DONE),
            Dialect::ImageEdits => media_event_meaning(event, IMAGE_EDIT_COMPLETED),
            Dialect::Transcriptions => media_event_meaning(event, TRANSCRIPT_DONE),
            // In a Gemini stream, no single event marks the end: see `CandidateProgress`.
            Dialect::Embeddings
            | Dialect::Moderations
            | Dialect::Translations
            | Dialect::ImageVariations
            | Dialect::Storage(_)
            | Dialect::ResponseTokens
            | Dialect::CountTokens
            | Dialect::Gemini
            | Dialect::GeminiTokens
            | Dialect::GeminiEmbedding
            | Dialect::GeminiEmbeddings
            | Dialect::Converse
            | Dialect::Invoke
            | Dialect::InvokeTokens => EventMeaning::Part,
        }
    }

    /// Classifies an event that is too large to buffer from its beginning: its name, the type that
    /// its data begins with, and whether its first member is an error. Such large events are the
    /// last event of a Response, which repeats the whole response, events with an image, and any
    /// other event that a provider makes that large.
    pub fn classify_prefix(dialect: Dialect, begin: &[u8]) -> EventMeaning {
        let (good_ends, failures): (&[&str], &[&str]) = match dialect {
            Dialect::Chat | Dialect::Completions => (&[], &[]),
            Dialect::Responses => (
                &["response.completed", "response.incomplete"],
                &["response.failed", "error"],
            ),
            Dialect::Messages => (&[], &["error"]),
            Dialect::Images => (&[IMAGE_COMPLETED], &["error"]),
            Dialect::ImageEdits => (&[IMAGE_EDIT_COMPLETED], &["error"]),
            Dialect::Speech => (&[SPEECH_DONE], &["error"]),
            Dialect::Transcriptions => (&[TRANSCRIPT_DONE], &["error"]),
            _ => return EventMeaning::Part,
        };
        let said = [event_name(begin), leading_type(begin)];
        let says = |words: &[&str]| words.iter().any(|word| said.contains(&Some(word.as_bytes())));
        if says(failures) || starts_with_error(begin) {
            EventMeaning::Failure
        } else if says(good_ends) {
            EventMeaning::SuccessfulEnd
        } else {
            EventMeaning::Part
        }
    }
}

/// The types of the events that carry a whole image.
const IMAGE_COMPLETED: &str = "image_generation.completed";
const IMAGE_EDIT_COMPLETED: &str = "image_edit.completed";
/// The types of the last events of speech and of a transcript.
const SPEECH_DONE: &str = "speech.audio.done";
const TRANSCRIPT_DONE: &str = "transcript.text.done";

/// Classifies an event of a stream of images, speech or a transcript; `end` is the type of the last event.
fn media_event_meaning(event: &[u8], end: &str) -> EventMeaning {
    let meaning = meaning_by_type(event, &[end.as_bytes(), b"error"], |kind| match kind {
        "error" => EventMeaning::Failure,
        kind if kind == end => EventMeaning::SuccessfulEnd,
        _ => EventMeaning::Part,
    });
    match meaning {
        EventMeaning::Part if has_error(event) => EventMeaning::Failure,
        meaning => meaning,
    }
}

/// Returns the type in the data of an event, if the data begins with one.
fn leading_type(begin: &[u8]) -> Option<&[u8]> {
    let value = first_member_value(begin, b"\"type\"")?.strip_prefix(b"\"")?;
    value.split(|byte| *byte == b'"').next()
}

/// Whether the data of an event begins with an error.
fn starts_with_error(begin: &[u8]) -> bool {
    first_member_value(begin, b"\"error\"").is_some_and(|error| !error.starts_with(b"null"))
}

/// Returns the data of an event from the value of the first member on, if that member has this name.
fn first_member_value<'e>(begin: &'e [u8], name: &[u8]) -> Option<&'e [u8]> {
    let data = data_lines(begin).next()?;
    let data = data.trim_ascii_start().strip_prefix(b"{")?.trim_ascii_start();
    let value = data.strip_prefix(name)?.trim_ascii_start();
    Some(value.strip_prefix(b":")?.trim_ascii_start())
}

/// The types of events that end a response.
const RESPONSE_END_TYPES: [&[u8]; 4] = [
    b"response.completed",
    b"response.incomplete",
    b"response.failed",
    b"error",
];

/// Whether the last line of an event is `data: [DONE]`.
fn is_done(event: &[u8]) -> bool {
    let text = event.trim_ascii_end();
    if !text.ends_with(b"[DONE]") {
        return false;
    }
    let begin = memchr::memrchr2(b'\n', b'\r', text).map_or(0, |end| end + 1);
    data_lines(&text[begin..]).any(|data| data == b"[DONE]")
}

/// Whether an event is an object with an error, as its own member or as a member of Groq's
/// `x_groq`.
fn has_error(event: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct ErrorDocument<'d> {
        error: Option<IgnoredAny>,
        #[serde(borrow)]
        x_groq: Option<&'d RawValue>,
    }
    #[derive(Deserialize)]
    struct Groq {
        error: Option<IgnoredAny>,
    }
    static ERROR_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"error\""));
    if ERROR_FINDER.find(event).is_none() {
        return false;
    }
    let data = event_data(event);
    serde_json::from_slice::<ErrorDocument<'_>>(&data).is_ok_and(|document| {
        let groq = document
            .x_groq
            .and_then(|groq| serde_json::from_str::<Groq>(groq.get()).ok());
        document.error.is_some() || groq.is_some_and(|groq| groq.error.is_some())
    })
}

/// Classifies an event by the type in its data, if the event contains any of these words.
fn meaning_by_type(event: &[u8], words: &[&[u8]], meaning: impl Fn(&str) -> EventMeaning) -> EventMeaning {
    #[derive(Deserialize)]
    struct ErrorDocument<'d> {
        #[serde(borrow)]
        r#type: Cow<'d, str>,
    }
    if !words
        .iter()
        .any(|word| memchr::memmem::find(event, word).is_some())
    {
        return EventMeaning::Part;
    }
    let data = event_data(event);
    match serde_json::from_slice::<ErrorDocument<'_>>(&data) {
        Ok(document) => meaning(&document.r#type),
        Err(_) if event_name(event) == Some(b"error") => EventMeaning::Failure,
        Err(_) => EventMeaning::Part,
    }
}

/// Whether an event of a chat completion carries only the usage of the whole response, like the one that
/// `stream_options.include_usage` adds: its `choices` are empty.
pub fn is_usage_only(event: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Chunk {
        // Some servers omit `choices` in this event (ROCm/ATOM#1711).
        #[serde(default)]
        choices: Vec<IgnoredAny>,
        usage: Option<Counts>,
    }
    #[derive(Deserialize)]
    struct Counts {
        #[serde(rename = "prompt_tokens")]
        _prompt_tokens: u64,
    }
    let mut lines = data_lines(event);
    let (Some(data), None) = (lines.next(), lines.next()) else {
        return false;
    };
    serde_json::from_slice::<Chunk>(data).is_ok_and(|chunk| chunk.choices.is_empty() && chunk.usage.is_some())
}

/// Returns the name and the data of an event; empty if absent.
pub fn event_parts(event: &[u8]) -> (&str, Cow<'_, [u8]>) {
    let name = event_name(event).and_then(|name| std::str::from_utf8(name).ok());
    (name.unwrap_or_default(), event_data(event))
}

/// Returns the data of an event: the values of its `data` lines, joined by line feeds.
pub(crate) fn event_data(event: &[u8]) -> Cow<'_, [u8]> {
    let mut lines = data_lines(event);
    match (lines.next(), lines.next()) {
        (None, _) => Cow::Borrowed(b""),
        (Some(line), None) => Cow::Borrowed(line),
        (Some(_), Some(_)) => {
            let lines: Vec<&[u8]> = data_lines(event).collect();
            Cow::Owned(lines.join(&b'\n'))
        }
    }
}

/// Returns the name of an event.
fn event_name(event: &[u8]) -> Option<&[u8]> {
    field_lines(event, b"event:").last()
}

/// Returns the values of an event's `data` lines.
fn data_lines(event: &[u8]) -> impl Iterator<Item = &[u8]> {
    field_lines(event, b"data:")
}

fn field_lines<'e>(event: &'e [u8], field: &'static [u8]) -> impl Iterator<Item = &'e [u8]> {
    let lines = event.split(|byte| matches!(byte, b'\n' | b'\r'));
    lines.filter_map(move |line| {
        let value = line.strip_prefix(field)?;
        Some(value.strip_prefix(b" ").unwrap_or(value))
    })
}
