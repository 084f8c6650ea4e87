use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Why a chat request's body is not understood. None of these repeats what the body held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadRequest {
    /// The body is not one JSON object in UTF-8, or a field that is read appears twice.
    #[error("The request body is not one valid JSON object (a repeated field is not valid either).")]
    InvalidJson,
    /// `model` is absent or not a string.
    #[error("The request body needs \"model\", a non-empty string.")]
    MissingModel,
}

impl BadRequest {
    /// A stable machine code.
    pub fn code(self) -> &'static str {
        match self {
            BadRequest::InvalidJson => "invalid_json",
            BadRequest::MissingModel => "missing_model",
        }
    }
}

#[derive(Deserialize)]
struct Fields<'b> {
    #[serde(borrow)]
    model: Option<&'b RawValue>,
    stream: Option<bool>,
}

/// What is read from the body of `POST /v1/chat/completions` to route it.
#[derive(Debug, PartialEq, Eq)]
pub struct ChatRequest<'b> {
    /// The model that the client asks for.
    pub model: Cow<'b, str>,
    /// Whether the answer is to be streamed as server-sent events.
    pub stream: bool,
    model_value: Range<usize>,
}

impl<'b> ChatRequest<'b> {
    /// Reads a request body.
    ///
    /// # Errors
    /// [`BadRequest`] when the body is not a JSON object with a model.
    pub fn parse(body: &'b [u8]) -> Result<Self, BadRequest> {
        let text = std::str::from_utf8(body).map_err(|_| BadRequest::InvalidJson)?;
        // A derived struct would also read its fields from an array.
        if !text.trim_ascii_start().starts_with('{') {
            return Err(BadRequest::InvalidJson);
        }
        let fields: Fields<'b> = serde_json::from_str(text).map_err(|_| BadRequest::InvalidJson)?;
        let raw = fields.model.ok_or(BadRequest::MissingModel)?.get();
        let model = plain_string(raw)?;
        if model.is_empty() {
            return Err(BadRequest::MissingModel);
        }
        let start = raw.as_ptr() as usize - text.as_ptr() as usize;
        Ok(ChatRequest {
            model,
            stream: fields.stream.unwrap_or(false),
            model_value: start..start + raw.len(),
        })
    }

    /// Where in the body the value of `model` stands, quotes included: the bytes that another name replaces.
    pub fn model_value(&self) -> Range<usize> {
        self.model_value.clone()
    }
}

fn plain_string(raw: &str) -> Result<Cow<'_, str>, BadRequest> {
    match serde_json::from_str::<&str>(raw) {
        Ok(borrowed) => Ok(Cow::Borrowed(borrowed)),
        Err(_) => serde_json::from_str::<String>(raw)
            .map(Cow::Owned)
            .map_err(|_| BadRequest::MissingModel),
    }
}
