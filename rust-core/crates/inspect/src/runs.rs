//! The runs of a request's text: the units of scanning.
//!
//! A run is one message, or adjacent messages of one kind of prose, because a phrase may be split
//! across them. Tool arguments, tool results and tool descriptions are separate runs. No match
//! crosses a run boundary. The matches in a run depend on its text, its scope, the rules and the
//! profile, and on nothing else in the request.

use std::ops::Range;
use std::time::Duration;

use proofgate_policy::{Budget, Engine, EvaluationError, Match, Profile, Scope, Scratch, Step};
use proofgate_providers::BodyText;

use crate::text_scan::FullScan;

/// A run of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// The range of the run in the text.
    pub range: Range<usize>,
    /// The scope of all its messages.
    pub scope: Scope,
    /// The indices of its passages.
    pub passages: Range<usize>,
}

impl Run {
    /// Returns the run that begins with a passage; `None` if there is no such passage.
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
            // An empty message of another role does not separate messages of the same role.
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

/// The scan of one run, in time slices.
#[derive(Debug, Default)]
pub struct RunScan {
    scan: FullScan,
    found: Vec<Match>,
}

impl RunScan {
    /// Continues the scan of a run for about `slice` of CPU time. Text and scope must be the same
    /// in every step. When the scan is done, [`matches`](RunScan::matches) returns all matches.
    ///
    /// # Errors
    /// [`EvaluationError`] if there is no result; the request has to be denied then.
    #[allow(
        clippy::too_many_arguments,
        reason = "every scan needs all of these arguments"
    )]
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

    /// Returns the matches found so far, with offsets from the beginning of the run, in no particular order.
    pub fn matches(&self) -> &[Match] {
        &self.found
    }

    /// Uses the matches of an earlier scan of the same run as the result of this one.
    pub(crate) fn set_matches(&mut self, matches: &[Match]) {
        self.found.clear();
        self.found.extend_from_slice(matches);
    }

    /// Resets the scan for the next run.
    pub fn restart(&mut self) {
        self.scan = FullScan::default();
        self.found.clear();
    }

    /// Returns the memory in use besides the text, in bytes.
    pub fn capacity(&self) -> usize {
        self.found.capacity() * size_of::<Match>() + self.scan.capacity()
    }
}
