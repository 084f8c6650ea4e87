//! One text that arrives in pieces: the same matches as at once, and as little of it held back as possible.

use std::time::Duration;

use crate::decode::{self, TOKEN_LIMIT};
use crate::fold::floor_boundary;
use crate::hold::Holding;
use crate::progress::{Progress, Reach};
use crate::scan::{MOST_HELD, Pass, Reporting, guarded};
use crate::{Budget, Engine, Fault, Match, Profile, Scope, Scratch};

/// The scan of a text that arrives in pieces. Keeps the undecided end of it only: usually the last word. A clone of it can
/// be ended to learn what would match if nothing followed.
#[derive(Debug, Clone, Default)]
pub struct StreamScan {
    /// The undecided end of the text, after one decided character that a word boundary can depend on.
    tail: String,
    /// Where the tail begins in the text.
    base: usize,
    progress: Progress,
    /// Up to where in the tail encodings have been looked for.
    tokens: usize,
    /// Bytes of the whole text that may leave.
    cleared: usize,
    fault: Option<Fault>,
}

impl StreamScan {
    /// The beginning of a text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `text`, and appends to `found` the matches that are final, with offsets from the beginning of the text.
    /// Returns how many bytes from the beginning are *cleared*: no match, present or future, touches them except those
    /// that were reported, and those of rules that only flag an answer.
    ///
    /// # Errors
    /// [`Fault`]: there is no result, and the exchange has to be denied. So does every later call.
    #[allow(
        clippy::too_many_arguments,
        reason = "the engine's context, which every evaluation is given"
    )]
    pub fn push(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scope: Scope,
        text: &str,
        budget: &mut Budget,
        scratch: &mut Scratch,
        found: &mut Vec<Match>,
    ) -> Result<usize, Fault> {
        self.tail.push_str(text);
        self.evaluate(|stream| {
            guarded(
                engine,
                profile,
                scope,
                Duration::MAX,
                budget,
                scratch,
                found,
                |pass| stream.advance(pass),
            )
        })?;
        Ok(self.cleared)
    }

    /// Ends the text, and appends the matches that were still undecided. All of the text is cleared then.
    ///
    /// # Errors
    /// As [`StreamScan::push`].
    pub fn finish(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scope: Scope,
        budget: &mut Budget,
        scratch: &mut Scratch,
        found: &mut Vec<Match>,
    ) -> Result<(), Fault> {
        self.evaluate(|stream| {
            guarded(
                engine,
                profile,
                scope,
                Duration::MAX,
                budget,
                scratch,
                found,
                |pass| stream.end(pass),
            )
        })
    }

    /// How many bytes from the beginning are decided: no match that is reported later touches them, of any rule.
    #[must_use]
    pub fn decided(&self) -> usize {
        self.base + self.held()
    }

    fn evaluate(&mut self, work: impl FnOnce(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let outcome = work(self);
        self.fault = outcome.err();
        outcome
    }

    fn advance(&mut self, pass: &mut Pass<'_>) -> Result<(), Fault> {
        let place = Reporting::At(self.base);
        pass.windows(&self.tail, place, &mut self.progress)?;
        pass.window(&self.tail, place, &mut self.progress, Reach::Undecided)?;

        // A token that reaches the end can grow; only what is cut off from it is final.
        let bytes = self.tail.as_bytes();
        let trailing = self.tokens + decode::trailing_token(&bytes[self.tokens..]);
        let whole = trailing + (bytes.len() - trailing) / TOKEN_LIMIT * TOKEN_LIMIT;
        // A piece is no slice: its tokens are scanned to their end.
        pass.tokens(&self.tail[..whole], self.tokens, self.base)?;
        self.tokens = whole;
        let waits = match pass.holding {
            Holding::All => self.held(),
            Holding::Acting(hold) => self
                .progress
                .waits()
                .min(whole + pass.open_token(hold, &bytes[whole..])?),
            Holding::Nothing => bytes.len(),
        };
        self.cleared = self.cleared.max(self.base + waits);
        if bytes.len() - self.held() > MOST_HELD {
            return Err(Fault::Budget);
        }
        self.forget();
        Ok(())
    }

    fn end(&mut self, pass: &mut Pass<'_>) -> Result<(), Fault> {
        pass.windows(&self.tail, Reporting::At(self.base), &mut self.progress)?;
        pass.window(
            &self.tail,
            Reporting::At(self.base),
            &mut self.progress,
            Reach::End,
        )?;
        pass.tokens(&self.tail, self.tokens, self.base)?;
        self.tokens = self.tail.len();
        self.cleared = self.base + self.tail.len();
        self.forget();
        Ok(())
    }

    fn held(&self) -> usize {
        self.progress.held().min(self.tokens)
    }

    /// Takes what is decided away from the tail, except its last character.
    fn forget(&mut self) {
        let count = floor_boundary(self.tail.as_bytes(), self.held().saturating_sub(1));
        self.tail.drain(..count);
        self.base += count;
        self.tokens -= count;
        self.progress.forget(count);
    }
}
