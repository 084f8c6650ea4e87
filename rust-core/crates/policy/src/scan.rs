//! Finding matches: one text at once, in windows if it is long.

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

/// Bytes of a long text that are looked at together.
pub(crate) const WINDOW_BYTES: usize = 16 * 1024;
/// Bytes that are held at most because a match is undecided.
pub(crate) const MAX_HELD_BYTES: usize = 64 * 1024;

/// A rule matched, and is about `start..end` (bytes) of a text: the group `value` of its regex, or without one all of the
/// match. In a text that arrives in pieces, counted from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    /// The rule.
    pub rule: RuleIndex,
    /// The first byte.
    pub start: usize,
    /// The byte behind the last one.
    pub end: usize,
}

/// How far a step has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// There is more to do: another step is needed.
    Pending,
    /// All is done.
    Done,
}

impl Engine {
    /// Appends to `found` every match of the profile's rules in `text`, in no order, as `SEMANTICS.md` defines it.
    ///
    /// # Errors
    /// [`EvaluationError`]: there is no result, and the exchange has to be denied. `found` is as it was.
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

/// The scan of a whole text in slices of time, between which others can be served. However it is sliced, it finds what
/// [`Engine::scan`] finds.
#[derive(Debug, Clone, Default)]
pub struct Scan {
    progress: Progress,
    /// Where the last window ended.
    window_end: usize,
    /// Up to where encodings have been looked for, once the text itself is scanned.
    tokens_scanned_to: Option<usize>,
    /// How far the text is scored, once everything else is done.
    linear: Option<LinearScan>,
    fault: Option<EvaluationError>,
}

impl Scan {
    /// A scan that has not begun.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Goes on with the scan of `text`, the same for every step, until about `slice` of the processor's time is used: at
    /// least one window of the text or one token of it is taken. Appends to `found` what it finds. The scratch may serve
    /// other texts between two steps.
    ///
    /// # Errors
    /// [`EvaluationError`]: there is no result, and the exchange has to be denied; what was found before counts for nothing. So does
    /// every later step.
    #[allow(
        clippy::too_many_arguments,
        reason = "the engine's context, which every evaluation is given"
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

/// Runs `work` behind the panic boundary. After a fault `found` is as it was; after a panic the scratch starts anew.
#[allow(
    clippy::too_many_arguments,
    reason = "the engine's context, which every evaluation is given"
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
        let active = profile.active(scope);
        let mut pass = Evaluation {
            engine,
            active_rules: active,
            hold_mode: profile.hold_mode(scope.direction()),
            scope,
            clock: Clock::new(budget, slice),
            scratch,
            found,
        };
        let outcome = work(&mut pass);
        // A fault is charged, too.
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

/// Where matches are reported.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReportTarget {
    /// Where they are; the text begins at this offset.
    AtOffset(usize),
    /// All at one span: what they were found in was decoded from it. Only the first `plain` bytes stand there as they are,
    /// and matches begin where they do begin. Matches from the numbered one on are known to be of the same token.
    Within {
        start: usize,
        end: usize,
        plain: usize,
        known: usize,
    },
}

impl ReportTarget {
    /// Of what was decoded from a part of the text that is reported so.
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

/// Why the tokens of a text are left.
enum StopReason {
    /// The slice is over: from here it goes on.
    SliceOver(usize),
    Fault(EvaluationError),
}

impl From<EvaluationError> for StopReason {
    fn from(fault: EvaluationError) -> Self {
        Self::Fault(fault)
    }
}

/// One evaluation under way.
pub(crate) struct Evaluation<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) active_rules: &'a RuleSet,
    pub(crate) hold_mode: HoldMode<'a>,
    pub(crate) scope: Scope,
    pub(crate) clock: Clock<'a>,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) found: &'a mut Vec<Match>,
}

impl Evaluation<'_> {
    /// Scans a text that is there as a whole, without what is encoded in it.
    fn scan_text(&mut self, text: &str, place: ReportTarget) -> Result<(), EvaluationError> {
        let mut progress = Progress::default();
        self.scan_windows(text, place, &mut progress)?;
        self.scan_window(text, place, &mut progress, Reach::End)
    }

    /// Decides a text up to its last window, which is left.
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

    /// Decides the window behind `end` and moves `end` on, unless it is the last one.
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
            // Little copy can stand for much text, a run of white space: perhaps nothing in it is undecided.
            self.scan_window(window, place, progress, Reach::Undecided)?;
        }
        if window.len() - progress.first_undecided() > MAX_HELD_BYTES {
            return Err(EvaluationError::BudgetExceeded);
        }
        *end = next;
        Ok(Step::Pending)
    }

    /// Scans what is encoded in the tokens of `text` at or behind `from`. The text begins at the offset `base`. Says from
    /// where it has to go on, if the slice was over before.
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
                    let known = self.found.len();
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

    /// Looks for parts of a text whose linear score a rule wants to know of.
    fn scan_linear(&mut self, text: &str, scan: &mut LinearScan) -> Result<Step, EvaluationError> {
        let Some((rule, weights)) = &self.engine.linear_model else {
            return Ok(Step::Done);
        };
        let least = self.engine.rules[rule.position()].least;
        let Some(least) = least.filter(|_| self.active_rules.contains(*rule)) else {
            return Ok(Step::Done);
        };
        while let Some((passed, found)) = scan.advance(weights, least, text) {
            self.found.extend(found.map(|part| Match {
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

    /// Scans what is encoded in a text that was decoded itself.
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
