use std::borrow::Cow;
use std::ops::Range;

use proofgate_json::{Event, JsonError, Reader, Str, Workspace, escape_into};
use proofgate_policy::Scope;

use crate::attachment::{AttachmentPolicy, is_skipped_attachment};
use crate::json_edits::{UniqueKeyNames, align_to_escapes, edits_within_json};
use crate::passages::{MessageLocation, Passage, PassageStart, Passages};
use crate::segment::{Segment, SegmentKind};
use crate::splice::{OffsetMapper, Rewriter, StringLocation};

/// Maximum number of strings and long numbers in a document. The records about them take at most 32 MiB, whatever the
/// size of the document.
pub const MAX_STRINGS: usize = 1 << 20;

/// Minimum length of a collected number: the length of a US social security number.
pub(crate) const MIN_DIGITS: usize = 9;

/// The strings and long numbers of a document, unescaped and joined by line feeds into one text, with the location of
/// each.
///
/// The buffers are reused between documents, until [`BodyText::release_memory`].
#[derive(Debug, Default)]
pub struct BodyText {
    text: String,
    segments: Vec<Segment>,
    /// The range of the value of `model` in the document, quotes included; empty if there is none.
    model: Range<usize>,
    attachments: AttachmentPolicy,
    passages: Passages,
    overflowed: bool,
}

impl BodyText {
    /// Creates an empty text.
    pub fn new() -> Self {
        BodyText::default()
    }

    /// Returns the text that rules scan.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the passage with this number. Each passage belongs to one message. Passages cover the text in order,
    /// except for the line feed between two of them.
    pub fn passage(&self, number: usize) -> Option<Passage> {
        self.passages.passage(number, self.text.len())
    }

