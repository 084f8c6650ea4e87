//! Finding matches: one text at once, in windows if it is long.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::budget::Clock;
use crate::decode::{self, Decoded, Found};
use crate::fold::floor_boundary;
use crate::hold::Holding;
use crate::linear::LinearScan;
use crate::progress::{Progress, Reach};
use crate::rule_set::RuleSet;
use crate::{Budget, Engine, Fault, Profile, RuleIndex, Scope, Scratch};

/// Bytes of a long text that are looked at together.
pub(crate) const WINDOW: usize = 16 * 1024;
/// Bytes that are held at most because a match is undecided.
pub(crate) const MOST_HELD: usize = 64 * 1024;

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
    /// [`Fault`]: there is no result, and the exchange has to be denied. `found` is as it was.
    pub fn scan(
        &self,
        profile: &Profile,
        scope: Scope,
        text: &str,
        budget: &mut Budget,
        scratch: &mut Scratch,
        found: &mut Vec<Match>,
    ) -> Result<(), Fault> {
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
    windowed: usize,
    /// Up to where encodings have been looked for, once the text itself is scanned.
    tokens: Option<usize>,
    /// How far the text is scored, once everything else is done.
    linear: Option<LinearScan>,
    fault: Option<Fault>,
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
    /// [`Fault`]: there is no result, and the exchange has to be denied; what was found before counts for nothing. So does
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
    ) -> Result<Step, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let outcome = guarded(engine, profile, scope, slice, budget, scratch, found, |pass| {
            self.advance(pass, text)
        });
        self.fault = outcome.err();
        outcome
    }

    fn advance(&mut self, pass: &mut Pass<'_>, text: &str) -> Result<Step, Fault> {
        let place = Reporting::At(0);
        while self.tokens.is_none() {
            if pass.next_window(text, place, &mut self.progress, &mut self.windowed)? == Step::Done {
                pass.window(text, place, &mut self.progress, Reach::End)?;
                self.tokens = Some(0);
            }
            if pass.clock.is_slice_over() {
                return Ok(Step::Pending);
            }
        }
        if self.linear.is_none() {
            let tokens = self.tokens.get_or_insert(0);
            if let Some(rest) = pass.tokens(text, *tokens, 0)? {
                *tokens = rest;
                return Ok(Step::Pending);
            }
        }
        pass.linear(text, self.linear.get_or_insert_default())
    }
}

/// Runs `work` behind the panic boundary. After a fault `found` is as it was; after a panic the scratch starts anew.
#[allow(
    clippy::too_many_arguments,
    reason = "the engine's context, which every evaluation is given"
)]
pub(crate) fn guarded<T>(
    engine: &Engine,
    profile: &Profile,
    scope: Scope,
    slice: Duration,
    budget: &mut Budget,
    scratch: &mut Scratch,
    found: &mut Vec<Match>,
    work: impl FnOnce(&mut Pass<'_>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    if profile.engine != engine.id {
        return Err(Fault::Internal("the profile belongs to another engine"));
    }
    let known = found.len();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        scratch.prepare(engine);
        let active = profile.active(scope);
        let mut pass = Pass {
            engine,
            active,
            holding: profile.holding(scope.direction()),
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
        Err(Fault::Panicked)
    });
    if outcome.is_err() {
        found.truncate(known);
    }
    outcome
}

/// Where matches are reported.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reporting {
    /// Where they are; the text begins at this offset.
    At(usize),
    /// All at one span: what they were found in was decoded from it. Only the first `plain` bytes stand there as they are,
    /// and matches begin where they do begin. Matches from the numbered one on are known to be of the same token.
    Within {
        start: usize,
        end: usize,
        plain: usize,
        known: usize,
    },
}

impl Reporting {
    /// Of what was decoded from a part of the text that is reported so.
    fn decoded(self, part: Decoded, known: usize) -> Self {
        match self {
            Self::At(base) => Self::Within {
                start: base + part.start,
                end: base + part.end,
                plain: part.plain,
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
                plain: part.plain.min(plain.saturating_sub(part.start)),
                known,
            },
        }
    }
}

/// Why the tokens of a text are left.
enum Halt {
    /// The slice is over: from here it goes on.
    Slice(usize),
    Fault(Fault),
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// One evaluation under way.
pub(crate) struct Pass<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) active: &'a RuleSet,
    pub(crate) holding: Holding<'a>,
    pub(crate) scope: Scope,
    pub(crate) clock: Clock<'a>,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) found: &'a mut Vec<Match>,
}

