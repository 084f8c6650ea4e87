//! The content of messages and of tools' results.

use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::chat_place::Place;
use crate::openai_anthropic::json_text::JsonText;
use crate::openai_anthropic::left_out::LeftOut;
use crate::openai_anthropic::unreadable::unreadable;
use crate::openai_responses::body::{ContentPart, File, ImageUrl};
use crate::openai_responses::input::note_cache;
use crate::openai_responses::request::write_field;

/// What a message says.
pub(super) enum Content<'b> {
    Text(JsonText<'b>),
    Parts(Vec<ContentPart<'b>>),
    Nothing,
}

impl<'b> Content<'b> {
    /// Reads the member `content`: a string, an array of parts or nothing.
    pub(super) fn read(
        body: &'b str,
        value: Option<&'b RawValue>,
        place: Place,
    ) -> Result<Self, Untranslatable> {
        let Some(value) = value else {
            return Ok(Content::Nothing);
        };
        if let Some(text) = JsonText::of(value) {
            return Ok(Content::Text(text));
        }
        if !value.get().starts_with('[') {
            let message = "content has to be a string or an array of parts";
            return Err(Untranslatable::new(place.field("content"), message));
        }
        let parts = serde_json::from_str(value.get());
        parts
            .map(Content::Parts)
            .map_err(|error| unreadable(body, value.get(), &error))
    }

    /// Writes it as a string or as a list of parts of input.
    pub(super) fn write(
        &self,
        place: Place,
        left_out: &mut LeftOut,
        out: &mut Vec<u8>,
    ) -> Result<(), Untranslatable> {
        match self {
            Content::Text(text) => out.extend_from_slice(text.raw().as_bytes()),
            Content::Nothing => out.extend_from_slice(b"\"\""),
            Content::Parts(parts) => {
                out.push(b'[');
                for (at, part) in parts.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    write_part(part, place.part(at), left_out, out)?;
                }
                out.push(b']');
            }
        }
        Ok(())
    }

    /// Writes it as a message of the assistant, which says text alone: parts in a row are one text. Nothing is written of an
    /// empty one.
    pub(super) fn write_said(
        &self,
        place: Place,
        left_out: &mut LeftOut,
        out: &mut Vec<u8>,
    ) -> Result<(), Untranslatable> {
        let start = out.len();
        out.extend_from_slice(b"{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"");
        let text = out.len();
        match self {
            Content::Nothing => {}
            Content::Text(text) => out.extend_from_slice(text.inner().as_bytes()),
            Content::Parts(parts) => {
                for (at, part) in parts.iter().enumerate() {
                    let place = place.part(at);
                    let said = match part.kind.as_deref() {
                        Some("text") => part.text,
                        Some("refusal") => part.refusal,
                        _ => {
                            let message =
                                "an assistant's message has parts of the types text and refusal only";
                            return Err(Untranslatable::new(place.field("type"), message));
                        }
                    };
                    let said = said.ok_or_else(|| missing(place, "text"))?;
                    note_rest(part, place, left_out)?;
                    out.extend_from_slice(said.inner().as_bytes());
                }
            }
        }
        if out.len() == text {
            out.truncate(start);
        } else {
            out.extend_from_slice(b"\"},");
        }
        Ok(())
    }
}

fn missing(place: Place, field: &str) -> Untranslatable {
    Untranslatable::new(place.field(field), "a part lacks what its type says that it is")
}

fn note_rest(part: &ContentPart<'_>, place: Place, left_out: &mut LeftOut) -> Result<(), Untranslatable> {
    note_cache(part.cache_control, left_out);
    left_out.leave_unknown(part.unknown.as_deref(), |name| place.field(name))
}

fn write_part(
    part: &ContentPart<'_>,
    place: Place,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    match part.kind.as_deref() {
        Some("text") => {
            let text = part.text.ok_or_else(|| missing(place, "text"))?;
            out.extend_from_slice(b"{\"type\":\"input_text\"");
            write_field("text", Some(text.raw()), out);
        }
        Some("image_url") => {
            let image = part
                .image_url
                .as_ref()
                .ok_or_else(|| missing(place, "image_url"))?;
            write_image(image, place, left_out, out)?;
        }
        Some("file") => {
            let file = part.file.as_ref().ok_or_else(|| missing(place, "file"))?;
            write_file(file, place, left_out, out)?;
        }
        _ => {
            let message = "the provider takes parts of the types text, image_url and file only";
            return Err(Untranslatable::new(place.field("type"), message));
        }
    }
    write_field(
        "prompt_cache_breakpoint",
        part.prompt_cache_breakpoint.map(RawValue::get),
        out,
    );
    out.push(b'}');
    note_rest(part, place, left_out)
}

fn write_image(
    image: &ImageUrl<'_>,
    place: Place,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    left_out.leave_unknown(image.unknown.as_deref(), |name| {
        place.field(&format!("image_url.{name}"))
    })?;
    let url = image.url.ok_or_else(|| missing(place, "image_url.url"))?;
    out.extend_from_slice(b"{\"type\":\"input_image\"");
    write_field("image_url", Some(url.raw()), out);
    write_field(
        "detail",
        Some(image.detail.map_or("\"auto\"", JsonText::raw)),
        out,
    );
    Ok(())
}

/// A file by its data or its id. An address in the place of the data is one that the provider fetches.
fn write_file(
    file: &File<'_>,
    place: Place,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    left_out.leave_unknown(file.unknown.as_deref(), |name| {
        place.field(&format!("file.{name}"))
    })?;
    out.extend_from_slice(b"{\"type\":\"input_file\"");
    match (file.file_data, file.file_id) {
        (Some(data), None) => {
            let is_address = ["https://", "http://", "https:\\/\\/", "http:\\/\\/"]
                .iter()
                .any(|scheme| data.inner().starts_with(scheme));
            if is_address {
                if file.filename.is_some() {
                    left_out.note("messages[].content[].file.filename");
                }
                write_field("file_url", Some(data.raw()), out);
                return Ok(());
            }
            write_field("filename", file.filename.map(JsonText::raw), out);
            write_field("file_data", Some(data.raw()), out);
        }
        (None, Some(id)) => write_field("file_id", Some(id.raw()), out),
        _ => {
            let message = "a file has to have either its file_data or its file_id";
            return Err(Untranslatable::new(place.field("file"), message));
        }
    }
    Ok(())
}
