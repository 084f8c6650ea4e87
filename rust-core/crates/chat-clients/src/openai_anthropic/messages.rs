use serde_json::value::RawValue;

use crate::openai_anthropic::reasoning;
use proofgate_chat_request::{
    ChatRequest, ContentPart, DroppedFields, File, Image, MediaSource, Message, MessagePath, PartContent,
    Role, Speaker, ToolInvocation, TurnWriter, sanitize_call_id,
};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json::{write_all, write_member, write_string};
use proofgate_dialect::json_text::JsonText;

/// Writes the member `messages`, with a comma before it. System and developer messages are written to `system` as blocks,
/// each followed by a comma.
pub(super) fn write(
    chat: &ChatRequest<'_>,
    losses: &mut DroppedFields,
    system: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    write_all(out, &[",\"messages\":["]);
    let mut turns = TurnWriter::new("assistant", "content", out);
    for (at, message) in chat.messages.iter().flatten().enumerate() {
        let place = MessagePath::message(at);
        let role = message.read_role(place, losses)?;
        let mut pieces = chat.message_parts(message, place, losses)?;
        let cache = parse_cache_control(message.cache_control, losses);
        match role {
            Role::System => {
                cache_last_piece(&mut pieces, message.cache_control);
                for piece in &pieces {
                    write_text(piece.text()?, parse_cache_control(piece.cache, losses), system);
                    system.push(b',');
                }
            }
            Role::User => {
                cache_last_piece(&mut pieces, message.cache_control);
                for piece in &pieces {
                    turns.write_block(Speaker::User, |out| write_content_part(piece, losses, out))?;
                }
            }
            Role::Assistant => write_assistant(message, pieces, place, losses, &mut turns)?,
            Role::Tool => {
                let id = message.answered_call_id(place)?;
                turns.write_tool_result(|out| write_result(id, &pieces, cache, losses, out))?;
            }
        }
    }
    turns.finish()?;
    out.push(b']');
    Ok(())
}

/// Moves the cache mark of a whole message to its last part.
fn cache_last_piece<'b>(pieces: &mut [ContentPart<'b>], cache: Option<&'b RawValue>) {
    if let Some(last) = pieces.last_mut() {
        last.cache = last.cache.or(cache);
    }
}

fn write_assistant<'b>(
    message: &Message<'b>,
    mut pieces: Vec<ContentPart<'b>>,
    place: MessagePath,
    losses: &mut DroppedFields,
    turns: &mut TurnWriter<'_>,
) -> Result<(), UntranslatableRequest> {
    message.write_reasoning_details(place, true, losses, turns, reasoning::write_detail)?;
    let calls = message.calls(place, losses)?;
    let refusal = message.refusal_text();
    let of_the_last = |is_last: bool| message.cache_control.filter(|_| is_last);
    cache_last_piece(&mut pieces, of_the_last(refusal.is_none() && calls.is_empty()));
    for piece in &pieces {
        let (text, cache) = (piece.text()?, parse_cache_control(piece.cache, losses));
        turns.write_block(Speaker::Model, |out| {
            write_text(text, cache, out);
            Ok(())
        })?;
    }
    if let Some(refusal) = refusal {
        let cache = parse_cache_control(of_the_last(calls.is_empty()), losses);
        turns.write_block(Speaker::Model, |out| {
            write_text(refusal, cache, out);
            Ok(())
        })?;
    }
    for (at, call) in calls.iter().enumerate() {
        let cache = call.cache.or(of_the_last(at + 1 == calls.len()));
        let cache = parse_cache_control(cache, losses);
        turns.write_block(Speaker::Model, |out| write_call(call, cache, out))?;
    }
    Ok(())
}

fn write_call(
    call: &ToolInvocation<'_, '_>,
    cache: Option<&str>,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    write_all(
        out,
        &[
            "{\"type\":\"tool_use\",\"id\":\"",
            &sanitize_tool_call_id(call.id),
            "\",\"name\":",
        ],
    );
    write_string(out, call.name);
    write_all(out, &[",\"input\":", call.arguments()?.trim()]);
    end_block(cache, out);
    Ok(())
}

