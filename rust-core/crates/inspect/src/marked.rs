//! The scan of texts in which values were replaced before: a client sends back what its answers held.
//!
//! The rules see a line where the name of a rule or the number of a mask stands, so that nothing matches because of these.
//! What lies within a mark is no match at all; what reaches beyond it is one.

use std::ops::Range;
use std::time::Duration;

use proofgate_policy::{
    Budget, Engine, Fault, Mark, Marks, Match, Profile, Scan, Scope, Scratch, Step, StreamScan,
};

use crate::token_ends::TokenEnds;

/// As a value would go on with it: what follows a mark may be the rest of one.
const FILLING: char = '_';

/// The marks of a text, in order.
#[derive(Debug, Clone, Default)]
struct Places(Vec<Range<usize>>);

impl Places {
    /// Appends `text` with its marks filled to `out`, up to where it is decided: that is returned. `base` is where the
    /// text begins.
    fn fill(&mut self, marks: &Marks, text: &str, base: usize, out: &mut String) -> usize {
        let mut at = 0;
        loop {
            match marks.find(text, at) {
                None => {
                    out.push_str(&text[at..]);
                    return text.len();
                }
                Some(Mark::Begun(start)) => {
                    out.push_str(&text[at..start]);
                    return start;
                }
                Some(Mark::Whole(range)) => {
                    out.push_str(&text[at..=range.start]);
                    out.extend(std::iter::repeat_n(FILLING, range.len() - 2));
                    out.push(']');
                    at = range.end;
                    self.0.push(base + range.start..base + range.end);
                }
            }
        }
    }

    /// Drops those of the matches from the numbered one on that lie within a mark.
    fn spare(&self, found: &mut Vec<Match>, known: usize) {
        if self.0.is_empty() {
            return;
        }
        let mut number = 0;
        found.retain(|found| {
            number += 1;
            number <= known || !self.hold(found)
        });
    }

    fn hold(&self, found: &Match) -> bool {
        let next = self.0.partition_point(|place| place.end < found.end);
        self.0.get(next).is_some_and(|place| place.start <= found.start)
    }
}

/// The scan of a text that is there as a whole, in slices of time.
#[derive(Debug, Default)]
pub(crate) struct WholeScan {
    scan: Scan,
    /// Whether marks were looked for.
    is_read: bool,
    places: Places,
    /// The text with its marks filled, if there are any.
    filled: String,
}

impl WholeScan {
    /// As [`Scan::step`].
    #[allow(clippy::too_many_arguments, reason = "what every scan is given")]
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
    ) -> Result<Step, Fault> {
        if !self.is_read {
            self.is_read = true;
            self.read(engine.marks(), text);
        }
        let Self {
            scan, places, filled, ..
        } = self;
        let text = if places.0.is_empty() { text } else { filled };
        let known = found.len();
        let step = scan.step(engine, profile, scope, text, slice, budget, scratch, found)?;
        self.places.spare(found, known);
        Ok(step)
    }

    /// What the rules see of `text`.
    pub(crate) fn seen<'t>(&'t self, text: &'t str) -> &'t str {
        if self.places.0.is_empty() {
            text
        } else {
            &self.filled
        }
    }

    /// Bytes of memory that it takes.
    pub(crate) fn capacity(&self) -> usize {
        self.filled.capacity() + self.places.0.capacity() * size_of::<Range<usize>>()
    }

    fn read(&mut self, marks: &Marks, text: &str) {
        let Some(Mark::Whole(_)) = marks.find(text, 0) else {
            return;
        };
        self.filled.reserve(text.len());
        let decided = self.places.fill(marks, text, 0, &mut self.filled);
        self.filled.push_str(&text[decided..]);
    }
}

/// The scan of a text that arrives in pieces. What may be the beginning of a mark waits for the next piece.
#[derive(Debug, Clone, Default)]
pub(crate) struct PieceScan {
    scan: StreamScan,
    places: Places,
    /// What waits, and where it begins in the text.
    rest: String,
    begin: usize,
    /// A piece with its marks filled.
    filled: String,
    cleared: usize,
    ends: TokenEnds,
}

impl PieceScan {
    /// As [`StreamScan::push`].
    #[allow(clippy::too_many_arguments, reason = "what every scan is given")]
    pub(crate) fn push(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scope: Scope,
        piece: &str,
        budget: &mut Budget,
        scratch: &mut Scratch,
        found: &mut Vec<Match>,
    ) -> Result<usize, Fault> {
        let marks = engine.marks();
        let known = found.len();
        if self.rest.is_empty() && marks.find(piece, 0).is_none() {
            self.begin += piece.len();
            self.cleared = (self.scan).push(engine, profile, scope, piece, budget, scratch, found)?;
            self.ends.push(engine, piece);
        } else {
            self.rest.push_str(piece);
            self.filled.clear();
            let decided = (self.places).fill(marks, &self.rest, self.begin, &mut self.filled);
            self.rest.drain(..decided);
            self.begin += decided;
            let piece = &self.filled;
            self.cleared = (self.scan).push(engine, profile, scope, piece, budget, scratch, found)?;
            self.ends.push(engine, piece);
        }
        self.spare(found, known);
        Ok(match profile.holds_answers() {
            true => self.cleared,
            false => self.begin + self.rest.len(),
        })
    }

    /// As [`StreamScan::finish`].
    pub(crate) fn finish(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scope: Scope,
        budget: &mut Budget,
        scratch: &mut Scratch,
        found: &mut Vec<Match>,
    ) -> Result<(), Fault> {
        let known = found.len();
        let rest = std::mem::take(&mut self.rest);
        self.begin += rest.len();
        (self.scan).push(engine, profile, scope, &rest, budget, scratch, found)?;
        self.ends.push(engine, &rest);
        (self.scan).finish(engine, profile, scope, budget, scratch, found)?;
        self.spare(found, known);
        Ok(())
    }

    /// As [`StreamScan::decided`].
    pub(crate) fn decided(&self) -> usize {
        self.scan.decided()
    }

    /// The tokens that go on behind the matches of this text.
    pub(crate) fn ends(&mut self) -> &mut TokenEnds {
        &mut self.ends
    }

    /// Forgets what no later match can end before.
    pub(crate) fn forget_ends(&mut self) {
        self.ends.forget(self.scan.decided());
    }

    fn spare(&mut self, found: &mut Vec<Match>, known: usize) {
        self.places.spare(found, known);
        let decided = self.scan.decided();
        self.places.0.retain(|place| place.end > decided);
    }
}
