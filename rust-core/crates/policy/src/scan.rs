//! Scans a whole text, in windows if it is long.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::budget::Clock;
use crate::decode::{self, DecodedSpan, TokenSearchResult};
use crate::fold::floor_char_boundary;
use crate::hold::HoldMode;
use crate::linear::LinearScan;
use crate::progress::{Progress, Reach};
use crate::rule_set::RuleSet;
use crate::{Budget, Engine, EvaluationError, Profile, RuleIndex, Scope, Scratch};

/// Bytes of a long text that are scanned together.
pub(crate) const WINDOW_BYTES: usize = 16 * 1024;
/// Maximum bytes held because a match is undecided.
pub(crate) const MAX_HELD_BYTES: usize = 64 * 1024;

/// A match of a rule, covering the bytes `start..end` of a text: the group `value` of its regex, or the whole match without
/// one. In a streamed text, offsets count from the beginning of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    /// The rule.
    pub rule: RuleIndex,
    /// The first byte.
    pub start: usize,
    /// The end, exclusive.
    pub end: usize,
}

/// The progress of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// More steps are needed.
    Pending,
    /// The scan is complete.
    Done,
}

impl Engine {
    /// Appends to `found` every match of the profile's rules in `text`, in no particular order, as `SEMANTICS.md` defines
    /// it.
    ///
    /// # Errors
    /// [`EvaluationError`]: there is no result, and the exchange has to be denied. `found` is unchanged.
    pub fn scan(
        &self,
        profile: &Profile,
        scope: Scope,
        text: &str,
        budget: &mut Budget,
        scratch: &mut Scratch,
        found: &mut Vec<Match>,
    ) -> Result<(), EvaluationError> {
        let known = found.len();
        let mut scan = Scan::new();
        loop {
            match scan.step(self, profile, scope, text, Duration::MAX, budget, scratch, found) {
                Ok(Step::Pending) => {}
                Ok(Step::Done) => return Ok(()),
                Err(fault) => {
                    found.truncate(known);
                    return Err(fault);
                }
            }
        }
    }
}

/// The scan of a whole text in time slices, between which other work can run. However it is sliced, it finds the same
/// matches as [`Engine::scan`].
#[derive(Debug, Clone, Default)]
pub struct Scan {
    progress: Progress,
    /// The end of the last window.
    window_end: usize,
    /// The end of the part that was searched for encodings; `None` until the text itself is
    /// scanned.
    tokens_scanned_to: Option<usize>,
    /// The progress of the linear score; `None` until everything else is complete.
    linear: Option<LinearScan>,
    fault: Option<EvaluationError>,
}

impl Scan {
    /// Creates a scan that has not started.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Continues the scan of `text`, which must be the same in every step, until about `slice` of
    /// CPU time is used: at least one window or one token of the text is scanned. Appends the
    /// matches to `found`. The scratch may be used for other texts between two steps.
    ///
    /// # Errors
    /// [`EvaluationError`]: there is no result, and the exchange has to be denied; matches that were found before are not
    /// valid. Every later step returns the same error.
    #[allow(
        clippy::too_many_arguments,
        reason = "every evaluation needs all of these arguments"
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
        found: &mut Vec<Match>,
    ) -> Result<Step, EvaluationError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let outcome = run_guarded(engine, profile, scope, slice, budget, scratch, found, |pass| {
            self.advance(pass, text)
        });
        self.fault = outcome.err();
        outcome
    }

    fn advance(&mut self, pass: &mut Evaluation<'_>, text: &str) -> Result<Step, EvaluationError> {
        let place = ReportTarget::AtOffset(0);
        while self.tokens_scanned_to.is_none() {
            if pass.scan_next_window(text, place, &mut self.progress, &mut self.window_end)? == Step::Done {
                pass.scan_window(text, place, &mut self.progress, Reach::End)?;
                self.tokens_scanned_to = Some(0);
            }
            if pass.clock.is_slice_over() {
                return Ok(Step::Pending);
            }
        }
        if self.linear.is_none() {
            let tokens = self.tokens_scanned_to.get_or_insert(0);
            if let Some(rest) = pass.scan_tokens(text, *tokens, 0)? {
                *tokens = rest;
                return Ok(Step::Pending);
            }
        }
        pass.scan_linear(text, self.linear.get_or_insert_default())
    }
}

