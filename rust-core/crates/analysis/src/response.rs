//! Reads a response as its client receives it, and computes its measures.

mod anthropic;
mod google;
mod json_value;
mod openai;
mod response_reader;

use crate::{AnalysisSettings, ResponseMeasurements};
use json_value::JsonValue;
use response_reader::ResponseReader;

/// The format of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseDialect {
    /// OpenAI's Chat Completions API.
    Chat,
    /// OpenAI's Completions API.
    Completions,
    /// OpenAI's Responses API.
    Responses,
    /// Anthropic's Messages API.
    Messages,
    /// Gemini's `generateContent` API.
    Gemini,
}

/// The error for a response that cannot be read in its dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadableResponse;

/// A response as its client receives it. If there are several choices or candidates, the first is read.
#[derive(Clone, Copy, Debug)]
pub struct CapturedResponse<'a> {
    /// The format of the response.
    pub dialect: ResponseDialect,
    /// Whether it is an event stream.
    pub is_event_stream: bool,
    /// The body of the response, or its beginning.
    pub body: &'a [u8],
    /// Whether the body continues beyond the captured part.
    pub is_truncated: bool,
}

impl CapturedResponse<'_> {
    /// Computes the measures of the response. Uses at most about four times its size in memory, plus 1 MiB.
    ///
    /// # Errors
    /// [`UnreadableResponse`] if no part of it can be read, or if it is not a stream and incomplete.
    pub fn measure(&self, settings: &AnalysisSettings) -> Result<ResponseMeasurements, UnreadableResponse> {
        let mut reading = ResponseReader::new(settings);
        if self.is_event_stream {
            for data in event_data(self.body) {
                // Data that is cut off or not JSON is skipped.
                if let Some(event) = JsonValue::parse(data) {
                    read_value(&mut reading, self.dialect, event, true);
                }
            }
        } else {
            let whole = JsonValue::parse(self.body).ok_or(UnreadableResponse)?;
            match self.dialect {
                // Gemini streams without `alt=sse`.
                ResponseDialect::Gemini if whole.is_list() => {
                    for part in whole.elements() {
                        read_value(&mut reading, self.dialect, part, true);
                    }
                }
                _ => read_value(&mut reading, self.dialect, whole, false),
            }
        }
        if !reading.is_response {
            return Err(UnreadableResponse);
        }
        Ok(reading.finish(self.is_truncated))
    }
}

/// Returns the data of a stream's events, each of which is on one line.
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
