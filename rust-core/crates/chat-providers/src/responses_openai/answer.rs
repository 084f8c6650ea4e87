use crate::anthropic_openai::chat::Answer;
use crate::anthropic_openai::json::inside_quotes;
use crate::anthropic_openai::stop::Finish;
use crate::anthropic_openai::usage::usage_of;
use crate::responses_openai::events::Items;
use crate::responses_openai::output::Output;
use crate::responses_openai::stream::head_of;
use proofgate_dialect::{AnswerError, Asked, Usage};

/// Appends to `out` the Response that says what a chat answer says, and returns its usage.
///
/// `created` is the time of the answer in seconds since 1970. The usage is all 0 when the provider gives none. `out` stays as it was
/// on an error.
///
/// # Errors
/// [`AnswerError::Failed`] when the body is an error under a status of success ([`error`](super::error) writes it), or ends with
/// one. [`AnswerError::Malformed`] when it is no chat answer, or a tool's arguments are no JSON object and were not cut off either;
/// [`AnswerError::TooLarge`] at more than 8 MiB, 512 items or 128 calls.
///
/// Source: OpenAI's API reference, Responses and Chat Completions.
pub fn answer(body: &[u8], asked: &Asked, created: u64, out: &mut Vec<u8>) -> Result<Usage, AnswerError> {
    let answer = Answer::read(body)?;
    if answer.error("").is_some() {
        return Err(AnswerError::Failed("an error with a success status"));
    }
    let choice = answer.choice().ok_or(AnswerError::Malformed("no choices"))?;
    let said = choice.message.as_ref();
    let said = said.ok_or(AnswerError::Malformed("no message"))?;
    let items = Items::new(inside_quotes(answer.id).unwrap_or_default(), created, false);
    let tools = asked.response.as_ref().map(|response| response.tools.clone());
    let mut output = Output::new(items, tools.unwrap_or_default());
    // No event is written of a whole answer.
    let mut events = Vec::new();
    output.take(said, choice.logprobs, &mut events)?;
    let finish = choice.finish_reason().map_or(Finish::Done, Finish::of);
    let status = output.finish(finish, &mut events)?;
    let usage = answer.usage().as_ref().and_then(usage_of).unwrap_or_default();
    head_of(asked, created).write(status, &output.items, Some(&usage), out);
    Ok(usage)
}
