//! What has been read of an answer so far.

use super::part::Part;
use crate::refusal::begins_so;
use crate::{Distribution, Entropy, Measures, Refusal, Repetition, Settings, TokenId};

/// Bytes of a text that are looked at.
const MOST_TEXT: usize = 256 * 1024;
/// Alternatives that are read of one token, at most. Providers report twenty.
const MOST_TOLD: usize = 256;

/// What has been read of an answer.
pub(super) struct Reading<'s> {
    settings: &'s Settings,
    pub(super) is_answer: bool,
    text: String,
    refusal: Option<Refusal>,
    pub(super) cut: bool,
    tokens: u64,
    at_least: f64,
    at_most: Option<f64>,
    told: f64,
    comparable: Option<f64>,
    opening: Option<Distribution>,
}

impl<'s> Reading<'s> {
    pub(super) fn new(settings: &'s Settings) -> Self {
        Reading {
            settings,
            is_answer: false,
            text: String::new(),
            refusal: None,
            cut: false,
            tokens: 0,
            at_least: 0.0,
            at_most: Some(0.0),
            told: 0.0,
            comparable: Some(0.0),
            opening: None,
        }
    }

    pub(super) fn text(&mut self, text: Option<Part<'_>>) {
        if let Some(text) = text.and_then(Part::text)
            && self.text.len() + text.len() <= MOST_TEXT
        {
            self.text.push_str(&text);
        }
    }

    pub(super) fn refuses(&mut self, refusal: Refusal) {
        // What the provider did says more than what the answer says.
        if self.refusal != Some(Refusal::Filtered) {
            self.refusal = Some(refusal);
        }
    }

    pub(super) fn declares(&mut self, refusal: Option<Part<'_>>) {
        if refusal.and_then(Part::text).is_some_and(|text| !text.is_empty()) {
            self.refuses(Refusal::Declared);
        }
    }

    /// Takes what is reported of one token: itself and its alternatives.
    pub(super) fn token(&mut self, told: impl IntoIterator<Item = (TokenId, f64)>) {
        let Some(distribution) = Distribution::from_logarithms(told.into_iter().take(MOST_TOLD)) else {
            return;
        };
        self.at_least += distribution.entropy_at_least();
        let at_most = self
            .settings
            .vocabulary
            .and_then(|tokens| distribution.entropy_at_most(tokens));
        self.at_most = self.at_most.zip(at_most).map(|(sum, more)| sum + more);
        self.told += 1.0 - distribution.rest();
        let depth = self.settings.depth.clamp(1, Settings::DEEPEST);
        let truncated = distribution.truncated(depth);
        let least = truncated.as_ref().map(Distribution::entropy_at_least);
        self.comparable = self.comparable.zip(least).map(|(sum, more)| sum + more);
        if self.tokens == 0 {
            self.opening = truncated;
        }
        self.tokens += 1;
    }

    pub(super) fn finish(self, partly_read: bool) -> Measures {
        let mean = |sum: f64| sum / self.tokens as f64;
        let entropy = (self.tokens > 0).then(|| Entropy {
            tokens: self.tokens,
            at_least: mean(self.at_least),
            at_most: self.at_most.map(mean),
            told: mean(self.told),
            comparable: self.comparable.map(mean),
        });
        let guessed = begins_so(&self.text).then_some(Refusal::Opening);
        Measures {
            entropy,
            opening: self.opening,
            tokens: None,
            refusal: self.refusal.or(guessed),
            cut: self.cut,
            repetition: Repetition::of(&self.text),
            text_bytes: self.text.len(),
            partly_read,
        }
    }
}

/// Which token an object names, and how likely it is. The token's bytes decide where they are there, for different tokens
/// can look the same.
pub(super) fn outcome([bytes, token, logarithm]: [Option<Part<'_>>; 3]) -> Option<(TokenId, f64)> {
    let byte = |byte: Part<'_>| byte.count().and_then(|byte| u8::try_from(byte).ok());
    let bytes = bytes
        .filter(|bytes| bytes.is_list())
        .and_then(|bytes| bytes.elements().map(byte).collect::<Option<Vec<u8>>>());
    let token = match bytes {
        Some(bytes) => TokenId::of(&bytes),
        None => TokenId::of(token?.text()?.as_bytes()),
    };
    Some((token, logarithm?.number()?))
}

/// The first of several choices or candidates, which may say that it is.
pub(super) fn first(list: Option<Part<'_>>) -> Option<Part<'_>> {
    list?.elements().find(|choice| {
        let index = choice.get("index").and_then(Part::count);
        index.unwrap_or(0) == 0
    })
}
