//! Messages as the input items of a response.

use std::collections::HashSet;

use crate::openai_responses::reasoning;
use proofgate_chat_request::{
    ChatRequest, ContentPart, DroppedFields, File, MediaSource, Message, MessagePath, PartContent, Role,
    ToolInvocation, raw_json, sanitize_call_id,
};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json::{write_all, write_member, write_string};
use proofgate_dialect::json_text::JsonText;

/// The maximum length of a `call_id` in bytes (OpenAI's error `string_above_max_length`).
const MAX_CALL_ID_BYTES: usize = 64;

/// Writes the member `input`, with a comma before it.
pub(super) fn write(
    chat: &ChatRequest<'_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let mut customs = HashSet::new();
    write_all(out, &[",\"input\":["]);
    let start = out.len();
    for (at, message) in chat.messages.iter().flatten().enumerate() {
        let place = MessagePath::message(at);
        let role = message.read_role(place, losses)?;
        let pieces = chat.message_parts(message, place, losses)?;
        match role {
            Role::System | Role::User => {
                start_message(message.role.as_deref().unwrap_or_default(), out);
                write_content(message, &pieces, losses, out)?;
                write_all(out, &["},"]);
            }
            Role::Assistant => {
                let calls = message.calls(place, losses)?;
                let of_customs = calls.iter().filter(|call| call.is_custom);
                customs.extend(of_customs.map(|call| call.id.to_string()));
                if !write_assistant(message, &pieces, &calls, losses, out)? {
                    message.drop_reasoning_text(place, losses)?;
                }
            }
            Role::Tool => {
                let id = message.answered_call_id(place)?;
                let kind = match customs.contains(id) {
                    true => "custom_tool_call_output",
                    false => "function_call_output",
                };
                write_all(out, &["{\"type\":\"", kind, "\",\"call_id\":"]);
                write_string(out, &sanitize_call_id(id, |_| true, MAX_CALL_ID_BYTES));
                write_all(out, &[",\"output\":"]);
                write_content(message, &pieces, losses, out)?;
                write_all(out, &["},"]);
            }
        }
    }
    if out.len() == start {
        return Err(UntranslatableRequest::new(
            "messages",
            "at least one message is required",
        ));
    }
    out.pop();
    out.push(b']');
    Ok(())
}

fn start_message(role: &str, out: &mut Vec<u8>) {
    let head = ["{\"type\":\"message\",\"role\":\"", role, "\",\"content\":"];
    write_all(out, &head);
}

/// Writes the content as a string or as a list of parts.
fn write_content(
    message: &Message<'_>,
    pieces: &[ContentPart<'_>],
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    if let Some(text) = message.content.and_then(JsonText::from_raw) {
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
        write_content_part(piece, losses, out)?;
        write_member(out, "prompt_cache_breakpoint", raw_json(piece.breakpoint));
        out.push(b'}');
    }
    out.push(b']');
    Ok(())
}

/// Writes a part up to its end.
fn write_content_part(
    piece: &ContentPart<'_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    match &piece.content {
        PartContent::Text(text) => write_all(out, &["{\"type\":\"input_text\",\"text\":", text.raw()]),
        PartContent::Image(image) => {
            image.media(piece.path)?;
            write_all(out, &["{\"type\":\"input_image\""]);
            write_member(out, "image_url", image.url.map(JsonText::raw));
            let detail = image.detail.map_or("\"auto\"", JsonText::raw);
            write_member(out, "detail", Some(detail));
        }
        PartContent::File(file) => write_file(file, piece.path, losses, out)?,
        PartContent::Audio(..) => return Err(piece.misplaced_error()),
    }
    Ok(())
}

/// Writes a file by its data or its id. A URL instead of data is fetched by the provider.
fn write_file(
    file: &File<'_>,
    place: MessagePath,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    write_all(out, &["{\"type\":\"input_file\""]);
    if file.file_id.is_some() {
        write_member(out, "file_id", file.file_id.map(JsonText::raw));
        return Ok(());
    }
    let (data, name) = (
        file.file_data.map(JsonText::raw),
        file.filename.map(JsonText::raw),
    );
    if matches!(file.media(place)?, MediaSource::Url(_)) {
        if let Some(name) = name {
            losses.record_field("messages[].content[].file.filename", name);
        }
        write_member(out, "file_url", data);
        return Ok(());
    }
    write_member(out, "filename", name);
    write_member(out, "file_data", data);
    Ok(())
}

/// Writes reasoning, text and calls; returns whether there is reasoning to send back. Reasoning alone is left out, because
/// the provider refuses it without the output that followed.
fn write_assistant(
    message: &Message<'_>,
    pieces: &[ContentPart<'_>],
    calls: &[ToolInvocation<'_, '_>],
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<bool, UntranslatableRequest> {
    let start = out.len();
    let has_reasoning = reasoning::write(message, losses, out);
    let behind_reasoning = out.len();
    write_assistant_text(pieces, out)?;
    if let Some(refusal) = message.refusal_text() {
        start_message("assistant", out);
        write_all(out, &[refusal.raw(), "},"]);
    }
    for call in calls {
        write_call(call, out);
    }
    if out.len() == behind_reasoning && has_reasoning {
        let details = raw_json(message.reasoning_details);
        losses.record_field("messages[].reasoning_details", details.unwrap_or_default());
        out.truncate(start);
    }
    Ok(has_reasoning)
}

/// Writes consecutive texts as one message of the assistant, which can have only text.
fn write_assistant_text(pieces: &[ContentPart<'_>], out: &mut Vec<u8>) -> Result<(), UntranslatableRequest> {
    if pieces.is_empty() {
        return Ok(());
    }
    start_message("assistant", out);
    out.push(b'"');
    for piece in pieces {
        write_all(out, &[piece.text()?.inner()]);
    }
    write_all(out, &["\"},"]);
    Ok(())
}

fn write_call(call: &ToolInvocation<'_, '_>, out: &mut Vec<u8>) {
    let (kind, argument) = match call.is_custom {
        true => ("custom_tool_call", "input"),
        false => ("function_call", "arguments"),
    };
    write_all(out, &["{\"type\":\"", kind, "\",\"call_id\":"]);
    write_string(out, &sanitize_call_id(call.id, |_| true, MAX_CALL_ID_BYTES));
    write_all(out, &[",\"name\":"]);
    write_string(out, call.name);
    write_member(out, argument, Some(call.raw_payload()));
    write_all(out, &["},"]);
}
