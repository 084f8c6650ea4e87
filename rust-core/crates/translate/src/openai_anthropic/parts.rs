use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::chat_place::Place;
use crate::json::write_string;
use crate::openai_anthropic::json_text::JsonText;
use crate::openai_anthropic::left_out::LeftOut;
use crate::openai_anthropic::messages::{cache_control, end_block, write_text_block};
use crate::openai_anthropic::object::{Word, object};
use crate::openai_anthropic::unreadable::unreadable;

object! {
    /// A part of a message's content.
    ContentPart {
        kind("type"): Word<'b>,
        text: JsonText<'b>,
        refusal: JsonText<'b>,
        image_url: ImageUrl<'b>,
        file: File<'b>,
        cache_control: &'b RawValue,
        prompt_cache_breakpoint: &'b RawValue,
    }
}

object! {
    ImageUrl { url: Word<'b>, detail: Word<'b> }
}

object! {
    File { file_data: Word<'b>, file_id: Word<'b>, filename: JsonText<'b> }
}

/// What a message says.
pub(super) enum Content<'b> {
    Text(Option<JsonText<'b>>),
    Parts(Vec<ContentPart<'b>>),
}

/// One text or part, and whether a cache ends behind it.
pub(super) struct Part<'c, 'b> {
    said: Said<'c, 'b>,
    cache: Option<&'b RawValue>,
}

enum Said<'c, 'b> {
    Text(JsonText<'b>),
    /// A part, and where it stands among them.
    Part(usize, &'c ContentPart<'b>),
}

impl<'b> Content<'b> {
    /// Reads the member `content`: a string, an array of parts or nothing.
    pub(super) fn read(
        body: &'b str,
        value: Option<&'b RawValue>,
        place: Place,
    ) -> Result<Self, Untranslatable> {
        let Some(value) = value else {
            return Ok(Content::Text(None));
        };
        if let Some(text) = JsonText::of(value) {
            return Ok(Content::Text(Some(text)));
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

    /// All that is said, blank texts left out: Anthropic refuses them. A mark for the cache on the whole message is one on
    /// its last part.
    pub(super) fn said<'c>(
        &'c self,
        cache: Option<&'b RawValue>,
    ) -> impl Iterator<Item = Part<'c, 'b>> + use<'c, 'b> {
        let text = match self {
            Content::Text(text) => text.filter(|text| !text.is_blank()),
            Content::Parts(_) => None,
        };
        let parts = match self {
            Content::Text(_) => &[][..],
            Content::Parts(parts) => parts,
        };
        let last = parts.iter().rposition(|part| !part.is_blank());
        let of_text = text.map(|text| Part {
            said: Said::Text(text),
            cache,
        });
        let of_parts =
            parts
                .iter()
                .enumerate()
                .filter(|(_, part)| !part.is_blank())
                .map(move |(at, part)| Part {
                    said: Said::Part(at, part),
                    cache: part.cache_control.or(if last == Some(at) { cache } else { None }),
                });
        of_text.into_iter().chain(of_parts)
    }
}

impl ContentPart<'_> {
    fn is_blank(&self) -> bool {
        let text = match self.kind.as_deref() {
            Some("text") => self.text,
            Some("refusal") => self.refusal,
            _ => None,
        };
        text.is_some_and(JsonText::is_blank)
    }
}

impl<'b> Part<'_, 'b> {
    /// The mark for the cache, which it has no longer then.
    pub(super) fn take_cache_control(&mut self) -> Option<&'b RawValue> {
        self.cache.take()
    }

    /// Refuses anything but text, where Anthropic takes nothing else.
    pub(super) fn expect_text(&self, place: Place) -> Result<(), Untranslatable> {
        match &self.said {
            &Said::Part(at, part) if !matches!(part.kind.as_deref(), Some("text" | "refusal")) => {
                let message = "in a message of this role the provider takes text only";
                Err(Untranslatable::new(place.part(at).field("type"), message))
            }
            _ => Ok(()),
        }
    }

    /// Writes it as a block, and a comma behind it.
    pub(super) fn write(
        &self,
        place: Place,
        left_out: &mut LeftOut,
        out: &mut Vec<u8>,
    ) -> Result<(), Untranslatable> {
        let (at, part) = match self.said {
            Said::Part(at, part) => (at, part),
            Said::Text(text) => {
                write_text_block(
                    out,
                    |out| out.extend_from_slice(text.raw().as_bytes()),
                    self.cache,
                );
                return Ok(());
            }
        };
        let place = place.part(at);
        let cache = cache_control(self.cache, place)?;
        let missing = |field: &str| {
            Untranslatable::new(place.field(field), "a part lacks what its type says that it is")
        };
        match part.kind.as_deref() {
            Some("text") => {
                let text = part.text.ok_or_else(|| missing("text"))?;
                write_text_block(out, |out| out.extend_from_slice(text.raw().as_bytes()), cache);
            }
            Some("refusal") => {
                let text = part.refusal.ok_or_else(|| missing("refusal"))?;
                write_text_block(out, |out| out.extend_from_slice(text.raw().as_bytes()), cache);
            }
            Some("image_url") => {
                let image = part.image_url.as_ref().ok_or_else(|| missing("image_url"))?;
                write_image(image, place, left_out, cache, out)?;
            }
            Some("file") => {
                let file = part.file.as_ref().ok_or_else(|| missing("file"))?;
                write_document(file, place, left_out, cache, out)?;
            }
            _ => {
                let message = "the provider takes parts of the types text, image_url and file only";
                return Err(Untranslatable::new(place.field("type"), message));
            }
        }
        if part.prompt_cache_breakpoint.is_some() {
            left_out.leave("messages[].content[].prompt_cache_breakpoint", || {
                place.field("prompt_cache_breakpoint")
            })?;
        }
        left_out.leave_unknown(part.unknown.as_deref(), |name| place.field(name))
    }
}

fn write_image(
    image: &ImageUrl<'_>,
    place: Place,
    left_out: &mut LeftOut,
    cache: Option<&RawValue>,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    if image.detail.as_deref().is_some_and(|detail| detail != "auto") {
        left_out.leave("messages[].content[].image_url.detail", || {
            place.field("image_url.detail")
        })?;
    }
    left_out.leave_unknown(image.unknown.as_deref(), |name| {
        place.field(&format!("image_url.{name}"))
    })?;
    let refused = |message| Untranslatable::new(place.field("image_url.url"), message);
    let url = image.url.as_deref().unwrap_or_default();
    out.extend_from_slice(b"{\"type\":\"image\",\"source\":");
    match data_url(url) {
        Some((stated, data)) => {
            let kind = image_kind(data).or(match stated {
                "image/jpg" => Some("image/jpeg"),
                "image/jpeg" | "image/png" | "image/gif" | "image/webp" => Some(stated),
                _ => None,
            });
            let kind = kind.ok_or_else(|| refused("the provider takes JPEG, PNG, GIF and WebP images"))?;
            write_base64(kind, data, out);
        }
        None if is_web_url(url) => write_url(url, out),
        None => {
            return Err(refused(
                "an image has to be a data URL in base64, or at an http or https URL",
            ));
        }
    }
    end_block(cache, out);
    Ok(())
}

fn write_document(
    file: &File<'_>,
    place: Place,
    left_out: &mut LeftOut,
    cache: Option<&RawValue>,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    left_out.leave_unknown(file.unknown.as_deref(), |name| {
        place.field(&format!("file.{name}"))
    })?;
    if file.file_id.is_some() {
        let message = "a file kept by another provider cannot be referred to; send its file_data";
        return Err(Untranslatable::new(place.field("file.file_id"), message));
    }
    let data = file.file_data.as_deref().unwrap_or_default();
    out.extend_from_slice(b"{\"type\":\"document\",\"source\":");
    match data_url(data) {
        Some(("application/pdf", data)) => write_base64("application/pdf", data, out),
        None if is_web_url(data) => write_url(data, out),
        None if data.starts_with(PDF) => write_base64("application/pdf", data, out),
        _ => {
            let message = "the provider takes PDF files: a data URL of application/pdf in base64";
            return Err(Untranslatable::new(place.field("file.file_data"), message));
        }
    }
    if let Some(title) = file.filename.filter(|title| !title.is_blank()) {
        out.extend_from_slice(b",\"title\":");
        out.extend_from_slice(title.raw().as_bytes());
    }
    end_block(cache, out);
    Ok(())
}

/// The media type and the base64 of a data URL (RFC 2397).
fn data_url(url: &str) -> Option<(&str, &str)> {
    let (kind, data) = url.strip_prefix("data:")?.split_once(',')?;
    let kind = kind.strip_suffix(";base64")?;
    Some((kind.split_once(';').map_or(kind, |(kind, _)| kind), data))
}

fn is_web_url(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// `%PDF-` in base64.
const PDF: &str = "JVBERi0";

/// What an image begins with says what it is; clients state the media type wrongly, and Anthropic refuses it then.
fn image_kind(base64: &str) -> Option<&'static str> {
    let kinds = [
        ("iVBORw0KGgo", "image/png"),
        ("/9j/", "image/jpeg"),
        ("R0lGOD", "image/gif"),
        ("UklGR", "image/webp"),
    ];
    kinds
        .iter()
        .find(|(begin, _)| base64.starts_with(begin))
        .map(|&(_, kind)| kind)
}

fn write_base64(kind: &str, data: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"base64\",\"media_type\":");
    write_string(out, kind);
    out.extend_from_slice(b",\"data\":");
    write_string(out, data);
    out.push(b'}');
}

fn write_url(url: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"url\",\"url\":");
    write_string(out, url);
    out.push(b'}');
}