    /// Returns all passages.
    pub fn passages(&self) -> impl Iterator<Item = Passage> + '_ {
        (0..).map_while(|number| self.passage(number))
    }

    /// Returns the number of the passage that contains an offset.
    pub fn passage_at(&self, offset: usize) -> Option<usize> {
        self.passages.index_at(offset)
    }

    /// Returns the location of a message in the document.
    pub fn message_location(&self, message: u32) -> Option<MessageLocation> {
        self.passages.message_location(message)
    }

    /// Returns the strings and long numbers that make up the text, in document order.
    pub fn strings(&self) -> impl Iterator<Item = (Range<usize>, SegmentKind)> + '_ {
        (self.segments.iter().enumerate())
            .filter_map(|(index, segment)| Some((self.string_range(index)?, segment.kind())))
    }

    /// Sets the attachment policy for the next documents.
    pub fn set_attachments(&mut self, attachments: AttachmentPolicy) {
        self.attachments = attachments;
    }

    /// Whether the document has more than [`MAX_STRINGS`] strings and long numbers, so that the text is incomplete.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Clears the document, and releases every buffer with more than `most` bytes.
    pub fn release_memory(&mut self, most: usize) {
        self.clear();
        self.text.shrink_to(most);
        self.segments.shrink_to(most / size_of::<Segment>());
        self.passages.release_memory(most);
    }

    /// Returns the number of bytes of memory that the current document needs.
    pub fn size(&self) -> usize {
        self.text.len() + self.segments.len() * size_of::<Segment>() + self.passages.size()
    }

    /// Returns the number of bytes of memory that the buffers take.
    pub fn capacity(&self) -> usize {
        self.text.capacity() + self.segments.capacity() * size_of::<Segment>() + self.passages.capacity()
    }

    /// Reserves and touches memory for the text of a document with `bytes` bytes, one chunk for each step of the
    /// iterator. The system maps a page when it is first written to, which takes milliseconds for a long document.
    /// Memory kept from an earlier document is ready already. The text is empty afterwards.
    pub fn reserve_steps(&mut self, bytes: usize) -> impl Iterator<Item = ()> + '_ {
        const RESERVE_CHUNK: usize = 64 << 10;
        static ZEROS: [u8; RESERVE_CHUNK] = [0; RESERVE_CHUNK];
        self.clear();
        let missing = if bytes > self.text.capacity() { bytes } else { 0 };
        self.text.reserve_exact(missing);
        std::iter::from_fn(move || {
            let left = missing - self.text.len();
            let zeros = std::str::from_utf8(&ZEROS[..left.min(RESERVE_CHUNK)]).unwrap_or_default();
            self.text.push_str(zeros);
            if zeros.is_empty() {
                self.clear();
                return None;
            }
            Some(())
        })
    }

    /// Releases the memory that the current text does not need: nearly all of the reserved memory if the document is
    /// one image.
    pub fn shrink_to_used(&mut self) {
        self.text.shrink_to_fit();
    }

    /// Collects every key, string and long number of a JSON document of any shape.
    ///
    /// # Errors
    /// [`JsonError`] when the document is not JSON.
    pub fn collect(&mut self, document: &[u8], workspace: &mut Workspace) -> Result<(), JsonError> {
        self.clear();
        self.start_message(Scope::Other, "", None);
        let mut reader = Reader::new(document, workspace)?;
        while let Some(event) = reader.next()? {
            match event {
                Event::Key(key) => self.push_key(key),
                Event::String(string) => self.push(string),
                // Its meaning is not known, so it stays a number.
                Event::Number(number) => self.push_number(number, reader.offset(), SegmentKind::ApiNumber),
                _ => {}
            }
        }
        Ok(())
    }

    /// Collects a document that is not JSON as one user text.
    pub fn collect_plain_text(&mut self, document: &str) {
        self.clear();
        self.start_message(Scope::User, "", None);
        let place = StringLocation {
            raw: 0..document.len(),
            has_escapes: false,
        };
        if self.add_segment(&place, SegmentKind::Text) {
            self.text.push_str(document);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.segments.clear();
        self.passages.clear();
        self.model = 0..0;
        self.overflowed = false;
    }

    /// Adds a number if it has at least [`MIN_DIGITS`] characters. `end`: the number's end in the
    /// document.
    pub(crate) fn push_number(&mut self, number: &str, end: usize, kind: SegmentKind) {
        if number.len() < MIN_DIGITS {
            return;
        }
        let place = StringLocation {
            raw: end - number.len()..end,
            has_escapes: false,
        };
        self.push_separator();
        if self.add_segment(&place, kind) {
            self.text.push_str(number);
        }
    }

    pub(crate) fn push_key(&mut self, key: Str<'_>) {
        self.push_string(key, SegmentKind::Key);
    }

    pub(crate) fn push(&mut self, string: Str<'_>) {
        self.push_string(string, SegmentKind::Text);
    }

    fn push_string(&mut self, string: Str<'_>, kind: SegmentKind) {
        self.push_separator();
        if self.add_segment(&StringLocation::from(string), kind) {
            string.unescape_into(&mut self.text);
        }
    }

    fn push_separator(&mut self) {
        if !self.segments.is_empty() && !self.overflowed {
            self.text.push('\n');
        }
    }

    /// Records a string whose value is at the end of the text; returns `false` if there are too many.
    fn add_segment(&mut self, place: &StringLocation, kind: SegmentKind) -> bool {
        let segment = match self.overflowed || self.segments.len() >= MAX_STRINGS {
            true => None,
            false => Segment::new(self.text.len(), place, kind),
        };
        self.overflowed = segment.is_none();
        if self.segments.len() == self.segments.capacity() {
            let left = MAX_STRINGS - self.segments.len();
            self.segments.reserve_exact(left.min(self.segments.len().max(64)));
        }
        self.segments.extend(segment);
        !self.overflowed
    }

    /// Adds a string of an attachment field, unless it is data that rules skip; returns whether it was added.
    /// `says_text`: a sibling field declares that it decodes to text.
    pub(crate) fn push_unless_attachment(&mut self, string: Str<'_>, says_text: bool) -> bool {
        if !string.is_escaped() && is_skipped_attachment(string.raw(), says_text, self.attachments) {
            return false;
        }
        let known = (self.text.len(), self.segments.len());
        self.push(string);
        if self.overflowed {
            return true;
        }
        let start = self.segments.last().map_or(0, |segment| segment.start());
        // Some clients write each `/` of base64 as `\/`.
        if string.is_escaped() && is_skipped_attachment(&self.text[start..], says_text, self.attachments) {
            self.text.truncate(known.0);
            self.segments.truncate(known.1);
            return false;
        }
        true
    }

    /// Returns where the next string will begin.
    pub(crate) fn next_start(&self) -> usize {
        self.text.len() + usize::from(!self.segments.is_empty())
    }

    /// Starts a message with the next string; `field` and `index` are its location in the document.
    pub(crate) fn start_message(&mut self, scope: Scope, field: &str, index: Option<usize>) -> PassageStart {
        self.passages
            .start_message(self.next_start(), scope, field, index)
    }

    /// Starts a nested message with the next string, inside another message.
    pub(crate) fn start_nested_message(&mut self, scope: Scope, outer: PassageStart) {
        self.passages
            .start_nested_message(self.next_start(), scope, outer);
    }

    /// Marks the text from `start` on as a nested message inside `outer`, which resumes with the next string.
    pub(crate) fn mark_nested_message(&mut self, start: usize, scope: Scope, outer: PassageStart) {
        self.passages.start_nested_message(start, scope, outer);
        self.resume_message(outer);
    }

    /// Resumes a message after a message nested in it.
    pub(crate) fn resume_message(&mut self, message: PassageStart) {
        self.passages.resume_message(self.next_start(), message);
    }

    /// Returns the number of the first passage of the last message.
    pub(crate) fn last_passage(&self) -> usize {
        self.passages.len().saturating_sub(1)
    }

    /// Sets the scope of a message once it is known. `first`: the number of its first passage.
    pub(crate) fn set_scope(&mut self, first: usize, message: PassageStart, scope: Scope) {
        self.passages.set_scope(first, message, scope);
    }

    pub(crate) fn set_model(&mut self, model: Range<usize>) {
        self.model = model;
    }

    /// Writes the document with parts of its text replaced, and every other byte unchanged.
    ///
    /// `body` is the document that the text was read from. `edits` are ranges of
    /// [`text`](BodyText::text), in order, with their replacements, which are escaped as JSON needs
    /// it. A range that spans several strings has its first part replaced and the rest removed,
    /// inside each string. A string that is itself a JSON object or array remains one. A number
    /// becomes a string, unless the API needs it as a number ([`SegmentKind::ApiNumber`]); then it
    /// is left unchanged. Changed keys are numbered from the second one on (`#2`), so that no two
    /// become equal. A range that cuts through a character covers all of it. A range excludes the
    /// parts that earlier ranges cover. `out` is cleared first.
    ///
    /// Returns the range of the value of `model` in `out`, quotes included.
    pub fn rewrite(&self, body: &[u8], edits: &[(Range<usize>, &str)], out: &mut Vec<u8>) -> Range<usize> {
        out.clear();
        let mut writer = Rewriter::new(body, out);
        let (mut removed, mut added) = (0, 0);
        let mut keys = UniqueKeyNames::default();
        let mut written = 0;
        for (index, first, behind) in self.touched_strings(edits) {
            let (Some(segment), Some(string)) = (self.segments.get(index), self.string_range(index)) else {
                continue;
            };
            let mut local = Vec::new();
            let mut covered = string.start;
            for (number, (range, replacement)) in edits.iter().enumerate().take(behind).skip(first) {
                let start = floor_char_boundary(&self.text, range.start).max(covered);
                let end = ceil_char_boundary(&self.text, range.end).min(string.end);
                if start >= end {
                    continue;
                }
                covered = end;
                let is_begun = number < written;
                written = written.max(number + 1);
                let replacement = Cow::Borrowed(*replacement);
                let replacement = match (is_begun, segment.kind()) {
                    (_, SegmentKind::ApiNumber) => {
                        local.clear();
                        break;
                    }
                    (_, SegmentKind::Number) => {
                        local = vec![(0..string.len(), replacement)];
                        break;
                    }
                    (_, SegmentKind::Key) => keys.make_unique(&replacement),
                    (true, SegmentKind::Text) => Cow::Borrowed(""),
                    (false, SegmentKind::Text) => replacement,
                };
                local.push((start - string.start..end - string.start, replacement));
            }
            let inner = match segment.kind() {
                SegmentKind::Text => edits_within_json(&self.text[string], &local),
                _ => None,
            };
            let quote: &[u8] = if segment.kind() == SegmentKind::Number {
                b"\""
            } else {
                b""
            };
            let mut offsets = OffsetMapper::new(body, &segment.location());
            for (range, replacement) in inner.unwrap_or(local) {
                let raw = offsets.raw_offset(range.start)..offsets.raw_offset(range.end);
                let (before_model, length) = (raw.end <= self.model.start, raw.len());
                writer.replace(raw, |out| {
                    let length_before = out.len();
                    out.extend_from_slice(quote);
                    escape_into(&replacement, out);
                    out.extend_from_slice(quote);
                    if before_model {
                        removed += length;
                        added += out.len() - length_before;
                    }
                });
            }
        }
        writer.finish();
        self.model.start + added - removed..self.model.end + added - removed
    }

    /// Returns the strings that the edits touch, in order, each with the index of its first edit
    /// and the index after its last.
    fn touched_strings(&self, edits: &[(Range<usize>, &str)]) -> impl Iterator<Item = (usize, usize, usize)> {
        let mut next = 0;
        let mut first = 0;
        std::iter::from_fn(move || {
            let edit = edits.get(first)?;
            let at = self
                .segments
                .partition_point(|segment| segment.start() <= edit.0.start);
            let index = at.saturating_sub(1).max(next);
            let end = self.string_range(index)?.end;
            let behind = first + edits[first..].partition_point(|(range, _)| range.start < end);
            next = index + 1;
            let reaches_on = |edit: &(Range<usize>, &str)| edit.0.end > end + 1;
            let touched = (index, first, behind.max(first));
            first = match behind.checked_sub(1).filter(|last| *last >= first) {
                Some(last) if reaches_on(&edits[last]) => last,
                Some(_) => behind,
                // It begins in the line feed after the string.
                None => {
                    if reaches_on(&edits[first]) {
                        first
                    } else {
                        first + 1
                    }
                }
            };
            Some(touched)
        })
    }

    /// Returns an upper bound on the number of parts in which [`rewrite`](BodyText::rewrite) replaces a range of the
    /// text: one for each string, and one for each quote, which may begin a key inside a string that is JSON.
    pub fn max_replacements(&self, range: &Range<usize>) -> usize {
        let strings_until = |end| self.segments.partition_point(|segment| segment.start() < end);
        let strings = strings_until(range.end).saturating_sub(strings_until(range.start + 1)) + 1;
        let covered = self.text.as_bytes().get(range.clone()).unwrap_or_default();
        strings + covered.iter().filter(|byte| **byte == b'"').count()
    }

    /// Returns a part of the text, aligned so that it cuts through no escape of a string that is itself JSON.
    pub fn align_to_escapes(&self, part: Range<usize>) -> Range<usize> {
        let behind = self
            .segments
            .partition_point(|segment| segment.start() <= part.start);
        let string = behind.checked_sub(1).and_then(|index| self.string_range(index));
        let is_json = |text: &&str| text.trim_ascii_start().starts_with(['{', '[']);
        let Some(string) = string.filter(|string| part.end <= string.end) else {
            return part;
        };
        let Some(text) = self.text.get(string.clone()).filter(is_json) else {
            return part;
        };
        let settled = align_to_escapes(text, part.start - string.start..part.end - string.start);
        settled.start + string.start..settled.end + string.start
    }

    /// Whether a part of the text is in a number that the API needs as a number, so that it cannot
    /// be replaced.
    pub fn is_required_number(&self, part: &Range<usize>) -> bool {
        let behind = self
            .segments
            .partition_point(|segment| segment.start() <= part.start);
        let Some(index) = behind.checked_sub(1) else {
            return false;
        };
        self.segments[index].kind() == SegmentKind::ApiNumber
            && self
                .string_range(index)
                .is_some_and(|string| part.end <= string.end)
    }

    /// Returns the range in the text of the string with this number.
    fn string_range(&self, index: usize) -> Option<Range<usize>> {
        let start = self.segments.get(index)?.start();
        let end = match self.segments.get(index + 1) {
            Some(next) => next.start() - 1,
            None => self.text.len(),
        };
        Some(start..end)
    }
}

fn floor_char_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

fn ceil_char_boundary(text: &str, at: usize) -> usize {
    (at..text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len())
}
