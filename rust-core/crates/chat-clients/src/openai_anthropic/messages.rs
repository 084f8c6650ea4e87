use serde_json::value::RawValue;

use crate::openai_anthropic::reasoning;
use proofgate_chat_request::{
    Called, Chat, File, Image, Losses, Media, Message, Piece, Place, Role, Said, Side, Turns, call_id,
};
use proofgate_dialect::Untranslatable;
use proofgate_dialect::json::{write_all, write_member, write_string};
use proofgate_dialect::json_text::JsonText;

/// Writes the member `messages`, with a comma before it; what system and developer messages say goes to `system` as
/// blocks, a comma behind each.
pub(super) fn write(
    chat: &Chat<'_>,
    losses: &mut Losses,
    system: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    write_all(out, &[",\"messages\":["]);
    let mut turns = Turns::new("assistant", "content", out);
    for (at, message) in chat.messages.iter().flatten().enumerate() {
        let place = Place::message(at);
        let role = message.role(place, losses)?;
        let mut pieces = chat.pieces(message, place, losses)?;
        let cache = mark(message.cache_control, losses);
        match role {
            Role::System => {
                end_cached(&mut pieces, message.cache_control);
                for piece in &pieces {
                    write_text(piece.text()?, mark(piece.cache, losses), system);
                    system.push(b',');
                }
            }
            Role::User => {
                end_cached(&mut pieces, message.cache_control);
                for piece in &pieces {
                    turns.say(Side::User, |out| write_piece(piece, losses, out))?;
                }
            }
            Role::Assistant => write_assistant(message, pieces, place, losses, &mut turns)?,
            Role::Tool => {
                let id = message.answered(place)?;
                turns.answer(|out| write_result(id, &pieces, cache, losses, out))?;
            }
        }
    }
    turns.end()?;
    out.push(b']');
    Ok(())
}

/// A mark for the cache on a whole message is one on its last part.
fn end_cached<'b>(pieces: &mut [Piece<'b>], cache: Option<&'b RawValue>) {
    if let Some(last) = pieces.last_mut() {
        last.cache = last.cache.or(cache);
    }
}

fn write_assistant<'b>(
    message: &Message<'b>,
    mut pieces: Vec<Piece<'b>>,
    place: Place,
    losses: &mut Losses,
    turns: &mut Turns<'_>,
) -> Result<(), Untranslatable> {
    message.bring_back(place, true, losses, turns, reasoning::write_detail)?;
    let calls = message.calls(place, losses)?;
    let refusal = message.declined();
    let of_the_last = |is_last: bool| message.cache_control.filter(|_| is_last);
    end_cached(&mut pieces, of_the_last(refusal.is_none() && calls.is_empty()));
    for piece in &pieces {
        let (text, cache) = (piece.text()?, mark(piece.cache, losses));
        turns.say(Side::Model, |out| {
            write_text(text, cache, out);
            Ok(())
        })?;
    }
    if let Some(refusal) = refusal {
        let cache = mark(of_the_last(calls.is_empty()), losses);
        turns.say(Side::Model, |out| {
            write_text(refusal, cache, out);
            Ok(())
        })?;
    }
    for (at, call) in calls.iter().enumerate() {
        let cache = call.cache.or(of_the_last(at + 1 == calls.len()));
        let cache = mark(cache, losses);
        turns.say(Side::Model, |out| write_call(call, cache, out))?;
    }
    Ok(())
}

fn write_call(call: &Called<'_, '_>, cache: Option<&str>, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    write_all(
        out,
        &["{\"type\":\"tool_use\",\"id\":\"", &id(call.id), "\",\"name\":"],
    );
    write_string(out, call.name);
    write_all(out, &[",\"input\":", call.arguments()?.trim()]);
    end_block(cache, out);
    Ok(())
}

/// A place for the cache inside of a result is one behind it.
fn write_result<'b>(
    call: &str,
    pieces: &[Piece<'b>],
    mut cache: Option<&'b str>,
    losses: &mut Losses,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    write_all(
        out,
        &["{\"type\":\"tool_result\",\"tool_use_id\":\"", &id(call), "\""],
    );
    let mut before = ",\"content\":[";
    for piece in pieces {
        cache = mark(piece.cache, losses).or(cache);
        write_all(out, &[std::mem::replace(&mut before, ",")]);
        write_uncached(piece, None, out)?;
    }
    if before == "," {
        out.push(b']');
    }
    end_block(cache, out);
    Ok(())
}

/// The id of a call with Anthropic's characters only.
fn id(id: &str) -> std::borrow::Cow<'_, str> {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-');
    call_id(id, is_allowed, 128)
}

fn write_piece(piece: &Piece<'_>, losses: &mut Losses, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    write_uncached(piece, mark(piece.cache, losses), out)
}

fn write_uncached(piece: &Piece<'_>, cache: Option<&str>, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    match &piece.said {
        Said::Text(text) => {
            write_text(*text, cache, out);
            return Ok(());
        }
        Said::Image(image) => write_image(image, piece.place, out)?,
        Said::File(file) => write_document(file, piece.place, out)?,
        Said::Audio(..) => return Err(piece.not_here()),
    }
    end_block(cache, out);
    Ok(())
}

fn write_image(image: &Image<'_>, place: Place, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    write_all(out, &["{\"type\":\"image\",\"source\":"]);
    let media = image.media(place)?;
    match &media {
        Media::Web(url) => write_url(url, out),
        Media::Data { data, .. } => {
            let format = media.image_format().ok_or_else(|| {
                let message = "the provider accepts JPEG, PNG, GIF and WebP images";
                Untranslatable::new(place.field("image_url.url"), message)
            })?;
            write_base64(&["image/", format], data, out);
        }
    }
    Ok(())
}

fn write_document(file: &File<'_>, place: Place, out: &mut Vec<u8>) -> Result<(), Untranslatable> {
    const PDF: &str = "application/pdf";
    write_all(out, &["{\"type\":\"document\",\"source\":"]);
    let media = file.media(place)?;
    match &media {
        Media::Web(url) => write_url(url, out),
        Media::Data { data, .. } if media.document_type(&file.name()) == PDF => {
            write_base64(&[PDF], data, out)
        }
        Media::Data { .. } => {
            let message = "the provider accepts PDF files: send a base64 data URL of type application/pdf";
            return Err(Untranslatable::new(place.field("file.file_data"), message));
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

/// Anthropic's mark for its cache, which OpenAI's clients send as an extra field; one that is no object is none.
pub(super) fn mark<'b>(value: Option<&'b RawValue>, losses: &mut Losses) -> Option<&'b str> {
    let mark = value?.get();
    if mark.starts_with('{') {
        return Some(mark);
    }
    losses.note("cache_control", mark);
    None
}
