//! Translation of a chat answer to a Message.

use super::chat::{Arguments, ChatCompletion, ChatMessage, OutputFragment, ToolCall};
use super::finish_reason::{ContentSummary, FinishReason};
use super::json::{Object, Text, unquoted, write_json};
use super::usage::{usage_of, write_usage};
use proofgate_dialect::json::{write_number, write_string};
use proofgate_dialect::{RequestContext, ResponseError, Usage};

/// The id of an answer whose provider sends none.
pub(super) const FALLBACK_ID: &str = "msg_0";

/// Appends the Message for a chat answer to `out`, and returns its usage.
///
/// The usage is all 0 if the provider reports none. `out` is unchanged on an error.
///
/// # Errors
/// Returns [`ResponseError::Failed`] if the body is an error with a success status
/// ([`translate_error`](super::translate_error) writes it), or ends with one. Returns [`ResponseError::Malformed`] if it is
/// not a chat answer, or if a tool's arguments are not a JSON object although the answer was not truncated.
///
/// Source: Anthropic's API reference, Messages; OpenAI's API reference, Chat Completions.
pub fn translate_response(
    body: &[u8],
    asked: &RequestContext,
    out: &mut Vec<u8>,
) -> Result<Usage, ResponseError> {
    let start = out.len();
    let usage = write_response(body, asked, out);
    if usage.is_err() {
        out.truncate(start);
    }
    usage
}

fn write_response(body: &[u8], asked: &RequestContext, out: &mut Vec<u8>) -> Result<Usage, ResponseError> {
    let answer = ChatCompletion::read(body)?;
    if answer.error("").is_some() {
        return Err(ResponseError::Failed("an error with a success status"));
    }
    let choice = answer.choice().ok_or(ResponseError::Malformed("no choices"))?;
    let said = choice
        .message
        .as_ref()
        .ok_or(ResponseError::Malformed("no message"))?;
    let finish = choice
        .finish_reason()
        .map_or(FinishReason::Completed, FinishReason::parse);
    let id = unquoted(answer.id).unwrap_or(FALLBACK_ID);
    write_json(out, "{\"id\":\"");
    write_json(out, id);
    write_json(out, "\",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
    write_string(out, &asked.model);
    write_json(out, ",\"content\":[");
    let held = write_content(said, id, finish, asked.returns_signatures, out)?;
    write_json(out, "],\"stop_reason\":\"");
    write_json(out, finish.stop_reason(held)?);
    write_json(out, "\",\"stop_sequence\":null,\"usage\":");
    let usage = answer.usage().as_ref().and_then(usage_of).unwrap_or_default();
    write_usage(&usage, out);
    out.push(b'}');
    Ok(usage)
}

/// Writes the blocks of an answer: consecutive pieces of one kind are one block.
fn write_content(
    said: &ChatMessage<'_>,
    id: &str,
    finish: FinishReason,
    keeps_signatures: bool,
    out: &mut Vec<u8>,
) -> Result<ContentSummary, ResponseError> {
    let mut held = ContentSummary::default();
    let start = out.len();
    // Whether the open block, if there is one, is thinking.
    let mut open: Option<bool> = None;
    said.for_each_fragment(|piece| {
        let (text, thinks) = match piece {
            OutputFragment::Thinking(text) => (text, true),
            OutputFragment::Text(text) => (text, false),
            OutputFragment::Refusal(text) => {
                held.has_refusal = true;
                (text, false)
            }
            OutputFragment::EncryptedReasoning(_) => ("", true),
        };
        if open != Some(thinks) {
            close_block(open, "", out);
            write_json(out, if out.len() > start { "," } else { "" });
            write_json(
                out,
                if thinks {
                    THINKING_BLOCK_START
                } else {
                    TEXT_BLOCK_START
                },
            );
            open = Some(thinks);
        }
        write_json(out, text);
        if let OutputFragment::EncryptedReasoning(sealed) = piece {
            close_block(open.take(), &sealed.signature(), out);
        }
        Ok::<(), ResponseError>(())
    })?;
    let calls = said.tool_calls.as_deref().unwrap_or_default();
    for (at, call) in calls.iter().enumerate() {
        if let Some(sealed) = call.encrypted_reasoning().filter(|_| keeps_signatures) {
            if open != Some(true) {
                close_block(open, "", out);
                write_json(out, if out.len() > start { "," } else { "" });
                write_json(out, THINKING_BLOCK_START);
            }
            close_block(Some(true), &sealed.signature(), out);
            open = None;
        }
        close_block(open.take(), "", out);
        write_json(out, if out.len() > start { "," } else { "" });
        held.has_calls = true;
        held.has_truncated_call |= write_call(call, id, at as u64, finish, out)?;
        // It may have been truncated before its first argument.
        held.has_truncated_call |=
            finish.is_truncated() && at + 1 == calls.len() && call.arguments()?.are_blank();
    }
    close_block(open, "", out);
    Ok(held)
}

const THINKING_BLOCK_START: &str = "{\"type\":\"thinking\",\"thinking\":\"";
const TEXT_BLOCK_START: &str = "{\"type\":\"text\",\"text\":\"";

fn close_block(thinks: Option<bool>, signature: &str, out: &mut Vec<u8>) {
    match thinks {
        Some(true) => {
            write_json(out, "\",\"signature\":\"");
            write_json(out, signature);
            write_json(out, "\"}");
        }
        Some(false) => write_json(out, "\"}"),
        None => {}
    }
}

/// Writes a call; returns whether its arguments were truncated. A whole Message cannot contain half an object: its input is
/// empty then, and the stop reason shows that it must not be run.
fn write_call(
    call: &ToolCall<'_>,
    answer: &str,
    at: u64,
    finish: FinishReason,
    out: &mut Vec<u8>,
) -> Result<bool, ResponseError> {
    let mut torso = false;
    let name = call
        .name()
        .ok_or(ResponseError::Malformed("a tool call without a name"))?;
    write_json(out, "{\"type\":\"tool_use\",\"id\":\"");
    write_call_id(call.id(), answer, at, out);
    write_json(out, "\",\"name\":\"");
    write_json(out, name);
    write_json(out, "\",\"input\":");
    match call.arguments()? {
        Arguments::None => write_json(out, "{}"),
        Arguments::Object(object) => write_json(out, object),
        Arguments::String(inside) => {
            let quoted = format!("\"{inside}\"");
            let text: Result<Text<'_>, _> = serde_json::from_str(&quoted);
            let text =
                text.map_err(|_| ResponseError::Malformed("the arguments of a tool call are invalid"))?;
            match text.0.trim() {
                "" | "null" => write_json(out, "{}"),
                json => match Object::parse(json) {
                    Some(object) => write_json(out, object.0),
                    None if finish.is_truncated() => {
                        torso = true;
                        write_json(out, "{}");
                    }
                    None => {
                        return Err(ResponseError::Malformed(
                            "the arguments of a tool call are invalid",
                        ));
                    }
                },
            }
        }
    }
    out.push(b'}');
    Ok(torso)
}

/// Writes the id of a call. A missing id is derived from the answer's id, so that no other answer has it.
pub(super) fn write_call_id(id: Option<&str>, answer: &str, at: u64, out: &mut Vec<u8>) {
    match id {
        Some(id) => write_json(out, id),
        None => {
            write_json(out, answer);
            out.push(b'_');
            write_number(out, at);
        }
    }
}