impl Pass<'_> {
    /// Scans a text that is there as a whole, without what is encoded in it.
    fn whole(&mut self, text: &str, place: Reporting) -> Result<(), Fault> {
        let mut progress = Progress::default();
        self.windows(text, place, &mut progress)?;
        self.window(text, place, &mut progress, Reach::End)
    }

    /// Decides a text up to its last window, which is left.
    pub(crate) fn windows(
        &mut self,
        text: &str,
        place: Reporting,
        progress: &mut Progress,
    ) -> Result<(), Fault> {
        let mut end = progress.reached();
        while self.next_window(text, place, progress, &mut end)? == Step::Pending {}
        Ok(())
    }

    /// Decides the window behind `end` and moves `end` on, unless it is the last one.
    fn next_window(
        &mut self,
        text: &str,
        place: Reporting,
        progress: &mut Progress,
        end: &mut usize,
    ) -> Result<Step, Fault> {
        let next = *end + WINDOW;
        if next >= text.len() {
            return Ok(Step::Done);
        }
        let window = &text[..floor_boundary(text.as_bytes(), next)];
        self.window(window, place, progress, Reach::Horizon)?;
        if window.len() - progress.held() > MOST_HELD {
            // Little copy can stand for much text, a run of white space: perhaps nothing in it is undecided.
            self.window(window, place, progress, Reach::Undecided)?;
        }
        if window.len() - progress.held() > MOST_HELD {
            return Err(Fault::Budget);
        }
        *end = next;
        Ok(Step::Pending)
    }

    /// Scans what is encoded in the tokens of `text` at or behind `from`. The text begins at the offset `base`. Says from
    /// where it has to go on, if the slice was over before.
    pub(crate) fn tokens(&mut self, text: &str, from: usize, base: usize) -> Result<Option<usize>, Fault> {
        let bytes = text.as_bytes();
        let mut outer = std::mem::take(&mut self.scratch.decoded[0]);
        let mut searched = from;
        let outcome = decode::tokens(bytes, from, |found| {
            let end = match found {
                Found::Nothing(end) => end,
                Found::Token(start, end) => {
                    let known = self.found.len();
                    decode::decodings(&bytes[start..end], &mut outer, |decoded, part| {
                        let place = Reporting::At(base + start).decoded(part, known);
                        self.whole(decoded, place)?;
                        self.inner_tokens(decoded, place)
                    })?;
                    end
                }
            };
            self.clock.passed(end - searched)?;
            searched = end;
            if self.clock.is_slice_over() {
                Err(Halt::Slice(end))
            } else {
                Ok(())
            }
        });
        self.scratch.decoded[0] = outer;
        match outcome {
            Ok(()) => Ok(None),
            Err(Halt::Slice(rest)) => Ok(Some(rest)),
            Err(Halt::Fault(fault)) => Err(fault),
        }
    }

    /// Looks for parts of a text whose linear score a rule wants to know of.
    fn linear(&mut self, text: &str, scan: &mut LinearScan) -> Result<Step, Fault> {
        let Some((rule, weights)) = &self.engine.linear else {
            return Ok(Step::Done);
        };
        let least = self.engine.rules[rule.position()].least;
        let Some(least) = least.filter(|_| self.active.contains(*rule)) else {
            return Ok(Step::Done);
        };
        while let Some((passed, found)) = scan.advance(weights, least, text) {
            self.found.extend(found.map(|part| Match {
                rule: *rule,
                start: part.start,
                end: part.end,
            }));
            self.clock.passed(passed)?;
            if self.clock.is_slice_over() {
                return Ok(Step::Pending);
            }
        }
        Ok(Step::Done)
    }

    /// Scans what is encoded in a text that was decoded itself.
    fn inner_tokens(&mut self, text: &str, place: Reporting) -> Result<(), Fault> {
        let bytes = text.as_bytes();
        let mut inner = std::mem::take(&mut self.scratch.decoded[1]);
        let outcome = decode::tokens(bytes, 0, |found| {
            let Found::Token(start, end) = found else {
                return Ok(());
            };
            self.clock.passed(end - start)?;
            decode::decodings(&bytes[start..end], &mut inner, |decoded, part| {
                let part = Decoded {
                    start: start + part.start,
                    ..part
                };
                self.whole(decoded, place.decoded(part, 0))
            })
        });
        self.scratch.decoded[1] = inner;
        outcome
    }
}
