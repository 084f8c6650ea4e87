//! A Claude model on Google's Vertex AI, whose `rawPredict` and `streamRawPredict` take and give Anthropic's messages but for little:
//! the model stands in the path and not in the body, the version of the API and the betas that are used stand in the body and not
//! in the head. Whether the answer is streamed stands in both.
//!
//! Clients of Anthropic's messages are passed on otherwise as they came; those of chat completions are
//! [translated](proofgate_chat_clients::openai_anthropic) before. Answers and events are Anthropic's own, and so is the way
//! back. Errors may be Google's.
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

/// The version of Anthropic's API that Vertex AI knows.
const VERSION: &str = "vertex-2023-10-16";

/// Whether a model of Vertex AI is one of Anthropic's, as far as its id tells: they alone begin so.
#[must_use]
pub fn supports_messages(model: &str) -> bool {
    model.starts_with("claude-")
}

/// Appends the body for a request of Anthropic's messages. `betas`: those of the request that the provider may be sent.
///
/// # Errors
/// [`UntranslatableRequest`] as of [`anthropic_invoke::translate_request`]. `out` is as it was then.
pub fn translate_request(
    body: &[u8],
    betas: &[&str],
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    let asked = write_invoke_body(body, VERSION, betas, out)?;
    if asked.stream {
        // The object is open for one more field.
        out.pop();
        out.extend_from_slice(br#","stream":true}"#);
    }
    Ok(asked)
}

/// Appends the body for a request of chat completions.
///
/// # Errors
/// [`UntranslatableRequest`] as of [`openai_anthropic::translate_request`]. `out` is as it was then.
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

/// Appends a whole answer, which is the client's already.
///
/// # Errors
/// [`ResponseError::Malformed`] if it is no message.
pub fn translate_response(body: &[u8], out: &mut Vec<u8>) -> Result<(), ResponseError> {
    anthropic_invoke::translate_response(body, out)
}

/// Appends Anthropic's error body for what Vertex AI says of a failure: Anthropic's own, or Google's.
pub fn translate_error(status: u16, body: &[u8], out: &mut Vec<u8>) {
    anthropic_openai::translate_error(status, body, out);
}

/// A streamed answer, whose events are the client's already.
#[derive(Debug, Default)]
pub struct Stream(anthropic_invoke::Stream);

impl Stream {
    /// The begin of an answer.
    #[must_use]
    pub fn new() -> Self {
        Stream::default()
    }

    /// Takes one event, its name and its data, and appends what the client gets for it.
    ///
    /// # Errors
    /// None: what an event holds is the client's to read.
    pub fn push_event(
        &mut self,
        name: &str,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        self.0.push_event(EventKind::Event, name, data, out)
    }
}
