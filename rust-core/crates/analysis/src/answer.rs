//! Reads an answer as its client gets it, and leaves its numbers.

mod anthropic;
mod google;
mod openai;
mod part;

use crate::refusal::begins_so;
use crate::{Distribution, Entropy, Measures, Refusal, Repetition, Settings, TokenId};
use part::Part;

/// What an answer is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's completions.
    Completions,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
    /// Gemini's generated content.
    Gemini,
}

/// It is no answer of its dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreadable;

/// An answer as its client gets it. Of several choices or candidates, the first is read.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// What it is written in.
    pub dialect: Dialect,
    /// Whether it is a stream of events.
    pub events: bool,
    /// Its body, or the beginning of it.
    pub body: &'a [u8],
    /// Whether more of it came.
    pub partly: bool,
}

/// Bytes of a text that are looked at.
const MOST_TEXT: usize = 256 * 1024;
/// Of what is told of one token, so many alternatives are looked at; providers tell twenty.
const MOST_TOLD: usize = 256;

impl Answer<'_> {
    /// What it tells. This takes at most some four times its bytes of memory, and 1 MiB.
    ///
    /// # Errors
    /// [`Unreadable`] when no part of it can be read; also when it is no stream and only partly there.
    pub fn measure(&self, settings: &Settings) -> Result<Measures, Unreadable> {
        let mut reading = Reading::new(settings);
        if self.events {
            for data in events(self.body) {
                // What is cut, or belongs to nobody, tells nothing.
                if let Some(event) = Part::whole(data) {
                    reading.take(self.dialect, event, true);
                }
            }
        } else {
            let whole = Part::whole(self.body).ok_or(Unreadable)?;
            match self.dialect {
                // Gemini's streams without `alt=sse`.
                Dialect::Gemini if whole.is_list() => {
                    for part in whole.elements() {
                        reading.take(self.dialect, part, true);
                    }
                }
                _ => reading.take(self.dialect, whole, false),
            }
        }
        if !reading.is_answer {
            return Err(Unreadable);
        }
        Ok(reading.finish(self.partly))
    }
}

/// The data of a stream's events, each of which stands in one line.
fn events(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split(|byte| matches!(byte, b'\n' | b'\r'))
        .filter_map(|line| {
            let data = line.strip_prefix(b"data:")?;
            Some(data.strip_prefix(b" ").unwrap_or(data))
        })
}

/// What has been read of an answer.
struct Reading<'s> {
    settings: &'s Settings,
    is_answer: bool,
    text: String,
    refusal: Option<Refusal>,
    cut: bool,
    tokens: u64,
    at_least: f64,
    at_most: Option<f64>,
    told: f64,
    comparable: Option<f64>,
    opening: Option<Distribution>,
}

impl<'s> Reading<'s> {
    fn new(settings: &'s Settings) -> Self {
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

    fn take(&mut self, dialect: Dialect, value: Part<'_>, is_event: bool) {
        match dialect {
            Dialect::Chat => openai::chat(self, value),
            Dialect::Completions => openai::completion(self, value),
            Dialect::Responses if is_event => openai::response_event(self, value),
            Dialect::Responses => openai::response(self, value),
            Dialect::Messages if is_event => anthropic::event(self, value),
            Dialect::Messages => anthropic::message(self, value),
            Dialect::Gemini => google::content(self, value),
        }
    }

    fn text(&mut self, text: Option<Part<'_>>) {
        if let Some(text) = text.and_then(Part::text)
            && self.text.len() + text.len() <= MOST_TEXT
        {
            self.text.push_str(&text);
        }
    }

    fn refuses(&mut self, refusal: Refusal) {
        // What the provider did says more than what the answer says.
        if self.refusal != Some(Refusal::Filtered) {
            self.refusal = Some(refusal);
        }
    }

    fn declares(&mut self, refusal: Option<Part<'_>>) {
        if refusal.and_then(Part::text).is_some_and(|text| !text.is_empty()) {
            self.refuses(Refusal::Declared);
        }
    }

    /// Takes what is told of one token: itself and its alternatives.
    fn token(&mut self, told: impl IntoIterator<Item = (TokenId, f64)>) {
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

    fn finish(self, partly_read: bool) -> Measures {
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

/// Which token an object tells, and how likely: by the token's bytes where they are told, for different ones can look the
/// same.
fn outcome([bytes, token, logarithm]: [Option<Part<'_>>; 3]) -> Option<(TokenId, f64)> {
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
fn first(list: Option<Part<'_>>) -> Option<Part<'_>> {
    list?.elements().find(|choice| {
        let index = choice.get("index").and_then(Part::count);
        index.unwrap_or(0) == 0
    })
}
