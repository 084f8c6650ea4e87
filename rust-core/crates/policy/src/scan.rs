//! Finding matches: one text at once, in windows if it is long.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::deadline::Clock;
use crate::decode;
use crate::fold::floor_boundary;
use crate::rule_set::RuleSet;
use crate::window::{Progress, Reach};
use crate::{Deadline, Direction, Engine, Fault, Profile, RuleIndex, Scratch};

/// Bytes of a long text that are looked at together.
pub(crate) const WINDOW: usize = 16 * 1024;
/// Bytes that are held at most because a match is undecided.
pub(crate) const MOST_HELD: usize = 64 * 1024;

/// A rule matched `start..end` (bytes) of a text; in a text that arrives in pieces, counted from its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    /// The rule.
    pub rule: RuleIndex,
    /// The first byte.
    pub start: usize,
    /// The byte behind the last one.
    pub end: usize,
}

impl Engine {
    /// Appends to `found` every match of the profile's rules in `text`, in no order, as `SEMANTICS.md` defines it.
    ///
    /// # Errors
    /// [`Fault`]: there is no result, and the exchange has to be denied. `found` is as it was.
    pub fn scan(
        &self,
        profile: &Profile,
        direction: Direction,
        text: &str,
        deadline: &Deadline,
        scratch: &mut Scratch,
        found: &mut Vec<Match>,
    ) -> Result<(), Fault> {
        guarded(self, profile, direction, deadline, scratch, found, |pass| {
            pass.whole(text, Place::At(0))?;
            pass.tokens(text, 0, 0)
        })
    }
}

/// Runs `work` behind the panic boundary. After a fault `found` is as it was; after a panic the scratch starts anew.
pub(crate) fn guarded(
    engine: &Engine,
    profile: &Profile,
    direction: Direction,
    deadline: &Deadline,
    scratch: &mut Scratch,
    found: &mut Vec<Match>,
    work: impl FnOnce(&mut Pass<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    if profile.engine != engine.id {
        return Err(Fault::Internal("the profile belongs to another engine"));
    }
    let known = found.len();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        scratch.prepare(engine);
        let active = profile.active(direction);
        let mut pass = Pass {
            engine,
            active,
            direction,
            clock: Clock::new(deadline),
            scratch,
            found,
        };
        work(&mut pass)?;
        pass.clock.finish()
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
pub(crate) enum Place {
    /// Where they are; the text begins at this offset.
    At(usize),
    /// All at one span: what they were found in was decoded from it. Matches from the numbered one on are known to be
    /// of the same token.
    Within { start: usize, end: usize, known: usize },
}

/// One evaluation under way.
pub(crate) struct Pass<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) active: &'a RuleSet,
    pub(crate) direction: Direction,
    pub(crate) clock: Clock,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) found: &'a mut Vec<Match>,
}

impl Pass<'_> {
    /// Scans a text that is there as a whole, without what is encoded in it.
    fn whole(&mut self, text: &str, place: Place) -> Result<(), Fault> {
        let mut progress = Progress::default();
        self.windows(text, place, &mut progress)?;
        self.window(text, place, &mut progress, Reach::End)
    }

    /// Decides a text up to its last window, which is left.
    pub(crate) fn windows(&mut self, text: &str, place: Place, progress: &mut Progress) -> Result<(), Fault> {
        let mut end = progress.held() + WINDOW;
        while end < text.len() {
            let window = &text[..floor_boundary(text.as_bytes(), end)];
            self.window(window, place, progress, Reach::Horizon)?;
            if window.len() - progress.held() > MOST_HELD {
                return Err(Fault::Budget);
            }
            end += WINDOW;
        }
        Ok(())
    }

    /// Scans what is encoded in the tokens of `text` at or behind `from`. The text begins at the offset `base`.
    pub(crate) fn tokens(&mut self, text: &str, from: usize, base: usize) -> Result<(), Fault> {
        let bytes = text.as_bytes();
        let mut outer = std::mem::take(&mut self.scratch.decoded[0]);
        let outcome = decode::tokens(bytes, from, |start, end| {
            self.clock.passed(end - start)?;
            let known = self.found.len();
            decode::decodings(&bytes[start..end], &mut outer, |decoded, first, last| {
                let place = Place::Within {
                    start: base + start + first,
                    end: base + start + last,
                    known,
                };
                self.whole(decoded, place)?;
                self.inner_tokens(decoded, place)
            })
        });
        self.scratch.decoded[0] = outer;
        outcome
    }

    /// Scans what is encoded in a text that was decoded itself.
    fn inner_tokens(&mut self, text: &str, place: Place) -> Result<(), Fault> {
        let bytes = text.as_bytes();
        let mut inner = std::mem::take(&mut self.scratch.decoded[1]);
        let outcome = decode::tokens(bytes, 0, |start, end| {
            self.clock.passed(end - start)?;
            decode::decodings(&bytes[start..end], &mut inner, |decoded, _, _| {
                self.whole(decoded, place)
            })
        });
        self.scratch.decoded[1] = inner;
        outcome
    }
}
