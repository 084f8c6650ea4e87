//! The received part of a response that may not be released yet.

use std::collections::VecDeque;
use std::ops::Range;

use proofgate_json::escape_into;
use proofgate_policy::Engine;
use proofgate_providers::{OffsetMapper, PartEncoding, Rewriter, StringLocation, UniqueKeyNames};

use crate::changes::{self, Change};
use crate::texts::ResponseTexts;

/// The step in which the buffer of a whole response grows, in bytes. A longer response is not
/// copied unnecessarily.
const GROWTH_STEP: usize = 256 * 1024;

/// A part of an event that can hold the event back or can be changed. Positions are relative to the
/// beginning of the event.
#[derive(Debug)]
pub(crate) enum EventPart {
    /// A piece of a text.
    Text {
        /// Index of the text.
        text: usize,
        /// The range of its bytes.
        range: Range<usize>,
        place: StringLocation,
    },
    /// A complete text.
    CompleteText {
        /// Its index among the complete texts.
        text: usize,
        place: StringLocation,
        written: PartEncoding,
    },
    /// The log probabilities of a choice, which repeat its text token by token.
    Logprobs(Range<usize>),
    /// Bytes with a fixed replacement.
    Replaced { raw: Range<usize>, by: Vec<u8> },
}

/// An event, or a whole response.
#[derive(Debug)]
struct Event {
    length: usize,
    parts: usize,
}

/// Events in the order of arrival.
#[derive(Debug, Default)]
pub(crate) struct BufferedEvents {
    bytes: Vec<u8>,
    released: usize,
    events: VecDeque<Event>,
    parts: VecDeque<EventPart>,
}

impl BufferedEvents {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.released = 0;
        self.events.clear();
        self.parts.clear();
    }

    /// Returns the number of held bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.released
    }

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
            + self.events.capacity() * size_of::<Event>()
            + self.parts.capacity() * size_of::<EventPart>()
    }

    /// Clears the buffers, and shrinks those with more than `most` bytes.
    pub(crate) fn release_memory(&mut self, most: usize) {
        self.clear();
        self.bytes.shrink_to(most);
        self.events.shrink_to(most / size_of::<Event>());
        self.parts.shrink_to(most / size_of::<EventPart>());
    }

    /// Appends the next bytes of a whole response.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if self.bytes.capacity() > GROWTH_STEP {
            // In steps: a response is charged for the capacity of its buffer, not for the used part of it.
            let missing = (self.bytes.len() + bytes.len()).saturating_sub(self.bytes.capacity());
            if missing > 0 {
                self.bytes.reserve_exact(bytes.len().max(GROWTH_STEP));
            }
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Marks the response as complete; its parts can now be added.
    pub(crate) fn mark_complete(&mut self) {
        self.events.push_back(Event {
            length: self.bytes.len(),
            parts: 0,
        });
    }

    /// Takes the bytes of a whole response out, until [`BufferedEvents::restore_complete`]; parts can be added meanwhile.
    pub(crate) fn take_complete(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    pub(crate) fn restore_complete(&mut self, bytes: Vec<u8>) {
        self.bytes = bytes;
    }

    /// Appends the next event.
    pub(crate) fn push(&mut self, raw: &[u8]) {
        self.bytes.extend_from_slice(raw);
        self.events.push_back(Event {
            length: raw.len(),
            parts: 0,
        });
    }

    /// Adds a part to the last event.
    pub(crate) fn add_part(&mut self, part: EventPart) {
        if let Some(event) = self.events.back_mut() {
            event.parts += 1;
            self.parts.push_back(part);
        }
    }

    /// Releases every event whose texts are cleared and that no earlier event holds back.
    pub(crate) fn release(&mut self, texts: &mut ResponseTexts, engine: &Engine, out: &mut Vec<u8>) {
        while let Some(event) = self.events.front() {
            let cleared = self.parts.iter().take(event.parts).all(|part| match part {
                EventPart::Text { text, range, .. } => texts.is_decided(*text, range.end),
                EventPart::CompleteText { .. } | EventPart::Logprobs(_) | EventPart::Replaced { .. } => true,
            });
            if !cleared {
                break;
            }
            let (length, count) = (event.length, event.parts);
            let raw = &self.bytes[self.released..self.released + length];
            let parts = self.parts.iter().take(count);
            if parts.clone().any(|part| is_changed(part, texts)) {
                write_changed(raw, parts, texts, engine, out);
            } else if out.is_empty()
                && self.released == 0
                && length == self.bytes.len()
                && length > GROWTH_STEP
            {
                // A large response is not copied.
                std::mem::swap(&mut self.bytes, out);
            } else {
                out.extend_from_slice(raw);
            }
            for part in self.parts.drain(..count) {
                match part {
                    EventPart::Text { text, range, .. } => texts.mark_released(text, range.end),
                    EventPart::CompleteText { text, .. } => texts.release_complete_text(text),
                    EventPart::Logprobs(_) | EventPart::Replaced { .. } => {}
                }
            }
            self.released += length;
            self.events.pop_front();
        }
        if self.events.is_empty() {
            self.bytes.clear();
            self.released = 0;
        } else if self.released > self.len() {
            // Moves no more bytes than were released since the last time; keeping more than that would waste memory.
            self.bytes.drain(..self.released);
            self.released = 0;
        }
    }
}

