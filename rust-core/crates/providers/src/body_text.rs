use std::ops::Range;

use proofgate_json::{Event, JsonError, Reader, Str, Workspace, escape_into};

use crate::splice::{Offsets, Place, Rewriter};

/// The strings of a document as one text, unescaped and joined by line feeds, and where each of them stands.
///
/// The buffers are kept from document to document.
#[derive(Debug, Default)]
pub struct BodyText {
    text: String,
    segments: Vec<Segment>,
    /// The value of `model` in the document, quotes included; empty if it has none.
    model: Range<usize>,
}

/// One string of the document.
#[derive(Debug)]
struct Segment {
    /// Where it begins in the text.
    start: usize,
    place: Place,
}

impl BodyText {
    /// An empty text.
    pub fn new() -> Self {
        BodyText::default()
    }

    /// The text: what the rules look at.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Takes every key and every string of a JSON document of any shape.
    ///
    /// # Errors
    /// [`JsonError`] when the document is not JSON.
    pub fn collect(&mut self, document: &[u8], workspace: &mut Workspace) -> Result<(), JsonError> {
        self.clear();
        let mut reader = Reader::new(document, workspace)?;
        while let Some(event) = reader.next()? {
            if let Event::Key(string) | Event::String(string) = event {
                self.push(string);
            }
        }
        Ok(())
    }

    /// Takes a document that is not JSON, as it is.
    pub fn plain(&mut self, document: &str) {
        self.clear();
        self.text.push_str(document);
        self.segments.push(Segment {
            start: 0,
            place: Place {
                raw: 0..document.len(),
                escaped: false,
            },
        });
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.segments.clear();
        self.model = 0..0;
    }

    pub(crate) fn push(&mut self, string: Str<'_>) {
        if !self.segments.is_empty() {
            self.text.push('\n');
        }
        self.segments.push(Segment {
            start: self.text.len(),
            place: Place::from(string),
        });
        string.unescape_into(&mut self.text);
    }

    pub(crate) fn set_model(&mut self, model: Range<usize>) {
        self.model = model;
    }

    /// Writes the document with parts of its text replaced, every other byte as it came.
    ///
    /// `body` is the document that the text was read from. `edits` are ranges of [`text`](BodyText::text), in order, with
    /// what takes their place: it is escaped as JSON needs it. A range that spans several strings has its first part
    /// replaced and the rest removed, inside each string. A range that cuts through a character takes the whole of it;
    /// what an earlier range covers is left out of a later one. `out` is emptied first.
    ///
    /// Returns where in `out` the value of `model` stands, quotes included.
    pub fn rewrite(&self, body: &[u8], edits: &[(Range<usize>, &str)], out: &mut Vec<u8>) -> Range<usize> {
        out.clear();
        let mut writer = Rewriter::new(body, out);
        let mut walked: Option<(usize, Offsets<'_>)> = None;
        let (mut removed, mut added) = (0, 0);
        let mut covered = 0;
        for (range, replacement) in edits {
            let start = character_start(&self.text, range.start).max(covered);
            let end = character_end(&self.text, range.end);
            covered = covered.max(end);
            let mut replacement = Some(*replacement);
            let first = self.segments.partition_point(|segment| segment.start <= start);
            for index in first.saturating_sub(1)..self.segments.len() {
                let Some(string) = self.string(index).filter(|string| string.start < end) else {
                    break;
                };
                let (from, to) = (start.max(string.start), end.min(string.end));
                if from >= to {
                    continue;
                }
                let place = &self.segments[index].place;
                let (_, offsets) = match walked.take() {
                    Some(walk) if walk.0 == index => walked.insert(walk),
                    _ => walked.insert((index, Offsets::new(body, place))),
                };
                let raw = offsets.find(from - string.start)..offsets.find(to - string.start);
                let (before_model, length) = (raw.end <= self.model.start, raw.len());
                writer.replace(raw, |out| {
                    let length_before = out.len();
                    escape_into(replacement.take().unwrap_or_default(), out);
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

    /// Where the string with this number stands in the text.
    fn string(&self, index: usize) -> Option<Range<usize>> {
        let start = self.segments.get(index)?.start;
        let end = match self.segments.get(index + 1) {
            Some(next) => next.start - 1,
            None => self.text.len(),
        };
        Some(start..end)
    }
}

fn character_start(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

fn character_end(text: &str, at: usize) -> usize {
    (at..text.len())
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(text.len())
}
