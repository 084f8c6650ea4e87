//! Results of tools. Chat completions take text alone there: only the user can show a picture or a document.

use super::body::{Block, Piece, is};
use super::content::{Joined, Parts, only_text_of};
use super::json::put;
use super::left_out::Place;
use super::misfit::content_within;
use super::turns::Turns;
use proofgate_dialect::Untranslatable;
use proofgate_dialect::json::write_string;

/// What a tool's result begins with that is an error: chat completions have no flag for it.
const ERROR: &str = "\"Error:";

/// What a tool's result says of what only the user can show.
const SHOWN: &str = "\"The result is in the next user message.\"";

/// Writes the text of a result; whether there is something else in it, which stands with what the user says.
pub(super) fn write(
    place: &Place<'_>,
    block: &Block<'_>,
    turns: &mut Turns<'_>,
) -> Result<bool, Untranslatable> {
    let read = ["type", "tool_use_id", "content", "is_error"];
    turns
        .left_out
        .others(place, block.given(), &read, block.unknown.as_deref())?;
    let id = block.tool_use_id.as_ref();
    let id = id.ok_or_else(|| place.field("tool_use_id").required())?;
    turns.begin("{\"role\":\"tool\",\"tool_call_id\":");
    write_string(turns.out, &id.0);
    put(turns.out, ",\"content\":");
    if turns.way.goes_on() && shows_something(place, block)? {
        put_parts(place, block, turns)?;
        turns.out.push(b'}');
        return Ok(false);
    }
    let start = turns.out.len();
    let (mut joined, mut shows) = (Joined::default(), false);
    if let Some(content) = &block.content {
        let place = place.field("content");
        for (at, piece) in content_within(&place, content)?.pieces().enumerate() {
            match piece {
                Piece::Text(text) => joined.push(text, turns.out),
                Piece::Block(block) if is_shown(block) => shows = true,
                Piece::Block(block) => {
                    let text = only_text_of(&place.item(at), block, turns.left_out)?;
                    joined.push(text, turns.out);
                }
            }
        }
    }
    if !joined.begun() {
        put(turns.out, if shows { SHOWN } else { "\"\"" });
    }
    if block.is_error == Some(true) {
        // The quote that begins the text makes room for the space behind the word.
        let text = turns.out.split_off(start);
        put(turns.out, ERROR);
        turns.out.push(b' ');
        turns.out.extend_from_slice(text.get(1..).unwrap_or_default());
    }
    turns.out.push(b'}');
    Ok(shows)
}

/// Whether a result holds a picture or a document.
fn shows_something(place: &Place<'_>, result: &Block<'_>) -> Result<bool, Untranslatable> {
    let Some(content) = &result.content else {
        return Ok(false);
    };
    let content = content_within(&place.field("content"), content)?;
    let mut pieces = content.pieces();
    Ok(pieces.any(|piece| matches!(piece, Piece::Block(block) if is_shown(block))))
}

/// Writes a result as parts, where they may stand in it.
fn put_parts(place: &Place<'_>, result: &Block<'_>, turns: &mut Turns<'_>) -> Result<(), Untranslatable> {
    turns.out.push(b'[');
    let mut parts = Parts::new(turns.way, turns.left_out, turns.out);
    if result.is_error == Some(true) {
        parts.text("Error:");
    }
    if let Some(content) = &result.content {
        let place = place.field("content");
        for (at, piece) in content_within(&place, content)?.pieces().enumerate() {
            match piece {
                Piece::Text(text) => parts.text(text),
                Piece::Block(block) => parts.block(&place.item(at), block)?,
            }
        }
    }
    turns.out.push(b']');
    Ok(())
}

/// Whether a block of a tool's result is one that only the user can show.
fn is_shown(block: &Block<'_>) -> bool {
    is(block, "image") || is(block, "document")
}

/// Writes the pictures and documents of a tool's result.
pub(super) fn show(
    place: &Place<'_>,
    result: &Block<'_>,
    parts: &mut Parts<'_>,
) -> Result<(), Untranslatable> {
    let Some(content) = &result.content else {
        return Ok(());
    };
    let place = place.field("content");
    for (at, piece) in content_within(&place, content)?.pieces().enumerate() {
        match piece {
            Piece::Block(block) if is_shown(block) => parts.block(&place.item(at), block)?,
            _ => {}
        }
    }
    Ok(())
}
