//! Translates requests and answers of Claude models on Google's Vertex AI. Its `rawPredict` and
//! `streamRawPredict` are nearly the same API as Anthropic's Messages: the model is in the path
//! instead of the body, and the API version and the betas are in the body instead of the headers.
//! Both the path and the body determine whether the answer is streamed.
//!
//! Requests of Anthropic's Messages API are otherwise unchanged; chat completions are
//! [translated](proofgate_chat_clients::openai_anthropic) first. Answers and events are in
//! Anthropic's format, and are translated back like Anthropic's. Errors may be Google's.
//!
//! Source: Google Cloud's reference, Request predictions with Claude models; `AnthropicVertex` of Anthropic's client.

use crate::anthropic_invoke;
use crate::anthropic_invoke::write_invoke_body;
use proofgate_chat_clients::openai_anthropic;
use proofgate_chat_providers::anthropic_openai;
use proofgate_dialect::json::write_string;
use proofgate_dialect::{
    EventKind, RequestContext, ResponseError, StreamStatus, Target, UntranslatableRequest,
};

/// The version of Anthropic's API that Vertex AI supports.
const VERSION: &str = "vertex-2023-10-16";

/// Returns whether a Vertex AI model is one of Anthropic's, judged by its id: only ids of
/// Anthropic's models begin with `claude-`.
#[must_use]
pub fn supports_messages(model: &str) -> bool {
    model.starts_with("claude-")
}

/// Appends the body for a Messages request. `betas` are the betas of the request that may be sent to the provider.
///
/// # Errors
/// Returns [`UntranslatableRequest`] as [`anthropic_invoke::translate_request`] does. `out` is then unchanged.
pub fn translate_request(
    body: &[u8],
    betas: &[&str],
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    let asked = write_invoke_body(body, VERSION, betas, out)?;
    if asked.stream {
        // Reopen the object for one more field.
        out.pop();
        out.extend_from_slice(br#","stream":true}"#);
    }
    Ok(asked)
}

/// Appends the body for a chat-completions request.
///
/// # Errors
/// Returns [`UntranslatableRequest`] as [`openai_anthropic::translate_request`] does. `out` is then unchanged.
pub fn translate_chat_request(
    body: &[u8],
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    let start = out.len();
    let asked = openai_anthropic::translate_request(body, target, out)?;
    let mut first = br#"{"model":"#.to_vec();
    write_string(&mut first, target.model);
    if out[start..].starts_with(&first) {
        let version = format!(r#"{{"anthropic_version":"{VERSION}""#);
        out.splice(start..start + first.len(), version.into_bytes());
    }
    Ok(asked)
}

/// Appends a whole answer unchanged: it is in the client's format already.
///
/// # Errors
/// Returns [`ResponseError::Malformed`] if it is not a message.
pub fn translate_response(body: &[u8], out: &mut Vec<u8>) -> Result<(), ResponseError> {
    anthropic_invoke::translate_response(body, out)
}

/// Appends Anthropic's error body for an error of Vertex AI, which is Anthropic's own or Google's.
pub fn translate_error(status: u16, body: &[u8], out: &mut Vec<u8>) {
    anthropic_openai::translate_error(status, body, out);
}

/// Passes on a streamed answer, whose events are in the client's format already.
#[derive(Debug, Default)]
pub struct Stream(anthropic_invoke::Stream);

impl Stream {
    /// Creates a stream at the start of an answer.
    #[must_use]
    pub fn new() -> Self {
        Stream::default()
    }

    /// Appends the client's event for one event, with its name and its data.
    ///
    /// # Errors
    /// Never returns an error: the client interprets the content of an event.
    pub fn push_event(
        &mut self,
        name: &str,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        self.0.push_event(EventKind::Event, name, data, out)
    }
}
