use crate::anthropic_openai::chat::ChatCompletion;
use crate::anthropic_openai::finish_reason::FinishReason;
use crate::anthropic_openai::json::unquoted;
use crate::anthropic_openai::usage::usage_of;
use crate::responses_openai::events::OutputItems;
use crate::responses_openai::output::Output;
use crate::responses_openai::stream::response_base;
use proofgate_dialect::{RequestContext, ResponseError, Usage};

/// Appends the Response for a chat answer to `out`, and returns its usage.
///
/// `created` is the time of the answer in seconds since 1970. The usage is all 0 if the provider reports none. `out` is
/// unchanged on an error.
///
/// # Errors
/// Returns [`ResponseError::Failed`] if the body is an error with a success status
/// ([`translate_error`](super::translate_error) writes it), or ends with one. Returns [`ResponseError::Malformed`] if it is
/// not a chat answer, or if a tool's arguments are not a JSON object although the answer was not truncated. Returns
/// [`ResponseError::TooLarge`] for more than 8 MiB, 512 items or 128 calls.
///
/// Source: OpenAI's API reference, Responses and Chat Completions.
pub fn translate_response(
    body: &[u8],
    asked: &RequestContext,
    created: u64,
    out: &mut Vec<u8>,
) -> Result<Usage, ResponseError> {
    let answer = ChatCompletion::read(body)?;
    if answer.error("").is_some() {
        return Err(ResponseError::Failed("an error with a success status"));
    }
    let choice = answer.choice().ok_or(ResponseError::Malformed("no choices"))?;
    let said = choice.message.as_ref();
    let said = said.ok_or(ResponseError::Malformed("no message"))?;
    let items = OutputItems::new(unquoted(answer.id).unwrap_or_default(), created, false);
    let tools = asked
        .responses_context
        .as_ref()
        .map(|response| response.tools.clone());
    let mut output = Output::new(items, tools.unwrap_or_default());
    // A whole answer has no events.
    let mut events = Vec::new();
    output.push_message(said, choice.logprobs, &mut events)?;
    let finish = choice
        .finish_reason()
        .map_or(FinishReason::Completed, FinishReason::parse);
    let status = output.finish(finish, &mut events)?;
    let usage = answer.usage().as_ref().and_then(usage_of).unwrap_or_default();
    response_base(asked, created).write(status, &output.items, Some(&usage), out);
    Ok(usage)
}
