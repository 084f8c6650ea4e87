//! A client of Anthropic's messages, and Amazon Bedrock's InvokeModel, which takes and gives the same but for little.
//!
//! The model, and whether the answer is streamed, stand in the path and not in the body; the version of the API and the betas
//! that are used stand in the body and not in the head. Everything else passes as it came, in the order in which it came.
//!
//! Answers and events are Anthropic's own. Errors of the HTTP exchange and exceptions in a stream are Bedrock's, and become
//! Anthropic's.

mod error;
mod request;
mod stream;

pub use error::translate_error;
pub use request::translate_request;
pub(crate) use request::{OrderedFields, write_invoke_body};
pub use stream::Stream;

use std::borrow::Cow;

use serde::Deserialize;

use proofgate_dialect::ResponseError;

/// Whether a model of Bedrock takes Anthropic's messages, as far as its id tells: that of a Claude model names its vendor
/// (`us.anthropic.claude-…`). An ARN of an inference profile or of provisioned throughput that names no model may be anything.
#[must_use]
pub fn supports_messages(model: &str) -> bool {
    let names_a_model = ["foundation-model/", ":inference-profile/"];
    let may_be_any = model.starts_with("arn:") && !names_a_model.iter().any(|part| model.contains(part));
    may_be_any || model.contains("anthropic.")
}

/// Appends a whole answer, which is the client's already.
///
/// # Errors
/// [`ResponseError::Malformed`] if it is no message: Bedrock has answered 200 with an error of its own (stenolabs/stenoai#361).
pub fn translate_response(body: &[u8], out: &mut Vec<u8>) -> Result<(), ResponseError> {
    #[derive(Deserialize)]
    struct Answer<'b> {
        #[serde(borrow)]
        r#type: Cow<'b, str>,
    }
    match serde_json::from_slice::<Answer<'_>>(body) {
        Ok(answer) if answer.r#type == "message" => {
            out.extend_from_slice(body);
            Ok(())
        }
        _ => Err(ResponseError::Malformed("not a message")),
    }
}
