//! Divides a text into passages, each with its message and scope.

use std::fmt;
use std::ops::Range;

use proofgate_policy::Scope;

/// Fields of requests that contain messages, texts or tools, as denials and records name them.
const REPORTED_FIELDS: [&str; 15] = [
    "",
    "messages",
    "input",
    "contents",
    "content",
    "requests",
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
    "tools",
    "functions",
    "prompt",
    "suffix",
    "text",
];

/// The location of a message in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageLocation {
    /// The top-level field of the body; empty for a field that is not reported.
    pub field: &'static str,
    /// Its index, if the field is an array.
    pub index: Option<u32>,
}

impl MessageLocation {
    /// An unnamed location.
    pub const UNKNOWN: MessageLocation = MessageLocation {
        field: "",
        index: None,
    };
}

impl fmt::Display for MessageLocation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.field, self.index) {
            ("", _) => out.write_str("another field"),
            (field, Some(index)) => write!(out, "{field}[{index}]"),
            (field, None) => out.write_str(field),
        }
    }
}

/// A part of a text that belongs to one message, and within it to one scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passage {
    /// The range in the text.
    pub range: Range<usize>,
    /// The scope.
    pub scope: Scope,
    /// The number of its message. A message here is a message, a tool result, the arguments of a call, the
    /// description of a tool, or another field. The parts before and after a nested message have the same number.
    pub message: u32,
    /// The location of its message.
    pub location: MessageLocation,
}

const NO_INDEX: u32 = u32::MAX;

/// Maximum spare capacity, in passages.
const MAX_EXTRA_CAPACITY: usize = 1 << 16;

/// The start of a passage; the passage ends where the next one begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassageStart {
    start: u32,
    message: u32,
    index: u32,
    scope: Scope,
    field: u8,
}

/// The passages of a text.
#[derive(Debug, Default)]
pub(crate) struct Passages {
    marks: Vec<PassageStart>,
    messages: u32,
}

impl Passages {
    pub(crate) fn clear(&mut self) {
        self.marks.clear();
        self.messages = 0;
    }

    pub(crate) fn release_memory(&mut self, most: usize) {
        self.clear();
        self.marks.shrink_to(most / size_of::<PassageStart>());
    }

    pub(crate) fn size(&self) -> usize {
        self.marks.len() * size_of::<PassageStart>()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.marks.capacity() * size_of::<PassageStart>()
    }

    /// Returns how many passages have been started, which is the number of the next one.
    pub(crate) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Starts a message at `start`.
    pub(crate) fn start_message(
        &mut self,
        start: usize,
        scope: Scope,
        field: &str,
        index: Option<usize>,
    ) -> PassageStart {
        let field = REPORTED_FIELDS
            .iter()
            .position(|known| *known == field)
            .unwrap_or(0);
        let index = index
            .and_then(|index| u32::try_from(index).ok())
            .unwrap_or(NO_INDEX);
        let place = PassageStart {
            start: 0,
            message: 0,
            index,
            scope,
            field: field as u8,
        };
        self.start_nested_message(start, scope, place)
    }

    /// Starts a nested message at `start`.
    pub(crate) fn start_nested_message(
        &mut self,
        start: usize,
        scope: Scope,
        outer: PassageStart,
    ) -> PassageStart {
        let message = self.messages;
        self.messages = self.messages.saturating_add(1);
        let mark = PassageStart {
            message,
            scope,
            ..outer
        };
        self.resume_message(start, mark);
        mark
    }

    /// Resumes a message at `start`, after a message nested in it.
    pub(crate) fn resume_message(&mut self, start: usize, message: PassageStart) {
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        // A passage without text is removed.
        self.marks.pop_if(|last| last.start >= start);
        if self.marks.len() == self.marks.capacity() {
            self.marks
                .reserve_exact(self.marks.len().clamp(16, MAX_EXTRA_CAPACITY));
        }
        self.marks.push(PassageStart { start, ..message });
    }

    /// Sets the scope of a message once it is known. The number of its first passage is at least `first`.
    pub(crate) fn set_scope(&mut self, first: usize, message: PassageStart, scope: Scope) {
        let marks = self.marks.get_mut(first..).unwrap_or_default();
        let of_it = marks.iter_mut().filter(|mark| mark.message == message.message);
        of_it.for_each(|mark| mark.scope = scope);
    }

    /// Returns the passage with this number, in a text of `length` bytes whose strings are joined by one byte.
    pub(crate) fn passage(&self, number: usize, length: usize) -> Option<Passage> {
        let mark = self
            .marks
            .get(number)
            .filter(|mark| mark.start as usize <= length)?;
        let next = self
            .marks
            .get(number + 1)
            .map(|next| (next.start as usize).saturating_sub(1));
        Some(mark.passage(next.unwrap_or(length).min(length)))
    }

    /// Returns the number of the passage that contains an offset.
    pub(crate) fn index_at(&self, offset: usize) -> Option<usize> {
        let behind = self.marks.partition_point(|mark| mark.start as usize <= offset);
        behind.checked_sub(1)
    }

    /// Returns the location of a message.
    pub(crate) fn message_location(&self, message: u32) -> Option<MessageLocation> {
        let mut marks = self.marks.iter();
        marks
            .find(|mark| mark.message == message)
            .map(|mark| mark.location())
    }
}

impl PassageStart {
    fn passage(&self, end: usize) -> Passage {
        Passage {
            range: self.start as usize..end,
            scope: self.scope,
            message: self.message,
            location: self.location(),
        }
    }

    fn location(&self) -> MessageLocation {
        MessageLocation {
            field: REPORTED_FIELDS
                .get(usize::from(self.field))
                .copied()
                .unwrap_or_default(),
            index: (self.index != NO_INDEX).then_some(self.index),
        }
    }
}
