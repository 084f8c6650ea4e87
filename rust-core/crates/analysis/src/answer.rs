//! Reads an answer as its client gets it, and leaves its numbers.

mod anthropic;
mod google;
mod openai;
mod part;
mod reading;

use crate::{AnalysisSettings, Measures};
use part::JsonValue;
use reading::ResponseReader;

/// What an answer is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseDialect {
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
pub struct UnreadableResponse;

/// An answer as its client gets it. Of several choices or candidates, the first is read.
#[derive(Clone, Copy, Debug)]
pub struct CapturedResponse<'a> {
    /// What it is written in.
    pub dialect: ResponseDialect,
    /// Whether it is a stream of events.
    pub is_event_stream: bool,
    /// Its body, or the beginning of it.
    pub body: &'a [u8],
    /// Whether more of it came.
    pub is_truncated: bool,
}

impl CapturedResponse<'_> {
    /// What it tells. This takes at most some four times its bytes of memory, and 1 MiB.
    ///
    /// # Errors
    /// [`UnreadableResponse`] when no part of it can be read; also when it is no stream and only partly there.
    pub fn measure(&self, settings: &AnalysisSettings) -> Result<Measures, UnreadableResponse> {
        let mut reading = ResponseReader::new(settings);
        if self.is_event_stream {
            for data in event_data(self.body) {
                // What is cut, or belongs to nobody, tells nothing.
                if let Some(event) = JsonValue::parse(data) {
                    read_value(&mut reading, self.dialect, event, true);
                }
            }
        } else {
            let whole = JsonValue::parse(self.body).ok_or(UnreadableResponse)?;
            match self.dialect {
                // Gemini's streams without `alt=sse`.
                ResponseDialect::Gemini if whole.is_list() => {
                    for part in whole.elements() {
                        read_value(&mut reading, self.dialect, part, true);
                    }
                }
                _ => read_value(&mut reading, self.dialect, whole, false),
            }
        }
        if !reading.is_answer {
            return Err(UnreadableResponse);
        }
        Ok(reading.finish(self.is_truncated))
    }
}

/// The data of a stream's events, each of which stands in one line.
fn event_data(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split(|byte| matches!(byte, b'\n' | b'\r'))
        .filter_map(|line| {
            let data = line.strip_prefix(b"data:")?;
            Some(data.strip_prefix(b" ").unwrap_or(data))
        })
}

fn read_value(
    reading: &mut ResponseReader<'_>,
    dialect: ResponseDialect,
    value: JsonValue<'_>,
    is_event: bool,
) {
    match dialect {
        ResponseDialect::Chat => openai::read_chat(reading, value),
        ResponseDialect::Completions => openai::read_completion(reading, value),
        ResponseDialect::Responses if is_event => openai::read_response_event(reading, value),
        ResponseDialect::Responses => openai::read_response(reading, value),
        ResponseDialect::Messages if is_event => anthropic::read_event(reading, value),
        ResponseDialect::Messages => anthropic::read_message(reading, value),
        ResponseDialect::Gemini => google::read_content(reading, value),
    }
}
