//! Messages as the items of a response's input.

use std::collections::HashSet;

use crate::openai_responses::reasoning;
use proofgate_chat_request::{
    Called, Chat, File, Losses, Media, Message, Piece, Place, Role, Said, call_id, json,
};
use proofgate_dialect::Untranslatable;
use proofgate_dialect::json::{write_all, write_member, write_string};
use proofgate_dialect::json_text::JsonText;

/// The longest `call_id` that OpenAI takes, in bytes (its error `string_above_max_length`).
const LONGEST_CALL_ID: usize = 64;

/// Writes the member `input`, a comma before it.
pub(super) fn write(chat: &Chat<'_>, losses: &mut Losses, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    let mut customs = HashSet::new();
    write_all(out, &[",\"input\":["]);
    let start = out.len();
    for (at, message) in chat.messages.iter().flatten().enumerate() {
        let place = Place::message(at);
        let role = message.role(place, losses)?;
        let pieces = chat.pieces(message, place, losses)?;
        match role {
            Role::System | Role::User => {
                begin_message(message.role.as_deref().unwrap_or_default(), out);
                write_content(message, &pieces, losses, out)?;
                write_all(out, &["},"]);
            }
            Role::Assistant => {
                let calls = message.calls(place, losses)?;
                let of_customs = calls.iter().filter(|call| call.is_custom);
                customs.extend(of_customs.map(|call| call.id.to_string()));
                if !write_assistant(message, &pieces, &calls, losses, out)? {
                    message.lose_thoughts(place, losses)?;
                }
            }
            Role::Tool => {
                let id = message.answered(place)?;
                let kind = match customs.contains(id) {
                    true => "custom_tool_call_output",
                    false => "function_call_output",
                };
                write_all(out, &["{\"type\":\"", kind, "\",\"call_id\":"]);
                write_string(out, &call_id(id, |_| true, LONGEST_CALL_ID));
                write_all(out, &[",\"output\":"]);
                write_content(message, &pieces, losses, out)?;
                write_all(out, &["},"]);
            }
        }
    }
    if out.len() == start {
        return Err(Untranslatable::new(
            "messages",
            "at least one message is required",
        ));
    }
    out.pop();
    out.push(b']');
    Ok(())
}

fn begin_message(role: &str, out: &mut Vec<u8>) {
    let head = ["{\"type\":\"message\",\"role\":\"", role, "\",\"content\":"];
    write_all(out, &head);
}

/// Writes what is said as a string or as a list of parts.
fn write_content(
    message: &Message<'_>,
    pieces: &[Piece<'_>],
    losses: &mut Losses,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    if let Some(text) = message.content.and_then(JsonText::of) {
        write_all(out, &[text.raw()]);
        return Ok(());
    }
    if pieces.is_empty() {
        write_all(out, &["\"\""]);
        return Ok(());
    }
    let mut before = "[";
    for piece in pieces {
        write_all(out, &[std::mem::replace(&mut before, ",")]);
        write_piece(piece, losses, out)?;
        write_member(out, "prompt_cache_breakpoint", json(piece.breakpoint));
        out.push(b'}');
    }
    out.push(b']');
    Ok(())
}

/// Writes a part up to its end.
fn write_piece(piece: &Piece<'_>, losses: &mut Losses, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    match &piece.said {
        Said::Text(text) => write_all(out, &["{\"type\":\"input_text\",\"text\":", text.raw()]),
        Said::Image(image) => {
            image.media(piece.place)?;
            write_all(out, &["{\"type\":\"input_image\""]);
            write_member(out, "image_url", image.url.map(JsonText::raw));
            let detail = image.detail.map_or("\"auto\"", JsonText::raw);
            write_member(out, "detail", Some(detail));
        }
        Said::File(file) => write_file(file, piece.place, losses, out)?,
        Said::Audio(..) => return Err(piece.not_here()),
    }
    Ok(())
}

/// A file by its data or its id. An address in the place of the data is one that the provider fetches.
fn write_file(
    file: &File<'_>,
    place: Place,
    losses: &mut Losses,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    write_all(out, &["{\"type\":\"input_file\""]);
    if file.file_id.is_some() {
        write_member(out, "file_id", file.file_id.map(JsonText::raw));
        return Ok(());
    }
    let (data, name) = (
        file.file_data.map(JsonText::raw),
        file.filename.map(JsonText::raw),
    );
    if matches!(file.media(place)?, Media::Web(_)) {
        if let Some(name) = name {
            losses.note("messages[].content[].file.filename", name);
        }
        write_member(out, "file_url", data);
        return Ok(());
    }
    write_member(out, "filename", name);
    write_member(out, "file_data", data);
    Ok(())
}

/// Reasoning, what was said, and the calls; whether there was reasoning that returns. Reasoning alone is left out: the provider
/// refuses it without what it led to.
fn write_assistant(
    message: &Message<'_>,
    pieces: &[Piece<'_>],
    calls: &[Called<'_, '_>],
    losses: &mut Losses,
    out: &mut Vec<u8>,
) -> Result<bool, Untranslatable> {
    let start = out.len();
    let has_reasoning = reasoning::write(message, losses, out);
    let behind_reasoning = out.len();
    write_said(pieces, out)?;
    if let Some(refusal) = message.declined() {
        begin_message("assistant", out);
        write_all(out, &[refusal.raw(), "},"]);
    }
    for call in calls {
        write_call(call, out);
    }
    if out.len() == behind_reasoning && has_reasoning {
        let details = json(message.reasoning_details);
        losses.note("messages[].reasoning_details", details.unwrap_or_default());
        out.truncate(start);
    }
    Ok(has_reasoning)
}

/// Writes texts in a row as one message of the assistant, which says text alone.
fn write_said(pieces: &[Piece<'_>], out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    if pieces.is_empty() {
        return Ok(());
    }
    begin_message("assistant", out);
    out.push(b'"');
    for piece in pieces {
        write_all(out, &[piece.text()?.inner()]);
    }
    write_all(out, &["\"},"]);
    Ok(())
}

fn write_call(call: &Called<'_, '_>, out: &mut Vec<u8>) {
    let (kind, argument) = match call.is_custom {
        true => ("custom_tool_call", "input"),
        false => ("function_call", "arguments"),
    };
    write_all(out, &["{\"type\":\"", kind, "\",\"call_id\":"]);
    write_string(out, &call_id(call.id, |_| true, LONGEST_CALL_ID));
    write_all(out, &[",\"name\":"]);
    write_string(out, call.name);
    write_member(out, argument, Some(call.given()));
    write_all(out, &["},"]);
}