/// Runs `work` inside a panic boundary. After an error `found` is unchanged; after a panic the scratch is reset.
#[allow(
    clippy::too_many_arguments,
    reason = "every evaluation needs all of these arguments"
)]
pub(crate) fn run_guarded<T>(
    engine: &Engine,
    profile: &Profile,
    scope: Scope,
    slice: Duration,
    budget: &mut Budget,
    scratch: &mut Scratch,
    found: &mut Vec<Match>,
    work: impl FnOnce(&mut Evaluation<'_>) -> Result<T, EvaluationError>,
) -> Result<T, EvaluationError> {
    if profile.engine_id != engine.id {
        return Err(EvaluationError::Internal("the profile belongs to another engine"));
    }
    let known = found.len();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        scratch.prepare(engine);
        let active = profile.active_rules(scope);
        let mut pass = Evaluation {
            engine,
            active_rules: active,
            hold_mode: profile.hold_mode(scope.direction()),
            scope,
            clock: Clock::new(budget, slice),
            scratch,
            matches: found,
        };
        let outcome = work(&mut pass);
        // An evaluation that fails is charged, too.
        pass.clock.finish().and(outcome)
    }));
    let outcome = outcome.unwrap_or_else(|_| {
        *scratch = Scratch::new();
        Err(EvaluationError::Panicked)
    });
    if outcome.is_err() {
        found.truncate(known);
    }
    outcome
}

/// The positions at which matches are reported.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReportTarget {
    /// At their own positions; the text begins at this offset.
    AtOffset(usize),
    /// All at one span, from which the scanned text was decoded. Only the first `plain` bytes
    /// appear unchanged in the text, and matches that begin in them keep their start. Matches from
    /// index `known` on are known to belong to the same token.
    Within {
        start: usize,
        end: usize,
        plain: usize,
        known: usize,
    },
}

impl ReportTarget {
    /// Returns the target for a text that was decoded from `part` of a text with this target.
    fn for_decoded(self, part: DecodedSpan, known: usize) -> Self {
        match self {
            Self::AtOffset(base) => Self::Within {
                start: base + part.start,
                end: base + part.end,
                plain: part.plain_prefix,
                known,
            },
            Self::Within {
                start,
                end,
                plain,
                known,
            } => Self::Within {
                start: start + part.start.min(plain),
                end,
                plain: part.plain_prefix.min(plain.saturating_sub(part.start)),
                known,
            },
        }
    }
}

/// The reason why a scan of tokens stops before the end of the text.
enum StopReason {
    /// The slice is over; the scan continues at this position.
    SliceOver(usize),
    Fault(EvaluationError),
}

impl From<EvaluationError> for StopReason {
    fn from(fault: EvaluationError) -> Self {
        Self::Fault(fault)
    }
}

/// An evaluation in progress.
pub(crate) struct Evaluation<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) active_rules: &'a RuleSet,
    pub(crate) hold_mode: HoldMode<'a>,
    pub(crate) scope: Scope,
    pub(crate) clock: Clock<'a>,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) matches: &'a mut Vec<Match>,
}

