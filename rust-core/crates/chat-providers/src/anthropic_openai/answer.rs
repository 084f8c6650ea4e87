//! A chat answer as a Message.

use super::chat::{Answer, Arguments, Said, Spoken, ToolCall};
use super::json::{Object, Text, inside_quotes, put};
use super::stop::{Finish, Held};
use super::usage::{put_usage, usage_of};
use proofgate_dialect::json::{write_number, write_string};
use proofgate_dialect::{AnswerError, Asked, Usage};

/// The id of an answer whose provider gives none.
pub(super) const NO_ID: &str = "msg_0";

/// Appends to `out` the Message that says what a chat answer says, and returns its usage.
///
/// The usage is all 0 when the provider gives none. `out` stays as it was on an error.
///
/// # Errors
/// [`AnswerError::Failed`] when the body is an error under a status of success ([`error`](super::error) writes it), or ends with
/// one. [`AnswerError::Malformed`] when it is no chat answer, or a tool's arguments are no JSON object and were not cut off either.
///
/// Source: Anthropic's API reference, Messages; OpenAI's API reference, Chat Completions.
pub fn answer(body: &[u8], asked: &Asked, out: &mut Vec<u8>) -> Result<Usage, AnswerError> {
    let start = out.len();
    let usage = put_answer(body, asked, out);
    if usage.is_err() {
        out.truncate(start);
    }
    usage
}

fn put_answer(body: &[u8], asked: &Asked, out: &mut Vec<u8>) -> Result<Usage, AnswerError> {
    let answer = Answer::read(body)?;
    if answer.error("").is_some() {
        return Err(AnswerError::Failed("an error with a success status"));
    }
    let choice = answer.choice().ok_or(AnswerError::Malformed("no choices"))?;
    let said = choice
        .message
        .as_ref()
        .ok_or(AnswerError::Malformed("no message"))?;
    let finish = choice.finish_reason().map_or(Finish::Done, Finish::of);
    let id = inside_quotes(answer.id).unwrap_or(NO_ID);
    put(out, "{\"id\":\"");
    put(out, id);
    put(out, "\",\"type\":\"message\",\"role\":\"assistant\",\"model\":");
    write_string(out, &asked.model);
    put(out, ",\"content\":[");
    let held = put_content(said, id, finish, asked.keeps_signatures, out)?;
    put(out, "],\"stop_reason\":\"");
    put(out, finish.stop_reason(held)?);
    put(out, "\",\"stop_sequence\":null,\"usage\":");
    let usage = answer.usage().as_ref().and_then(usage_of).unwrap_or_default();
    put_usage(&usage, out);
    out.push(b'}');
    Ok(usage)
}

/// Writes the blocks of an answer: pieces of one kind in a row are one block.
fn put_content(
    said: &Said<'_>,
    id: &str,
    finish: Finish,
    keeps_signatures: bool,
    out: &mut Vec<u8>,
) -> Result<Held, AnswerError> {
    let mut held = Held::default();
    let start = out.len();
    // Whether the open block, if there is one, is one of thinking.
    let mut open: Option<bool> = None;
    said.each(|piece| {
        let (text, thinks) = match piece {
            Spoken::Thinking(text) => (text, true),
            Spoken::Text(text) => (text, false),
            Spoken::Refusal(text) => {
                held.refusal = true;
                (text, false)
            }
            Spoken::Sealed(_) => ("", true),
        };
        if open != Some(thinks) {
            end_block(open, "", out);
            put(out, if out.len() > start { "," } else { "" });
            put(out, if thinks { THINKING } else { TEXT });
            open = Some(thinks);
        }
        put(out, text);
        if let Spoken::Sealed(sealed) = piece {
            end_block(open.take(), &sealed.signature(), out);
        }
        Ok::<(), AnswerError>(())
    })?;
    let calls = said.tool_calls.as_deref().unwrap_or_default();
    for (at, call) in calls.iter().enumerate() {
        if let Some(sealed) = call.sealed().filter(|_| keeps_signatures) {
            if open != Some(true) {
                end_block(open, "", out);
                put(out, if out.len() > start { "," } else { "" });
                put(out, THINKING);
            }
            end_block(Some(true), &sealed.signature(), out);
            open = None;
        }
        end_block(open.take(), "", out);
        put(out, if out.len() > start { "," } else { "" });
        held.calls = true;
        held.torso |= put_call(call, id, at as u64, finish, out)?;
        // It may have been cut off before its first argument.
        held.torso |= finish.cuts() && at + 1 == calls.len() && call.arguments()?.are_blank();
    }
    end_block(open, "", out);
    Ok(held)
}

const THINKING: &str = "{\"type\":\"thinking\",\"thinking\":\"";
const TEXT: &str = "{\"type\":\"text\",\"text\":\"";

fn end_block(thinks: Option<bool>, signature: &str, out: &mut Vec<u8>) {
    match thinks {
        Some(true) => {
            put(out, "\",\"signature\":\"");
            put(out, signature);
            put(out, "\"}");
        }
        Some(false) => put(out, "\"}"),
        None => {}
    }
}

/// Writes a call; whether its arguments were cut off. A whole Message cannot hold half an object: its input is empty then, and
/// the reason to stop says that it is not to be run.
fn put_call(
    call: &ToolCall<'_>,
    answer: &str,
    at: u64,
    finish: Finish,
    out: &mut Vec<u8>,
) -> Result<bool, AnswerError> {
    let mut torso = false;
    let name = call
        .name()
        .ok_or(AnswerError::Malformed("a tool call without a name"))?;
    put(out, "{\"type\":\"tool_use\",\"id\":\"");
    put_call_id(call.id(), answer, at, out);
    put(out, "\",\"name\":\"");
    put(out, name);
    put(out, "\",\"input\":");
    match call.arguments()? {
        Arguments::None => put(out, "{}"),
        Arguments::Object(object) => put(out, object),
        Arguments::String(inside) => {
            let quoted = format!("\"{inside}\"");
            let text: Result<Text<'_>, _> = serde_json::from_str(&quoted);
            let text =
                text.map_err(|_| AnswerError::Malformed("the arguments of a tool call are invalid"))?;
            match text.0.trim() {
                "" | "null" => put(out, "{}"),
                json => match Object::of(json) {
                    Some(object) => put(out, object.0),
                    None if finish.cuts() => {
                        torso = true;
                        put(out, "{}");
                    }
                    None => return Err(AnswerError::Malformed("the arguments of a tool call are invalid")),
                },
            }
        }
    }
    out.push(b'}');
    Ok(torso)
}

/// Writes the id of a call. One that the provider left out is made of the answer's, so that no other answer has it.
pub(super) fn put_call_id(id: Option<&str>, answer: &str, at: u64, out: &mut Vec<u8>) {
    match id {
        Some(id) => put(out, id),
        None => {
            put(out, answer);
            out.push(b'_');
            write_number(out, at);
        }
    }
}
