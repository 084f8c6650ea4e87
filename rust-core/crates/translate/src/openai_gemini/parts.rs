use std::borrow::Cow;

use crate::Untranslatable;
use crate::json::write_string;
use crate::openai_gemini::field::{Field, Losses};

/// Which kinds of parts a message may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kinds {
    media: bool,
    refusal: bool,
}

impl Kinds {
    pub const TEXT: Kinds = Kinds {
        media: false,
        refusal: false,
    };
    pub const USER: Kinds = Kinds {
        media: true,
        refusal: false,
    };
    pub const ASSISTANT: Kinds = Kinds {
        media: false,
        refusal: true,
    };
}

/// One part of a message's content.
enum Part<'b> {
    /// A string as JSON.
    Text(&'b str),
    Media {
        media_type: Cow<'b, str>,
        /// In base64.
        data: Cow<'b, str>,
    },
}

/// Appends the parts of a `content`, a string or an array, joined by commas. Empty texts are left out: Gemini refuses them,
/// and they say nothing.
pub(super) fn write(
    content: &Field<'_, '_>,
    kinds: Kinds,
    losses: &mut Losses,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    if content.is_string() {
        if content.json() != "\"\"" {
            write_text(out, content.json());
        }
        return Ok(());
    }
    for (index, part) in elements(content)?.into_iter().enumerate() {
        match read(&content.element(index, part), kinds, losses)? {
            Part::Text("\"\"") => {}
            Part::Text(text) => write_text(out, text),
            Part::Media { media_type, data } => {
                next(out);
                out.extend_from_slice(br#"{"inlineData":{"mimeType":"#);
                write_string(out, &media_type);
                out.extend_from_slice(br#","data":"#);
                write_string(out, &data);
                out.extend_from_slice(b"}}");
            }
        }
    }
    Ok(())
}

/// Appends the texts of a `content` as one string.
pub(super) fn write_joined(
    content: &Field<'_, '_>,
    losses: &mut Losses,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    if content.is_string() {
        out.extend_from_slice(content.json().as_bytes());
        return Ok(());
    }
    out.push(b'"');
    for (index, part) in elements(content)?.into_iter().enumerate() {
        if let Part::Text(text) = read(&content.element(index, part), Kinds::TEXT, losses)? {
            let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
            out.extend_from_slice(inside.unwrap_or_default().as_bytes());
        }
    }
    out.push(b'"');
    Ok(())
}

fn elements<'b>(content: &Field<'b, '_>) -> Result<Vec<&'b serde_json::value::RawValue>, Untranslatable> {
    content
        .elements()
        .map_err(|_| content.refuse("It must be a string or an array of parts."))
}

fn read<'b>(part: &Field<'b, '_>, kinds: Kinds, losses: &mut Losses) -> Result<Part<'b>, Untranslatable> {
    let members = part.members()?;
    let (mut kind, mut value) = (None, None);
    for (name, member) in &members {
        let member = part.member(name, member);
        match &**name {
            "type" => kind = Some(member),
            "text" | "refusal" | "image_url" | "file" | "input_audio" => {
                if value.replace((&**name, member)).is_some() {
                    return Err(part.refuse("It must hold one thing."));
                }
            }
            _ => losses.unknown(&member)?,
        }
    }
    let named = kind.map(|kind| kind.text()).transpose()?;
    match (named.as_deref(), value) {
        (Some("text"), Some(("text", text))) => text.literal().map(Part::Text),
        (Some("refusal"), Some(("refusal", text))) if kinds.refusal => text.literal().map(Part::Text),
        (Some("image_url"), Some(("image_url", image))) if kinds.media => read_image(&image, losses),
        (Some("file"), Some(("file", file))) if kinds.media => read_file(&file, losses),
        (Some("input_audio"), Some(("input_audio", audio))) if kinds.media => read_audio(&audio, losses),
        (Some("text" | "refusal" | "image_url" | "file" | "input_audio"), None) => {
            Err(part.refuse("It does not hold what its type says."))
        }
        _ => {
            let kind = kind.as_ref().unwrap_or(part);
            Err(kind.refuse("The provider has no counterpart for parts of this type here."))
        }
    }
}

fn read_image<'b>(image: &Field<'b, '_>, losses: &mut Losses) -> Result<Part<'b>, Untranslatable> {
    let mut url = None;
    for (name, value) in image.members()? {
        let member = image.member(&name, value);
        match &*name {
            "url" => url = Some(read_data_url(&member)?),
            "detail" if member.json() == r#""auto""# => {}
            "detail" => losses.lose("messages.content.image_url.detail", &member)?,
            _ => losses.unknown(&member)?,
        }
    }
    url.ok_or_else(|| image.refuse("It must have a url."))
}

fn read_file<'b>(file: &Field<'b, '_>, losses: &mut Losses) -> Result<Part<'b>, Untranslatable> {
    let mut data = None;
    for (name, value) in file.members()? {
        let member = file.member(&name, value);
        match &*name {
            "file_data" => data = Some(read_data_url(&member)?),
            "file_id" => return Err(member.refuse("A file that another provider keeps is not within reach.")),
            "filename" => losses.lose("messages.content.file.filename", &member)?,
            _ => losses.unknown(&member)?,
        }
    }
    data.ok_or_else(|| file.refuse("It must have file_data."))
}

fn read_audio<'b>(audio: &Field<'b, '_>, losses: &mut Losses) -> Result<Part<'b>, Untranslatable> {
    let (mut data, mut media_type) = (None, None);
    for (name, value) in audio.members()? {
        let member = audio.member(&name, value);
        match &*name {
            "data" => data = Some(member.text()?),
            "format" => {
                media_type = Some(match &*member.text()? {
                    "wav" => "audio/wav",
                    "mp3" => "audio/mp3",
                    _ => return Err(member.refuse("It must be wav or mp3.")),
                });
            }
            _ => losses.unknown(&member)?,
        }
    }
    match (data, media_type) {
        (Some(data), Some(media_type)) => Ok(Part::Media {
            media_type: Cow::Borrowed(media_type),
            data,
        }),
        _ => Err(audio.refuse("It must have data and a format.")),
    }
}

/// Reads `data:{media type};base64,{data}` (RFC 2397). Other parameters of the media type are left out: what they could
/// say, base64 data of an image or a document says itself.
fn read_data_url<'b>(field: &Field<'b, '_>) -> Result<Part<'b>, Untranslatable> {
    let url = field.text()?;
    let is_data = url
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    if !is_data {
        return Err(field
            .refuse("The provider fetches no URLs: send a data: URL with the media type and base64 data."));
    }
    let read = |url: &str| -> Option<(std::ops::Range<usize>, usize)> {
        let comma = url.find(',')?;
        let head = url.get(5..comma)?.strip_suffix(";base64")?;
        let media_type = head.find(';').unwrap_or(head.len());
        (media_type > 0).then_some((5..5 + media_type, comma + 1))
    };
    let (media_type, data) = read(&url)
        .ok_or_else(|| field.refuse("It must be data:, a media type, ;base64, a comma and the data."))?;
    Ok(match url {
        Cow::Borrowed(url) => Part::Media {
            media_type: Cow::Borrowed(url.get(media_type).unwrap_or_default()),
            data: Cow::Borrowed(url.get(data..).unwrap_or_default()),
        },
        Cow::Owned(mut url) => {
            let data = url.split_off(data);
            Part::Media {
                media_type: Cow::Owned(url.get(media_type).unwrap_or_default().to_owned()),
                data: Cow::Owned(data),
            }
        }
    })
}

/// Appends a part that is a text; `literal` is a string as JSON.
pub(super) fn write_text(out: &mut Vec<u8>, literal: &str) {
    next(out);
    out.extend_from_slice(br#"{"text":"#);
    out.extend_from_slice(literal.as_bytes());
    out.push(b'}');
}

/// Appends the comma before another element, if there is one before it.
pub(super) fn next(out: &mut Vec<u8>) {
    if !out.is_empty() {
        out.push(b',');
    }
}
