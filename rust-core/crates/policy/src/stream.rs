//! Scan of a streamed text: finds the same matches as a scan of the whole text, and holds back as little of it as possible.

use std::time::Duration;

use crate::decode::{self, MAX_TOKEN_BYTES};
use crate::fold::floor_char_boundary;
use crate::hold::HoldMode;
use crate::progress::{Progress, Reach};
use crate::scan::{Evaluation, MAX_HELD_BYTES, ReportTarget, run_guarded};
use crate::{Budget, Engine, EvaluationError, Match, Profile, Scope, Scratch};

/// The scan of a text that arrives in pieces. Keeps only its undecided end: usually the last word.
/// Finishing a clone returns the matches that would result if no text followed.
#[derive(Debug, Clone, Default)]
pub struct StreamScan {
    /// The undecided end of the text, after one decided character that a word boundary can depend on.
    tail: String,
    /// The offset of the tail in the text.
    base: usize,
    progress: Progress,
    /// The end of the part of the tail that was searched for encodings.
    tokens_scanned_to: usize,
    /// Bytes of the whole text that may be released.
    cleared: usize,
    fault: Option<EvaluationError>,
}

impl StreamScan {
    /// Creates a scan at the beginning of a text.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `text`, and appends the final matches to `found`, with offsets from the beginning of
    /// the text. Returns how many bytes from the beginning are *cleared*: no match, present or
    /// future, covers them, except reported matches and matches of rules that only flag a response.
    ///
    /// # Errors
    /// [`EvaluationError`]: there is no result, and the exchange has to be denied. Every later call returns the same error.
    #[allow(
        clippy::too_many_arguments,
        reason = "every evaluation needs all of these arguments"
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
    ) -> Result<usize, EvaluationError> {
        self.tail.push_str(text);
        self.evaluate(|stream| {
            run_guarded(
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

    /// Ends the text, and appends the matches that were still undecided. The whole text is then cleared.
    ///
    /// # Errors
    /// Same as [`StreamScan::push`].
    pub fn finish(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scope: Scope,
        budget: &mut Budget,
        scratch: &mut Scratch,
        found: &mut Vec<Match>,
    ) -> Result<(), EvaluationError> {
        self.evaluate(|stream| {
            run_guarded(
                engine,
                profile,
                scope,
                Duration::MAX,
                budget,
                scratch,
                found,
                |pass| stream.scan_end(pass),
            )
        })
    }

    /// Returns how many bytes from the beginning are decided: no match of any rule that is reported later covers them.
    #[must_use]
    pub fn decided_len(&self) -> usize {
        self.base + self.first_undecided()
    }

    fn evaluate(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), EvaluationError>,
    ) -> Result<(), EvaluationError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let outcome = work(self);
        self.fault = outcome.err();
        outcome
    }

    fn advance(&mut self, pass: &mut Evaluation<'_>) -> Result<(), EvaluationError> {
        let place = ReportTarget::AtOffset(self.base);
        pass.scan_windows(&self.tail, place, &mut self.progress)?;
        pass.scan_window(&self.tail, place, &mut self.progress, Reach::Undecided)?;

        // A token at the end of the text can grow; only complete pieces of it are final.
        let bytes = self.tail.as_bytes();
        let trailing =
            self.tokens_scanned_to + decode::trailing_token_start(&bytes[self.tokens_scanned_to..]);
        let whole = trailing + (bytes.len() - trailing) / MAX_TOKEN_BYTES * MAX_TOKEN_BYTES;
        // A pushed piece is not a time slice: its tokens are scanned to their end.
        pass.scan_tokens(&self.tail[..whole], self.tokens_scanned_to, self.base)?;
        self.tokens_scanned_to = whole;
        let waits = match pass.hold_mode {
            HoldMode::All => self.first_undecided(),
            HoldMode::MatchStarts(hold) => self
                .progress
                .hold_start()
                .min(whole + pass.first_undecided_in_open_token(hold, &bytes[whole..])?),
            HoldMode::Off => bytes.len(),
        };
        self.cleared = self.cleared.max(self.base + waits);
        if bytes.len() - self.first_undecided() > MAX_HELD_BYTES {
            return Err(EvaluationError::BudgetExceeded);
        }
        self.discard_decided();
        Ok(())
    }

    fn scan_end(&mut self, pass: &mut Evaluation<'_>) -> Result<(), EvaluationError> {
        pass.scan_windows(&self.tail, ReportTarget::AtOffset(self.base), &mut self.progress)?;
        pass.scan_window(
            &self.tail,
            ReportTarget::AtOffset(self.base),
            &mut self.progress,
            Reach::End,
        )?;
        pass.scan_tokens(&self.tail, self.tokens_scanned_to, self.base)?;
        self.tokens_scanned_to = self.tail.len();
        self.cleared = self.base + self.tail.len();
        self.discard_decided();
        Ok(())
    }

    fn first_undecided(&self) -> usize {
        self.progress.first_undecided().min(self.tokens_scanned_to)
    }

    /// Removes the decided part of the tail, except its last character.
    fn discard_decided(&mut self) {
        let count = floor_char_boundary(self.tail.as_bytes(), self.first_undecided().saturating_sub(1));
        self.tail.drain(..count);
        self.base += count;
        self.tokens_scanned_to -= count;
        self.progress.discard_prefix(count);
    }
}
