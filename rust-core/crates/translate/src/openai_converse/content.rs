use serde_json::value::RawValue;

use crate::Untranslatable;
use crate::chat_place::Place;
use crate::openai_converse::chat::{CacheControl, File, ImageUrl, InputAudio, Part};
use crate::openai_converse::files::{DocumentNames, data_url, document_format, image_format, is_base64};
use crate::openai_converse::preferences::Preferences;
use crate::openai_converse::text::{Text, inner, is_blank, parse_list, write_all, wrong_type};

/// Where content blocks go.
pub(super) trait Blocks {
    /// What the next block is to be appended to, all that stands before it written.
    fn next(&mut self) -> &mut Vec<u8>;

    /// Bytes written so far, to see whether blocks were.
    fn length(&self) -> usize;
}

/// A list of blocks within a block.
pub(super) struct List<'o> {
    out: &'o mut Vec<u8>,
    begun: bool,
}

impl<'o> List<'o> {
    pub(super) fn new(out: &'o mut Vec<u8>) -> Self {
        List { out, begun: false }
    }
}

impl Blocks for List<'_> {
    fn next(&mut self) -> &mut Vec<u8> {
        if self.begun {
            self.out.push(b',');
        }
        self.begun = true;
        self.out
    }

    fn length(&self) -> usize {
        self.out.len()
    }
}

/// Whose content it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    System,
    User,
    Assistant,
    Tool,
}

/// What is kept while the messages of a request are written.
pub(super) struct Conversation<'p> {
    pub(super) preferences: &'p mut Preferences,
    pub(super) document_names: DocumentNames,
    /// Whether the model refuses thoughts that are not signed.
    pub(super) wants_signatures: bool,
}

impl Conversation<'_> {
    /// Writes the blocks of a message's content, which is a string or a list of parts. What is blank is left out. Returns the
    /// [`ttl`] of a cache point that is asked for and has no place among the blocks: within a tool's result.
    pub(super) fn write_content(
        &mut self,
        content: Option<&RawValue>,
        place: Place,
        speaker: Speaker,
        blocks: &mut impl Blocks,
    ) -> Result<Option<&'static str>, Untranslatable> {
        let content = content.ok_or_else(|| missing(place.field("content")))?;
        if inner(content).is_some() {
            write_text(Some(content), place, "content", blocks)?;
            return Ok(None);
        }
        let parts: Vec<Part<'_>> = parse_list(content, || place.field("content"))?;
        let before = blocks.length();
        let mut cache_point = None;
        for (number, part) in parts.iter().enumerate() {
            let place = place.part(number);
            self.write_part(part, place, speaker, blocks)?;
            if part.cache_control.is_none() && part.prompt_cache_breakpoint.is_none() {
                continue;
            }
            let ttl = ttl(part.cache_control.as_ref());
            if speaker == Speaker::Tool {
                cache_point = Some(ttl);
            } else if blocks.length() > before {
                write_cache_point(ttl, blocks);
            }
        }
        Ok(cache_point)
    }

    fn write_part(
        &mut self,
        part: &Part<'_>,
        place: Place,
        speaker: Speaker,
        blocks: &mut impl Blocks,
    ) -> Result<(), Untranslatable> {
        let takes_files = matches!(speaker, Speaker::User | Speaker::Tool);
        self.preferences
            .unknown(part.unknown.as_ref(), || place.field(""))?;
        match part.kind.as_deref() {
            Some("text") => write_text(part.text, place, "text", blocks),
            Some("refusal") if speaker == Speaker::Assistant => {
                write_text(part.refusal, place, "refusal", blocks)
            }
            Some("image_url") if takes_files => self.write_image(part.image_url.as_ref(), place, blocks),
            Some("file") if takes_files => self.write_document(part.file.as_ref(), place, blocks),
            Some("input_audio") if speaker == Speaker::User => {
                self.write_audio(part.input_audio.as_ref(), place, blocks)
            }
            Some(_) => Err(Untranslatable::new(
                place.field("type"),
                "Converse has no counterpart of a part of this type in such a message.",
            )),
            None => Err(missing(place.field("type"))),
        }
    }

    fn write_image(
        &mut self,
        image: Option<&ImageUrl<'_>>,
        place: Place,
        blocks: &mut impl Blocks,
    ) -> Result<(), Untranslatable> {
        let image = image.ok_or_else(|| missing(place.field("image_url")))?;
        let param = || place.field("image_url.url");
        self.preferences
            .unknown(image.unknown.as_ref(), || place.field("image_url"))?;
        if let Some(detail) = image.detail {
            let name = "messages[].content[].image_url.detail";
            self.preferences
                .leave_out(name, detail, || place.field("image_url.detail"))?;
        }
        let url = image.url.as_deref().ok_or_else(|| missing(param()))?;
        let (media_type, data) = data_url(url).ok_or_else(|| {
            Untranslatable::new(
                param(),
                "Converse takes an image only within the request: send it as a data: URL in base64.",
            )
        })?;
        let format = image_format(media_type).ok_or_else(|| {
            Untranslatable::new(param(), "Converse takes images in PNG, JPEG, GIF and WebP.")
        })?;
        let data = base64(data, param)?;
        write_all(
            blocks.next(),
            &[
                r#"{"image":{"format":""#,
                format,
                r#"","source":{"bytes":""#,
                data,
                r#""}}}"#,
            ],
        );
        Ok(())
    }

    fn write_document(
        &mut self,
        file: Option<&File<'_>>,
        place: Place,
        blocks: &mut impl Blocks,
    ) -> Result<(), Untranslatable> {
        let file = file.ok_or_else(|| missing(place.field("file")))?;
        self.preferences
            .unknown(file.unknown.as_ref(), || place.field("file"))?;
        if file.file_id.is_some() {
            return Err(Untranslatable::new(
                place.field("file.file_id"),
                "Converse does not know files by id: send the file within the request, as file_data.",
            ));
        }
        let param = || place.field("file.file_data");
        let data = file.file_data.as_deref().ok_or_else(|| missing(param()))?;
        let (media_type, data) = data_url(data).unwrap_or(("", data));
        let file_name = file.filename.as_deref().unwrap_or_default();
        let format = document_format(media_type, file_name).ok_or_else(|| {
            Untranslatable::new(
                param(),
                "Converse takes documents in PDF, CSV, DOC, DOCX, XLS, XLSX, HTML, TXT and MD: the data: URL or the \
                 filename must say which it is.",
            )
        })?;
        let data = base64(data, param)?;
        let name = self.document_names.name(file_name);
        write_all(
            blocks.next(),
            &[
                r#"{"document":{"format":""#,
                format,
                r#"","name":""#,
                &name,
                r#"","source":{"bytes":""#,
                data,
                r#""}}}"#,
            ],
        );
        Ok(())
    }

    fn write_audio(
        &mut self,
        audio: Option<&InputAudio<'_>>,
        place: Place,
        blocks: &mut impl Blocks,
    ) -> Result<(), Untranslatable> {
        let audio = audio.ok_or_else(|| missing(place.field("input_audio")))?;
        self.preferences
            .unknown(audio.unknown.as_ref(), || place.field("input_audio"))?;
        let format = match audio.format.as_deref() {
            Some("wav") => "wav",
            Some("mp3") => "mp3",
            _ => return Err(wrong_type(place.field("input_audio.format"))),
        };
        let param = || place.field("input_audio.data");
        let data = base64(audio.data.as_deref().ok_or_else(|| missing(param()))?, param)?;
        write_all(
            blocks.next(),
            &[
                r#"{"audio":{"format":""#,
                format,
                r#"","source":{"bytes":""#,
                data,
                r#""}}}"#,
            ],
        );
        Ok(())
    }
}