/// Writes a tool result. A cache mark within it is moved to its end.
fn write_result<'b>(
    call: &str,
    pieces: &[ContentPart<'b>],
    mut cache: Option<&'b str>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    write_all(
        out,
        &[
            "{\"type\":\"tool_result\",\"tool_use_id\":\"",
            &sanitize_tool_call_id(call),
            "\"",
        ],
    );
    let mut before = ",\"content\":[";
    for piece in pieces {
        cache = parse_cache_control(piece.cache, losses).or(cache);
        write_all(out, &[std::mem::replace(&mut before, ",")]);
        write_uncached(piece, None, out)?;
    }
    if before == "," {
        out.push(b']');
    }
    end_block(cache, out);
    Ok(())
}

/// Replaces characters in a call's id that Anthropic does not allow.
fn sanitize_tool_call_id(id: &str) -> std::borrow::Cow<'_, str> {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    sanitize_call_id(id, is_allowed, 128)
}

fn write_content_part(
    piece: &ContentPart<'_>,
    losses: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    write_uncached(piece, parse_cache_control(piece.cache, losses), out)
}

fn write_uncached(
    piece: &ContentPart<'_>,
    cache: Option<&str>,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    match &piece.content {
        PartContent::Text(text) => {
            write_text(*text, cache, out);
            return Ok(());
        }
        PartContent::Image(image) => write_image(image, piece.path, out)?,
        PartContent::File(file) => write_document(file, piece.path, out)?,
        PartContent::Audio(..) => return Err(piece.misplaced_error()),
    }
    end_block(cache, out);
    Ok(())
}

fn write_image(
    image: &Image<'_>,
    place: MessagePath,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    write_all(out, &["{\"type\":\"image\",\"source\":"]);
    let media = image.media(place)?;
    match &media {
        MediaSource::Url(url) => write_url(url, out),
        MediaSource::Data { data, .. } => {
            let format = media.image_format().ok_or_else(|| {
                let message = "the provider accepts JPEG, PNG, GIF and WebP images";
                UntranslatableRequest::new(place.field_path("image_url.url"), message)
            })?;
            write_base64(&["image/", format], data, out);
        }
    }
    Ok(())
}

fn write_document(
    file: &File<'_>,
    place: MessagePath,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    const PDF: &str = "application/pdf";
    write_all(out, &["{\"type\":\"document\",\"source\":"]);
    let media = file.media(place)?;
    match &media {
        MediaSource::Url(url) => write_url(url, out),
        MediaSource::Data { data, .. } if media.document_type(&file.name()) == PDF => {
            write_base64(&[PDF], data, out)
        }
        MediaSource::Data { .. } => {
            let message = "the provider accepts PDF files: send a base64 data URL of type application/pdf";
            return Err(UntranslatableRequest::new(
                place.field_path("file.file_data"),
                message,
            ));
        }
    }
    let title = file.filename.filter(|title| !title.is_blank());
    write_member(out, "title", title.map(JsonText::raw));
    Ok(())
}

fn write_base64(media_type: &[&str], data: &str, out: &mut Vec<u8>) {
    write_all(out, &["{\"type\":\"base64\",\"media_type\":\""]);
    write_all(out, media_type);
    write_all(out, &["\",\"data\":\"", data, "\"}"]);
}

fn write_url(url: &str, out: &mut Vec<u8>) {
    write_all(out, &["{\"type\":\"url\",\"url\":"]);
    write_string(out, url);
    out.push(b'}');
}

fn write_text(text: JsonText<'_>, cache: Option<&str>, out: &mut Vec<u8>) {
    write_all(out, &["{\"type\":\"text\",\"text\":", text.raw()]);
    end_block(cache, out);
}

fn end_block(cache: Option<&str>, out: &mut Vec<u8>) {
    write_member(out, "cache_control", cache);
    out.push(b'}');
}

/// Returns Anthropic's `cache_control`, which OpenAI's clients send as an extra field, if it is an object.
pub(super) fn parse_cache_control<'b>(
    value: Option<&'b RawValue>,
    losses: &mut DroppedFields,
) -> Option<&'b str> {
    let mark = value?.get();
    if mark.starts_with('{') {
        return Some(mark);
    }
    losses.record_field("cache_control", mark);
    None
}
