//! Tokens in a streamed text that are longer than their rules can match: the rest of a token is removed as it arrives, and
//! not stored.

use proofgate_policy::{Engine, Match, TailEnd, TokenTail};

use crate::spans::Spans;

/// The text after the last matches, and the tokens that may continue in the following text.
#[derive(Debug, Clone, Default)]
pub(crate) struct TokenEnds {
    /// The text from `base` on, as the rules see it: a later match can end in it.
    text: String,
    base: usize,
    open_tokens: Vec<OpenToken>,
}

/// A token that extends to the end of the text.
#[derive(Debug, Clone, Copy)]
struct OpenToken {
    /// The matched part of it.
    found: Match,
    /// Its end so far.
    end: usize,
    tail: TokenTail,
}

impl TokenEnds {
    /// Adds the next piece of the text.
    pub(crate) fn push(&mut self, engine: &Engine, piece: &str) {
        if engine.has_token_tails() {
            self.text.push_str(piece);
        }
    }

    /// Adds the received parts of the open tokens to the replaced spans.
    pub(crate) fn extend_tokens(&mut self, spans: &mut Spans) {
        let Self {
            text,
            base,
            open_tokens: open,
        } = self;
        open.retain_mut(|token| {
            let TailEnd { end, is_open } = token.tail.advance(text.as_bytes(), token.end - *base);
            token.end = *base + end;
            spans.add(token.found.rule, token.found.start..token.end, false);
            is_open
        });
    }

    /// Returns where the replacement of a match ends so far. If the token continues, the text that follows also belongs to
    /// it.
    pub(crate) fn replacement_end(&mut self, engine: &Engine, found: &Match) -> usize {
        let Some(mut tail) = engine.token_tail(found.rule) else {
            return found.end;
        };
        let Some(from) = found.end.checked_sub(self.base) else {
            return found.end;
        };
        let TailEnd { end, is_open } = tail.advance(self.text.as_bytes(), from);
        let end = self.base + end;
        let is_known =
            |known: &OpenToken| (known.tail, known.end) == (tail, end) && known.found.start <= found.start;
        if is_open && !self.open_tokens.iter().any(is_known) {
            self.open_tokens.push(OpenToken {
                found: *found,
                end,
                tail,
            });
        }
        end
    }

    /// Returns the position from which the received text may belong to a token.
    pub(crate) fn undecided_start(&self) -> Option<usize> {
        self.open_tokens.iter().map(|token| token.end).min()
    }

    /// Removes the text before `decided`, except the text with which open tokens may continue.
    pub(crate) fn discard_before(&mut self, decided: usize) {
        let from = self.undecided_start().map_or(decided, |end| end.min(decided));
        let most = from.saturating_sub(self.base).min(self.text.len());
        let count = (0..=most)
            .rev()
            .find(|at| self.text.is_char_boundary(*at))
            .unwrap_or(0);
        self.text.drain(..count);
        self.base += count;
    }
}
