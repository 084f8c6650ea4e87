//! The scan of texts that can contain marks for replaced values, because clients send back earlier
//! responses.
//!
//! The rules see a row of fillers instead of the name of a rule or the number of a mask, so that these cause no match. A
//! match within a mark is ignored; one that extends beyond it counts.

use std::ops::Range;
use std::time::Duration;

use proofgate_policy::{
    Budget, Engine, EvaluationError, Mark, Marks, Match, Profile, Scan, Scope, Scratch, Step, StreamScan,
};

use crate::token_ends::TokenEnds;

/// A character with which a value can continue, because the text after a mark may be the rest of a
/// value.
const FILLER: char = '_';

/// The marks of a text, in order.
#[derive(Debug, Clone, Default)]
struct MarkRanges(Vec<Range<usize>>);

impl MarkRanges {
    /// Appends `text` with its marks filled to `out`, up to the position where it is decided, and returns that position.
    /// `base` is the offset of the text.
    fn fill(&mut self, marks: &Marks, text: &str, base: usize, out: &mut String) -> usize {
        let mut at = 0;
        loop {
            match marks.find(text, at) {
                None => {
                    out.push_str(&text[at..]);
                    return text.len();
                }
                Some(Mark::Partial(start)) => {
                    out.push_str(&text[at..start]);
                    return start;
                }
                Some(Mark::Complete(range)) => {
                    out.push_str(&text[at..=range.start]);
                    out.extend(std::iter::repeat_n(FILLER, range.len() - 2));
                    out.push(']');
                    at = range.end;
                    self.0.push(base + range.start..base + range.end);
                }
            }
        }
    }

    /// Removes the matches from index `known` on that are within a mark.
    fn drop_within_marks(&self, found: &mut Vec<Match>, known: usize) {
        if self.0.is_empty() {
            return;
        }
        let mut number = 0;
        found.retain(|found| {
            number += 1;
            number <= known || !self.contains(found)
        });
    }

    fn contains(&self, found: &Match) -> bool {
        let next = self.0.partition_point(|place| place.end < found.end);
        self.0.get(next).is_some_and(|place| place.start <= found.start)
    }
}

/// The scan of a complete text, in time slices.
#[derive(Debug, Default)]
pub(crate) struct FullScan {
    scan: Scan,
    /// Whether marks have been searched for.
    has_read_marks: bool,
    marks: MarkRanges,
    /// The text with its marks filled, if there are any.
    filled: String,
}

impl FullScan {
    /// Like [`Scan::step`].
    #[allow(
        clippy::too_many_arguments,
        reason = "every scan needs all of these arguments"
    )]
    pub(crate) fn step(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scope: Scope,
        text: &str,
        slice: Duration,
        budget: &mut Budget,
        scratch: &mut Scratch,
        found: &mut Vec<Match>,
    ) -> Result<Step, EvaluationError> {
        if !self.has_read_marks {
            self.has_read_marks = true;
            self.read_marks(engine.marks(), text);
        }
        let Self {
            scan,
            marks: places,
            filled,
            ..
        } = self;
        let text = if places.0.is_empty() { text } else { filled };
        let known = found.len();
        let step = scan.step(engine, profile, scope, text, slice, budget, scratch, found)?;
        self.marks.drop_within_marks(found, known);
        Ok(step)
    }

    /// Returns `text` as the rules see it.
    pub(crate) fn visible_text<'t>(&'t self, text: &'t str) -> &'t str {
        if self.marks.0.is_empty() {
            text
        } else {
            &self.filled
        }
    }

    /// Returns the memory in use, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        self.filled.capacity() + self.marks.0.capacity() * size_of::<Range<usize>>()
    }

    fn read_marks(&mut self, marks: &Marks, text: &str) {
        let Some(Mark::Complete(_)) = marks.find(text, 0) else {
            return;
        };
        self.filled.reserve(text.len());
        let decided = self.marks.fill(marks, text, 0, &mut self.filled);
        self.filled.push_str(&text[decided..]);
    }
}

/// The scan of a streamed text. A possible beginning of a mark waits for the next piece.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChunkScan {
    scan: StreamScan,
    marks: MarkRanges,
    /// The waiting text, and its offset in the text.
    pending: String,
    pending_start: usize,
    /// A piece with its marks filled.
    filled: String,
    cleared: usize,
    token_ends: TokenEnds,
}

impl ChunkScan {
    /// Like [`StreamScan::push`].
    #[allow(
        clippy::too_many_arguments,
        reason = "every scan needs all of these arguments"
    )]
    pub(crate) fn push(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scope: Scope,
        piece: &str,
        budget: &mut Budget,
        scratch: &mut Scratch,
        found: &mut Vec<Match>,
    ) -> Result<usize, EvaluationError> {
        let marks = engine.marks();
        let known = found.len();
        if self.pending.is_empty() && marks.find(piece, 0).is_none() {
            self.pending_start += piece.len();
            self.cleared = (self.scan).push(engine, profile, scope, piece, budget, scratch, found)?;
            self.token_ends.push(engine, piece);
        } else {
            self.pending.push_str(piece);
            self.filled.clear();
            let decided = (self.marks).fill(marks, &self.pending, self.pending_start, &mut self.filled);
            self.pending.drain(..decided);
            self.pending_start += decided;
            let piece = &self.filled;
            self.cleared = (self.scan).push(engine, profile, scope, piece, budget, scratch, found)?;
            self.token_ends.push(engine, piece);
        }
        self.drop_within_marks(found, known);
        Ok(match profile.buffers_responses() {
            true => self.cleared,
            false => self.pending_start + self.pending.len(),
        })
    }

    /// Like [`StreamScan::finish`].
    pub(crate) fn finish(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scope: Scope,
        budget: &mut Budget,
        scratch: &mut Scratch,
        found: &mut Vec<Match>,
    ) -> Result<(), EvaluationError> {
        let known = found.len();
        let rest = std::mem::take(&mut self.pending);
        self.pending_start += rest.len();
        (self.scan).push(engine, profile, scope, &rest, budget, scratch, found)?;
        self.token_ends.push(engine, &rest);
        (self.scan).finish(engine, profile, scope, budget, scratch, found)?;
        self.drop_within_marks(found, known);
        Ok(())
    }

    /// Like [`StreamScan::decided_len`].
    pub(crate) fn decided_len(&self) -> usize {
        self.scan.decided_len()
    }

    /// Returns the tokens that continue after the matches of this text.
    pub(crate) fn token_ends(&mut self) -> &mut TokenEnds {
        &mut self.token_ends
    }

    /// Removes the part before which no later match can end.
    pub(crate) fn discard_token_ends(&mut self) {
        self.token_ends.discard_before(self.scan.decided_len());
    }

    fn drop_within_marks(&mut self, found: &mut Vec<Match>, known: usize) {
        self.marks.drop_within_marks(found, known);
        let decided = self.scan.decided_len();
        self.marks.0.retain(|place| place.end > decided);
    }
}
