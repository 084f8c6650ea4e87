//! Messages as the items of a response's input.

use std::collections::HashSet;

use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::chat_place::Place;
use crate::json::write_string;
use crate::losses::has_effect;
use crate::openai_anthropic::json_text::JsonText;
use crate::openai_anthropic::left_out::LeftOut;
use crate::openai_responses::body::{Message, ToolCall};
use crate::openai_responses::parts::Content;
use crate::openai_responses::reasoning;

/// The longest `call_id` that OpenAI takes, in bytes (its error `string_above_max_length`).
const LONGEST_CALL_ID: usize = 64;

/// Writes the member `input`, a comma before it.
pub(super) fn write(
    body: &str,
    messages: &[Message<'_>],
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let customs = custom_calls(messages);
    out.extend_from_slice(b",\"input\":[");
    let start = out.len();
    for (at, message) in messages.iter().enumerate() {
        let place = Place::message(at);
        let content = Content::read(body, message.content, place)?;
        leave_out(message, place, left_out)?;
        match message.role.as_deref() {
            Some(role @ ("system" | "developer" | "user")) => {
                begin_message(role, out);
                content.write(place, left_out, out)?;
                out.extend_from_slice(b"},");
            }
            Some("assistant") => write_assistant(message, &content, place, left_out, out)?,
            Some("tool") => write_output(message, &content, &customs, place, left_out, out)?,
            _ => {
                let message = "the roles are system, developer, user, assistant and tool";
                return Err(Untranslatable::new(place.field("role"), message));
            }
        }
    }
    if out.len() == start {
        return Err(Untranslatable::new("messages", "there has to be a message"));
    }
    out.pop();
    out.push(b']');
    Ok(())
}

/// The ids of calls of custom tools: their results are items of another type.
fn custom_calls<'m>(messages: &'m [Message<'_>]) -> HashSet<&'m str> {
    let calls = messages
        .iter()
        .flat_map(|message| message.tool_calls.iter().flatten());
    let customs = calls.filter(|call| call.kind.as_deref() == Some("custom"));
    customs.filter_map(|call| call.id.as_deref()).collect()
}

/// What a message has and an item has not.
fn leave_out(message: &Message<'_>, place: Place, left_out: &mut LeftOut) -> Result<(), Untranslatable> {
    // The name of a tool is known from the call that its result answers.
    let name = message.name.filter(|_| message.role.as_deref() != Some("tool"));
    for (loss, field, value) in [
        ("messages[].audio", "audio", message.audio),
        ("messages[].function_call", "function_call", message.function_call),
        ("messages[].name", "name", name),
        ("messages[].annotations", "annotations", message.annotations),
        ("messages[].extra_content", "extra_content", message.extra_content),
        ("messages[].images", "images", message.images),
        ("cache_control", "cache_control", message.cache_control),
    ] {
        if value.is_some_and(|value| has_effect(loss, value.get())) {
            left_out.leave(loss, || place.field(field))?;
        }
    }
    left_out.leave_unknown(message.unknown.as_deref(), |name| place.field(name))
}

fn begin_message(role: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"message\",\"role\":\"");
    out.extend_from_slice(role.as_bytes());
    out.extend_from_slice(b"\",\"content\":");
}

/// Reasoning, what was said, and the calls. Reasoning alone is left out: the provider refuses it without what it led to.
fn write_assistant(
    message: &Message<'_>,
    content: &Content<'_>,
    place: Place,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let start = out.len();
    let has_reasoning = reasoning::write(message.reasoning_details, left_out, out);
    if !has_reasoning {
        for (name, text) in [
            ("messages[].reasoning", message.reasoning),
            ("messages[].reasoning_content", message.reasoning_content),
        ] {
            if text.is_some_and(|text| has_effect(name, text.get())) {
                left_out.note(name);
            }
        }
    }
    let behind_reasoning = out.len();
    content.write_said(place, left_out, out)?;
    if let Some(refusal) = message.refusal.filter(|refusal| !refusal.is_empty()) {
        begin_message("assistant", out);
        out.extend_from_slice(refusal.raw().as_bytes());
        out.extend_from_slice(b"},");
    }
    for (at, call) in message.tool_calls.iter().flatten().enumerate() {
        write_call(call, at, place, left_out, out)?;
    }
    if out.len() == behind_reasoning && has_reasoning {
        left_out.note("messages[].reasoning_details");
        out.truncate(start);
    }
    Ok(())
}

fn write_call(
    call: &ToolCall<'_>,
    at: usize,
    place: Place,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let path = |field: &str| place.field(&format!("tool_calls[{at}].{field}"));
    left_out.leave_unknown(call.unknown.as_deref(), path)?;
    for (loss, value) in [
        ("messages[].extra_content", call.extra_content),
        ("cache_control", call.cache_control),
    ] {
        if value.is_some_and(|value| has_effect(loss, value.get())) {
            left_out.note(loss);
        }
    }
    let (kind, inner, name, argument, value) = match call.kind.as_deref() {
        None | Some("function") => {
            let function = call.function.as_ref();
            let arguments = function
                .and_then(|function| function.arguments)
                .map(JsonText::raw);
            let arguments = arguments.filter(|arguments| *arguments != "\"\"");
            (
                "function_call",
                function.and_then(|function| function.unknown.as_deref()),
                function.and_then(|function| function.name),
                "arguments",
                arguments.unwrap_or("\"{}\""),
            )
        }
        Some("custom") => {
            let custom = call.custom.as_ref();
            (
                "custom_tool_call",
                custom.and_then(|custom| custom.unknown.as_deref()),
                custom.and_then(|custom| custom.name),
                "input",
                custom
                    .and_then(|custom| custom.input)
                    .map_or("\"\"", JsonText::raw),
            )
        }
        Some(_) => {
            let message = "a call is of the type function or custom";
            return Err(Untranslatable::new(path("type"), message));
        }
    };
    left_out.leave_unknown(inner, path)?;
    let (Some(id), Some(name)) = (call.id.as_deref(), name) else {
        let message = "a call has to have an id and the name of a tool";
        return Err(Untranslatable::new(path("id"), message));
    };
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"call_id\":");
    write_call_id(id, out);
    for piece in [",\"name\":", name.raw(), ",\"", argument, "\":", value, "},"] {
        out.extend_from_slice(piece.as_bytes());
    }
    Ok(())
}

