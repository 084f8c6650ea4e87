//! Translates between a client that counts the tokens of Anthropic's messages and Amazon Bedrock's
//! CountTokens, which accepts the body of an [InvokeModel](crate::anthropic_invoke) request and
//! returns its number of tokens.
//!
//! Source: botocore 1.44.8, operation `CountTokens`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::anthropic_invoke::write_invoke_body;
use proofgate_dialect::{RequestContext, ResponseError, UntranslatableRequest};

/// The version of Anthropic's API that every Claude model on Bedrock supports.
const VERSION: &str = "bedrock-2023-05-31";

/// Returns the model id for counting tokens, or `None` if Bedrock cannot count them. It is the id of a Claude model without
/// the geography of an inference profile, which CountTokens refuses (pydantic/pydantic-ai#3367, Portkey-AI/gateway#1436).
#[must_use]
pub fn counting_model_id(model: &str) -> Option<&str> {
    let at = model.find("anthropic.claude")?;
    let (geography, id) = model.split_at(at);
    let is_geography =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    (geography.is_empty() || geography.strip_suffix('.').is_some_and(is_geography)).then_some(id)
}

/// Appends the body of CountTokens for a request that counts tokens. `betas` are the betas of the request that may be sent
/// to the provider.
///
/// # Errors
/// Returns [`UntranslatableRequest`] as [`anthropic_invoke::translate_request`](crate::anthropic_invoke::translate_request)
/// does. `out` is then unchanged.
pub fn translate_request(
    body: &[u8],
    betas: &[&str],
    out: &mut Vec<u8>,
) -> Result<RequestContext, UntranslatableRequest> {
    let mut invoked = Vec::with_capacity(body.len().saturating_add(128));
    let asked = write_invoke_body(body, VERSION, betas, &mut invoked)?;
    if let Some(most) = default_max_tokens(body) {
        // Reopen the object for one more field.
        invoked.pop();
        invoked.extend_from_slice(format!(r#","max_tokens":{most}}}"#).as_bytes());
    }
    out.extend_from_slice(br#"{"input":{"invokeModel":{"body":""#);
    out.extend_from_slice(BASE64_STANDARD.encode(invoked).as_bytes());
    out.extend_from_slice(br#""}}}"#);
    Ok(asked)
}

/// Returns the `max_tokens` that InvokeModel requires if the client set none: one more than the thinking budget.
fn default_max_tokens(body: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Request<'b> {
        #[serde(borrow, default)]
        max_tokens: Option<&'b RawValue>,
        #[serde(default)]
        thinking: Option<Thinking>,
    }
    #[derive(Deserialize)]
    struct Thinking {
        #[serde(default)]
        budget_tokens: u64,
    }
    match serde_json::from_slice::<Request<'_>>(body) {
        Ok(request) if request.max_tokens.is_some() => None,
        Ok(request) => {
            let budget = request.thinking.map_or(0, |thinking| thinking.budget_tokens);
            Some(budget.saturating_add(1))
        }
        Err(_) => None,
    }
}

/// Appends the answer.
///
/// # Errors
/// Returns [`ResponseError::Malformed`] if it has no number of tokens.
pub fn translate_response(body: &[u8], out: &mut Vec<u8>) -> Result<(), ResponseError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer {
        input_tokens: u64,
    }
    let Ok(Answer { input_tokens }) = serde_json::from_slice(body) else {
        return Err(ResponseError::Malformed("not a token count"));
    };
    out.extend_from_slice(format!(r#"{{"input_tokens":{input_tokens}}}"#).as_bytes());
    Ok(())
}
