//! The runs of a request's text: what is scanned as one text.
//!
//! A run is one message, or adjacent messages of one kind of prose, over which a phrase may be cut. What tools are called
//! with, what they return and how they are described are runs of their own. No match crosses a run. What a scan finds in a
//! run depends on its text, its scope, the rules and the profile, and on nothing else of the request.

use std::ops::Range;
use std::time::Duration;

use proofgate_policy::{Budget, Engine, EvaluationError, Match, Profile, Scope, Scratch, Step};
use proofgate_providers::BodyText;

use crate::marked::FullScan;

/// A run of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Where it stands in the text.
    pub range: Range<usize>,
    /// What it is.
    pub scope: Scope,
    /// The numbers of its passages.
    pub passages: Range<usize>,
}

impl Run {
    /// The run that begins with a passage; `None` where there is no such passage.
    pub fn starting_at(text: &BodyText, passage: usize) -> Option<Run> {
        let first = text.passage(passage)?;
        let mut run = Run {
            range: first.range,
            scope: first.scope,
            passages: passage..passage + 1,
        };
        while run.scope.is_prose()
            && let Some(next) = text.passage(run.passages.end)
        {
            // Between messages of one role, one without words of another role separates nothing.
            let is_blank = || {
                text.text()
                    .get(next.range.clone())
                    .is_some_and(|text| text.trim().is_empty())
            };
            if next.scope != run.scope && !is_blank() {
                break;
            }
            run.range.end = next.range.end;
            run.passages.end += 1;
        }
        Some(run)
    }
}

/// The scan of one run, in slices of time.
#[derive(Debug, Default)]
pub struct RunScan {
    scan: FullScan,
    found: Vec<Match>,
}

impl RunScan {
    /// Goes on for about `slice` of the processor's time with the scan of a run of this text and scope, the same for every
    /// step. When it is done, [`matches`](RunScan::matches) are all that it found.
    ///
    /// # Errors
    /// [`EvaluationError`] when there is no result; the request has to be denied then.
    #[allow(clippy::too_many_arguments, reason = "what every scan is given")]
    pub fn step(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scope: Scope,
        text: &str,
        slice: Duration,
        budget: &mut Budget,
        scratch: &mut Scratch,
    ) -> Result<Step, EvaluationError> {
        if profile.is_idle_in(scope) {
            return Ok(Step::Done);
        }
        let Self { scan, found } = self;
        scan.step(engine, profile, scope, text, slice, budget, scratch, found)
    }

    /// What was found so far, with offsets from the beginning of the run, in no order.
    pub fn matches(&self) -> &[Match] {
        &self.found
    }

    /// Takes what a scan of the same run has found for what this one finds.
    pub(crate) fn set_matches(&mut self, matches: &[Match]) {
        self.found.clear();
        self.found.extend_from_slice(matches);
    }

    /// Forgets the run, for the next one.
    pub fn restart(&mut self) {
        self.scan = FullScan::default();
        self.found.clear();
    }

    /// Bytes of memory that it takes beside the text.
    pub fn capacity(&self) -> usize {
        self.found.capacity() * size_of::<Match>() + self.scan.capacity()
    }
}