impl Evaluation<'_> {
    /// Scans a complete text, but not the texts encoded in it.
    fn scan_text(&mut self, text: &str, place: ReportTarget) -> Result<(), EvaluationError> {
        let mut progress = Progress::default();
        self.scan_windows(text, place, &mut progress)?;
        self.scan_window(text, place, &mut progress, Reach::End)
    }

    /// Scans a text up to its last window, which is left undecided.
    pub(crate) fn scan_windows(
        &mut self,
        text: &str,
        place: ReportTarget,
        progress: &mut Progress,
    ) -> Result<(), EvaluationError> {
        let mut end = progress.first_undecided_in_all();
        while self.scan_next_window(text, place, progress, &mut end)? == Step::Pending {}
        Ok(())
    }

    /// Scans the window after `end` and advances `end`, unless it is the last window.
    fn scan_next_window(
        &mut self,
        text: &str,
        place: ReportTarget,
        progress: &mut Progress,
        end: &mut usize,
    ) -> Result<Step, EvaluationError> {
        let next = *end + WINDOW_BYTES;
        if next >= text.len() {
            return Ok(Step::Done);
        }
        let window = &text[..floor_char_boundary(text.as_bytes(), next)];
        self.scan_window(window, place, progress, Reach::Horizon)?;
        if window.len() - progress.first_undecided() > MAX_HELD_BYTES {
            // A short part of the copy can represent much of the text, such as a run of white
            // space, so this text may be decided after all.
            self.scan_window(window, place, progress, Reach::Undecided)?;
        }
        if window.len() - progress.first_undecided() > MAX_HELD_BYTES {
            return Err(EvaluationError::BudgetExceeded);
        }
        *end = next;
        Ok(Step::Pending)
    }

    /// Scans the texts encoded in the tokens of `text` at or after `from`. The text begins at the offset `base`. Returns
    /// where to continue, if the slice ended first.
    pub(crate) fn scan_tokens(
        &mut self,
        text: &str,
        from: usize,
        base: usize,
    ) -> Result<Option<usize>, EvaluationError> {
        let bytes = text.as_bytes();
        let mut outer = std::mem::take(&mut self.scratch.decoded[0]);
        let mut searched = from;
        let outcome = decode::for_each_token(bytes, from, |found| {
            let end = match found {
                TokenSearchResult::NoToken(end) => end,
                TokenSearchResult::Token(start, end) => {
                    let known = self.matches.len();
                    decode::decode_token(&bytes[start..end], &mut outer, |decoded, part| {
                        let place = ReportTarget::AtOffset(base + start).for_decoded(part, known);
                        self.scan_text(decoded, place)?;
                        self.scan_inner_tokens(decoded, place)
                    })?;
                    end
                }
            };
            self.clock.charge_pass(end - searched)?;
            searched = end;
            if self.clock.is_slice_over() {
                Err(StopReason::SliceOver(end))
            } else {
                Ok(())
            }
        });
        self.scratch.decoded[0] = outer;
        match outcome {
            Ok(()) => Ok(None),
            Err(StopReason::SliceOver(rest)) => Ok(Some(rest)),
            Err(StopReason::Fault(fault)) => Err(fault),
        }
    }

    /// Searches for the parts of a text whose linear score reaches a rule's threshold.
    fn scan_linear(&mut self, text: &str, scan: &mut LinearScan) -> Result<Step, EvaluationError> {
        let Some((rule, weights)) = &self.engine.linear_model else {
            return Ok(Step::Done);
        };
        let least = self.engine.rules[rule.position()].min_linear_score;
        let Some(least) = least.filter(|_| self.active_rules.contains(*rule)) else {
            return Ok(Step::Done);
        };
        while let Some((passed, found)) = scan.advance(weights, least, text) {
            self.matches.extend(found.map(|part| Match {
                rule: *rule,
                start: part.start,
                end: part.end,
            }));
            self.clock.charge_pass(passed)?;
            if self.clock.is_slice_over() {
                return Ok(Step::Pending);
            }
        }
        Ok(Step::Done)
    }

    /// Scans the texts encoded in a text that was itself decoded.
    fn scan_inner_tokens(&mut self, text: &str, place: ReportTarget) -> Result<(), EvaluationError> {
        let bytes = text.as_bytes();
        let mut inner = std::mem::take(&mut self.scratch.decoded[1]);
        let outcome = decode::for_each_token(bytes, 0, |found| {
            let TokenSearchResult::Token(start, end) = found else {
                return Ok(());
            };
            self.clock.charge_pass(end - start)?;
            decode::decode_token(&bytes[start..end], &mut inner, |decoded, part| {
                let part = DecodedSpan {
                    start: start + part.start,
                    ..part
                };
                self.scan_text(decoded, place.for_decoded(part, 0))
            })
        });
        self.scratch.decoded[1] = inner;
        outcome
    }
}
