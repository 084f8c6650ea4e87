//! Reads an answer as its client gets it, and leaves its numbers.

mod anthropic;
mod google;
mod openai;
mod part;
mod reading;

use crate::{Measures, Settings};
use part::Part;
use reading::Reading;

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
                    take(&mut reading, self.dialect, event, true);
                }
            }
        } else {
            let whole = Part::whole(self.body).ok_or(Unreadable)?;
            match self.dialect {
                // Gemini's streams without `alt=sse`.
                Dialect::Gemini if whole.is_list() => {
                    for part in whole.elements() {
                        take(&mut reading, self.dialect, part, true);
                    }
                }
                _ => take(&mut reading, self.dialect, whole, false),
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

fn take(reading: &mut Reading<'_>, dialect: Dialect, value: Part<'_>, is_event: bool) {
    match dialect {
        Dialect::Chat => openai::chat(reading, value),
        Dialect::Completions => openai::completion(reading, value),
        Dialect::Responses if is_event => openai::response_event(reading, value),
        Dialect::Responses => openai::response(reading, value),
        Dialect::Messages if is_event => anthropic::event(reading, value),
        Dialect::Messages => anthropic::message(reading, value),
        Dialect::Gemini => google::content(reading, value),
    }
}
