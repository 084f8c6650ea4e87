//! Tool results. In chat completions they can only be text: only a user message can contain an
//! image or a document.

use super::body::{Block, ContentPart, has_type};
use super::content::{JoinedTextWriter, PartWriter, required_block_text};
use super::dropped_fields::JsonPath;
use super::json::write_json;
use super::message_writer::MessageWriter;
use super::mismatch::read_block_content;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json::write_string;

/// The prefix of a tool result that is an error, because chat completions have no flag for it.
const ERROR_PREFIX: &str = "\"Error:";

/// The text of a tool result whose content is in a user message.
const RESULT_IN_USER_MESSAGE: &str = "\"The result is in the next user message.\"";

/// Writes the text of a result; returns whether it has other content, which is moved to the user's message.
pub(super) fn write(
    place: &JsonPath<'_>,
    block: &Block<'_>,
    turns: &mut MessageWriter<'_>,
) -> Result<bool, UntranslatableRequest> {
    let read = ["type", "tool_use_id", "content", "is_error"];
    turns.dropped_fields.drop_unread_fields(
        place,
        block.present_fields(),
        &read,
        block.unknown.as_deref(),
    )?;
    let id = block.tool_use_id.as_ref();
    let id = id.ok_or_else(|| place.field("tool_use_id").missing_error())?;
    turns.start_message("{\"role\":\"tool\",\"tool_call_id\":");
    write_string(turns.out, &id.0);
    write_json(turns.out, ",\"content\":");
    if turns.destination.is_intermediate() && has_media(place, block)? {
        write_parts(place, block, turns)?;
        turns.out.push(b'}');
        return Ok(false);
    }
    let start = turns.out.len();
    let (mut joined, mut shows) = (JoinedTextWriter::default(), false);
    if let Some(content) = &block.content {
        let place = place.field("content");
        for (at, piece) in read_block_content(&place, content)?.parts().enumerate() {
            match piece {
                ContentPart::Text(text) => joined.push(text, turns.out),
                ContentPart::Block(block) if is_media_block(block) => shows = true,
                ContentPart::Block(block) => {
                    let text = required_block_text(&place.element(at), block, turns.dropped_fields)?;
                    joined.push(text, turns.out);
                }
            }
        }
    }
    if !joined.has_text() {
        write_json(turns.out, if shows { RESULT_IN_USER_MESSAGE } else { "\"\"" });
    }
    if block.is_error == Some(true) {
        // The opening quote of the text becomes the space after the prefix.
        let text = turns.out.split_off(start);
        write_json(turns.out, ERROR_PREFIX);
        turns.out.push(b' ');
        turns.out.extend_from_slice(text.get(1..).unwrap_or_default());
    }
    turns.out.push(b'}');
    Ok(shows)
}

/// Returns whether a result has an image or a document.
fn has_media(place: &JsonPath<'_>, result: &Block<'_>) -> Result<bool, UntranslatableRequest> {
    let Some(content) = &result.content else {
        return Ok(false);
    };
    let content = read_block_content(&place.field("content"), content)?;
    let mut pieces = content.parts();
    Ok(pieces.any(|piece| matches!(piece, ContentPart::Block(block) if is_media_block(block))))
}

/// Writes a result as parts, if the destination accepts them.
fn write_parts(
    place: &JsonPath<'_>,
    result: &Block<'_>,
    turns: &mut MessageWriter<'_>,
) -> Result<(), UntranslatableRequest> {
    turns.out.push(b'[');
    let mut parts = PartWriter::new(turns.destination, turns.dropped_fields, turns.out);
    if result.is_error == Some(true) {
        parts.write_text("Error:");
    }
    if let Some(content) = &result.content {
        let place = place.field("content");
        for (at, piece) in read_block_content(&place, content)?.parts().enumerate() {
            match piece {
                ContentPart::Text(text) => parts.write_text(text),
                ContentPart::Block(block) => parts.write_block(&place.element(at), block)?,
            }
        }
    }
    turns.out.push(b']');
    Ok(())
}

/// Returns whether only a user message can contain this block of a tool result.
fn is_media_block(block: &Block<'_>) -> bool {
    has_type(block, "image") || has_type(block, "document")
}

/// Writes the images and documents of a tool result.
pub(super) fn write_media(
    place: &JsonPath<'_>,
    result: &Block<'_>,
    parts: &mut PartWriter<'_>,
) -> Result<(), UntranslatableRequest> {
    let Some(content) = &result.content else {
        return Ok(());
    };
    let place = place.field("content");
    for (at, piece) in read_block_content(&place, content)?.parts().enumerate() {
        match piece {
            ContentPart::Block(block) if is_media_block(block) => {
                parts.write_block(&place.element(at), block)?
            }
            _ => {}
        }
    }
    Ok(())
}