fn is_changed(part: &EventPart, texts: &ResponseTexts) -> bool {
    match part {
        EventPart::Text { text, range, .. } => changes::has_changes_in(texts.get(*text), range),
        EventPart::CompleteText { text, .. } => {
            let single = texts.complete_text(*text);
            !single.spans.is_empty() || !single.masked_spans.is_empty()
        }
        EventPart::Logprobs(_) => false,
        EventPart::Replaced { .. } => true,
    }
}

/// Writes an event with its replacements.
fn write_changed<'p>(
    raw: &[u8],
    parts: impl Iterator<Item = &'p EventPart>,
    texts: &mut ResponseTexts,
    engine: &Engine,
    out: &mut Vec<u8>,
) {
    let mut writer = Rewriter::new(raw, out);
    let mut keys = UniqueKeyNames::default();
    for part in parts {
        match part {
            EventPart::Text { text, range, place } => {
                let mut offsets = OffsetMapper::new(raw, place);
                let (text, masks) = texts.get_mut(*text);
                for Change {
                    range: changed,
                    replacement: by,
                } in changes::for_text(text, masks, range, engine)
                {
                    // The replacement is written where the changed range begins, and nothing where it continues.
                    let by = if changed.start >= range.start { &*by } else { "" };
                    let start = changed.start.max(range.start) - range.start;
                    let end = changed.end.min(range.end) - range.start;
                    let raw = offsets.raw_offset(start)..offsets.raw_offset(end);
                    writer.replace(raw, |out| escape_into(by, out));
                }
            }
            EventPart::CompleteText { text, place, written } => {
                let mut offsets = OffsetMapper::new(raw, place);
                let (single, masks) = (texts.complete_text(*text), texts.masks());
                let quote: &[u8] = if *written == PartEncoding::Number {
                    b"\""
                } else {
                    b""
                };
                for Change {
                    range,
                    replacement: by,
                } in changes::for_complete_text(single, masks, *written, &mut keys, engine)
                {
                    let raw = offsets.raw_offset(range.start)..offsets.raw_offset(range.end);
                    writer.replace(raw, |out| {
                        out.extend_from_slice(quote);
                        escape_into(&by, out);
                        out.extend_from_slice(quote);
                    });
                }
            }
            EventPart::Logprobs(range) => {
                let is_list = raw[range.clone()].trim_ascii_start().starts_with(b"[");
                let nothing: &[u8] = if is_list { b"[]" } else { b"null" };
                writer.replace(range.clone(), |out| out.extend_from_slice(nothing));
            }
            EventPart::Replaced { raw, by } => writer.replace(raw.clone(), |out| out.extend_from_slice(by)),
        }
    }
    writer.finish();
}

#[cfg(test)]
mod tests {
    use proofgate_policy::{Budget, Engine, PolicyConfig, Scope, Scratch};
    use proofgate_providers::StringLocation;

    use super::{BufferedEvents, EventPart};
    use crate::findings::{Findings, RuleContext};
    use crate::texts::ResponseTexts;

    #[test]
    fn a_long_stream_of_which_the_last_event_is_held_takes_the_memory_of_a_few_events() {
        let engine = Engine::compile(&PolicyConfig::default()).unwrap();
        let (profile, mut scratch) = (engine.profile(None).unwrap(), Scratch::new());
        let mut rules = RuleContext {
            engine: &engine,
            profile: &profile,
            budget: Budget::unlimited(),
            scratch: &mut scratch,
        };
        let (mut held, mut texts, mut findings) = (
            BufferedEvents::default(),
            ResponseTexts::default(),
            Findings::default(),
        );
        let text = texts.find_or_add("0/content", 0, Scope::Response).unwrap();
        let (mut stream, mut out) = (Vec::new(), Vec::new());
        for number in 0..10_000 {
            let event = format!("event {number:05}");
            stream.extend_from_slice(event.as_bytes());
            held.push(event.as_bytes());
            // It is cleared by the next piece.
            held.add_part(EventPart::Text {
                text,
                range: number * 5..number * 5 + 6,
                place: StringLocation {
                    raw: 0..5,
                    has_escapes: false,
                },
            });
            texts.push(text, "word ", &mut rules, &mut findings).unwrap();
            held.release(&mut texts, &engine, &mut out);
            assert_eq!(held.len(), event.len());
        }
        assert_eq!(out, stream[..stream.len() - held.len()]);
        assert!(held.bytes.capacity() < 100, "{}", held.bytes.capacity());
    }
}