/// Writes a text block of a JSON string as it is, unless it is blank.
pub(super) fn write_text(
    text: Option<&RawValue>,
    place: Place,
    field: &str,
    blocks: &mut impl Blocks,
) -> Result<(), Untranslatable> {
    let text = text.ok_or_else(|| missing(place.field(field)))?;
    if !is_blank(inner(text).ok_or_else(|| wrong_type(place.field(field)))?) {
        write_all(blocks.next(), &[r#"{"text":"#, text.get(), "}"]);
    }
    Ok(())
}

/// How long a prefix is cached, as a field of a cache point.
pub(super) fn ttl(control: Option<&CacheControl<'_>>) -> &'static str {
    match control.and_then(|control| control.ttl.as_deref()) {
        Some("5m") => r#","ttl":"5m""#,
        Some("1h") => r#","ttl":"1h""#,
        _ => "",
    }
}

/// Writes the end of a prefix that may be cached.
pub(super) fn write_cache_point(ttl: &str, blocks: &mut impl Blocks) {
    write_all(blocks.next(), &[r#"{"cachePoint":{"type":"default""#, ttl, "}}"]);
}

fn base64(data: &str, param: impl FnOnce() -> String) -> Result<&str, Untranslatable> {
    match is_base64(data) {
        true => Ok(data),
        false => Err(Untranslatable::new(
            param(),
            "The data is empty or not in base64.",
        )),
    }
}

pub(super) fn missing(param: String) -> Untranslatable {
    Untranslatable::new(param, "The field is missing.")
}

/// The text of a field that must be there.
pub(super) fn required<'t>(
    text: Option<&'t Text<'_>>,
    param: impl FnOnce() -> String,
) -> Result<&'t str, Untranslatable> {
    text.map(|text| &**text).ok_or_else(|| missing(param()))
}
