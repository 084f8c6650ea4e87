use std::borrow::Cow;

use crate::Untranslatable;
use crate::field::{Field, Losses};
use crate::json::write_string;
use crate::openai_gemini::urls;

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

/// The types of parts that are known.
const KINDS: [&str; 5] = ["text", "refusal", "image_url", "file", "input_audio"];

/// One part of a message's content.
pub(super) enum Part<'b> {
    /// A string as JSON.
    Text(&'b str),
    Media {
        media_type: Cow<'b, str>,
        /// In base64.
        data: Cow<'b, str>,
    },
    /// At an address on the web.
    Link {
        media_type: &'static str,
        url: Cow<'b, str>,
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
            media => write_media(&media, out),
        }
    }
    Ok(())
}

fn write_media(part: &Part<'_>, out: &mut Vec<u8>) {
    let (before, media_type, name, value) = match part {
        Part::Text(_) => return,
        Part::Media { media_type, data } => ("inlineData", &**media_type, "data", data),
        Part::Link { media_type, url } => ("fileData", *media_type, "fileUri", url),
    };
    next(out);
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(before.as_bytes());
    out.extend_from_slice(br#"":{"mimeType":"#);
    write_string(out, media_type);
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    write_string(out, value);
    out.extend_from_slice(b"}}");
}

/// Appends the texts of a tool's result as one string, and to `media` its other parts: a function's response has no place for them
/// in models before Gemini 3.
pub(super) fn write_result(
    content: &Field<'_, '_>,
    losses: &mut Losses,
    out: &mut Vec<u8>,
    media: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    if content.is_string() {
        out.extend_from_slice(content.json().as_bytes());
        return Ok(());
    }
    out.push(b'"');
    for (index, part) in elements(content)?.into_iter().enumerate() {
        match read(&content.element(index, part), Kinds::USER, losses)? {
            Part::Text(text) => {
                let inside = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
                out.extend_from_slice(inside.unwrap_or_default().as_bytes());
            }
            part => write_media(&part, media),
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
    if let Some((name, value)) = members.iter().find(|(name, _)| name == "type") {
        let member = part.member(name, value);
        if !KINDS.contains(&&*member.text()?) {
            return Err(member.refuse("The provider has no counterpart for parts of this type here."));
        }
    }
    for (name, member) in &members {
        let member = part.member(name, member);
        match &**name {
            "type" => kind = Some(member),
            "text" | "refusal" | "image_url" | "file" | "input_audio" => {
                if value.replace((&**name, member)).is_some() {
                    return Err(part.refuse("It must hold one thing."));
                }
            }
            "cache_control" => losses.lose("cache_control", &member)?,
            "prompt_cache_breakpoint" => {
                losses.lose("messages[].content[].prompt_cache_breakpoint", &member)?;
            }
            // Where it stood in an answer; some clients send it back.
            "index" => {}
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
            "url" => url = Some(urls::read(&member, "image/jpeg")?),
            "detail" => losses.lose("messages[].content[].image_url.detail", &member)?,
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
            "file_data" => data = Some(urls::read(&member, "application/pdf")?),
            "file_id" => return Err(member.refuse("A file that another provider keeps is not within reach.")),
            "filename" => losses.lose("messages[].content[].file.filename", &member)?,
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