fn write_output(
    message: &Message<'_>,
    content: &Content<'_>,
    customs: &HashSet<&str>,
    place: Place,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let id = message.tool_call_id.as_deref().filter(|id| !id.is_empty());
    let id =
        id.ok_or_else(|| Untranslatable::new(place.field("tool_call_id"), "the id of a call is missing"))?;
    let kind = match customs.contains(id) {
        true => "custom_tool_call_output",
        false => "function_call_output",
    };
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"call_id\":");
    write_call_id(id, out);
    out.extend_from_slice(b",\"output\":");
    content.write(place, left_out, out)?;
    out.extend_from_slice(b"},");
    Ok(())
}

/// Writes the id of a call. One that is too long (other providers make such) keeps its begin and gets a hash of the whole, the
/// same in the call and in its result.
fn write_call_id(id: &str, out: &mut Vec<u8>) {
    if id.len() <= LONGEST_CALL_ID {
        return write_string(out, id);
    }
    let kept = id
        .char_indices()
        .take_while(|(at, char)| at + char.len_utf8() <= 47);
    let end = kept.last().map_or(0, |(at, char)| at + char.len_utf8());
    let kept = id.get(..end).unwrap_or_default();
    write_string(out, &format!("{kept}_{:016x}", fnv(id.as_bytes())));
}

/// FNV-1a of 64 bits: it has to tell the calls of one conversation apart, and to be the same everywhere.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Whether a part has a mark for another provider's cache, which is noted.
pub(super) fn note_cache(value: Option<&RawValue>, left_out: &mut LeftOut) {
    if value.is_some_and(|value| has_effect("cache_control", value.get())) {
        left_out.note("cache_control");
    }
}
