//! Translates between a client of Anthropic's Messages API and Amazon Bedrock's InvokeModel, which is nearly the same API.
//!
//! In InvokeModel, the path instead of the body names the model and determines whether the answer
//! is streamed, and the body instead of the headers has the API version and the betas. Everything
//! else is copied unchanged and in the same order.
//!
//! Answers and events are Anthropic's. Errors of the HTTP exchange and exceptions in a stream are
//! Bedrock's, and are translated to Anthropic's.

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

/// Returns whether a Bedrock model accepts Anthropic's messages, judged by its id: the id of a
/// Claude model names its vendor (`us.anthropic.claude-…`). An ARN of an inference profile or of
/// provisioned throughput that names no model may stand for any model.
#[must_use]
pub fn supports_messages(model: &str) -> bool {
    let names_a_model = ["foundation-model/", ":inference-profile/"];
    let may_be_any = model.starts_with("arn:") && !names_a_model.iter().any(|part| model.contains(part));
    may_be_any || model.contains("anthropic.")
}

/// Appends a whole answer unchanged: it is in the client's format already.
///
/// # Errors
/// Returns [`ResponseError::Malformed`] if it is not a message: Bedrock has returned an error of its own with status 200
/// (stenolabs/stenoai#361).
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
