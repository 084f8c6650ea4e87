//! Reads the content of a message, part by part.

use serde_json::value::RawValue;

use crate::body::{Audio, File, Image, Message, Part};
use crate::dropped_fields::{DroppedFields, raw_json};
use crate::media::MediaSource;
use crate::message_path::MessagePath;
use crate::request::ChatRequest;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::droppable_fields::OTHER_FIELDS;
use proofgate_dialect::json_text::JsonText;

/// A content part of a message, or its single text.
pub struct ContentPart<'b> {
    /// The location in the request.
    pub path: MessagePath,
    pub content: PartContent<'b>,
    /// Cache control, if the writer handles it.
    pub cache: Option<&'b RawValue>,
    /// `prompt_cache_breakpoint`; `None` if the client sends none.
    pub breakpoint: Option<&'b RawValue>,
}

/// The content of a part, by its type.
pub enum PartContent<'b> {
    /// A text, or the text of a refusal.
    Text(JsonText<'b>),
    Image(Image<'b>),
    File(File<'b>),
    /// A recording, and its format.
    Audio(Audio<'b>, &'static str),
}

impl<'b> ChatRequest<'b> {
    /// Returns the content of a message without blank texts, which most providers refuse.
    pub fn message_parts(
        &self,
        message: &Message<'b>,
        place: MessagePath,
        losses: &mut DroppedFields,
    ) -> Result<Vec<ContentPart<'b>>, UntranslatableRequest> {
        match message.content {
            Some(content) => self.parts_from_value(content, place, losses),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the parts of a value in the format of a message's content.
    pub fn parts_from_value(
        &self,
        content: &'b RawValue,
        place: MessagePath,
        losses: &mut DroppedFields,
    ) -> Result<Vec<ContentPart<'b>>, UntranslatableRequest> {
        if let Some(text) = JsonText::from_raw(content) {
            let piece = ContentPart {
                path: place,
                content: PartContent::Text(text),
                cache: None,
                breakpoint: None,
            };
            return Ok(if text.is_blank() { Vec::new() } else { vec![piece] });
        }
        if !content.get().starts_with('[') {
            let message = "content must be a string or an array of parts";
            return Err(UntranslatableRequest::new(place.field_path("content"), message));
        }
        let parts: Vec<Part<'b>> = self.parse(content.get())?;
        let mut pieces = Vec::with_capacity(parts.len());
        for (at, part) in parts.into_iter().enumerate() {
            pieces.extend(part.read(place.part(at), content, losses)?);
        }
        Ok(pieces)
    }
}

impl<'b> Part<'b> {
    /// Reads a part; returns `None` for a blank text, and for a part of an unknown type, which is dropped and
    /// reported.
    fn read(
        self,
        place: MessagePath,
        content: &'b RawValue,
        losses: &mut DroppedFields,
    ) -> Result<Option<ContentPart<'b>>, UntranslatableRequest> {
        let missing = |field: &str| {
            UntranslatableRequest::new(
                place.field_path(field),
                "a part lacks the field that its type requires",
            )
        };
        let members = [
            self.text.is_some() || self.refusal.is_some(),
            self.image_url.is_some(),
            self.file.is_some(),
            self.input_audio.is_some(),
        ];
        if members.iter().filter(|member| **member).count() > 1 {
            losses.record_field(OTHER_FIELDS, content.get());
        }
        losses.drop_unknown(self.unknown.as_ref());
        let said = match self.kind.as_deref() {
            Some("text") => PartContent::Text(self.text.ok_or_else(|| missing("text"))?),
            Some("refusal") => PartContent::Text(self.refusal.ok_or_else(|| missing("refusal"))?),
            Some("image_url") => {
                let image = self.image_url.ok_or_else(|| missing("image_url"))?;
                image.check(place, losses)?;
                PartContent::Image(image)
            }
            Some("file") => {
                let file = self.file.ok_or_else(|| missing("file"))?;
                file.check(place, losses)?;
                PartContent::File(file)
            }
            Some("input_audio") => {
                let audio = self.input_audio.ok_or_else(|| missing("input_audio"))?;
                let format = audio.check(place, losses)?;
                PartContent::Audio(audio, format)
            }
            Some(_) => {
                losses.drop_listed("messages[].content[].type", content.get(), || {
                    place.field_path("type")
                })?;
                return Ok(None);
            }
            None => return Err(missing("type")),
        };
        for (key, field, value) in [
            (
                "messages[].content[].cache_control",
                "cache_control",
                self.cache_control,
            ),
            (
                "messages[].content[].prompt_cache_breakpoint",
                "prompt_cache_breakpoint",
                self.prompt_cache_breakpoint,
            ),
        ] {
            losses.drop_unless_handled(key, raw_json(value), || place.field_path(field))?;
        }
        let is_blank = matches!(said, PartContent::Text(text) if text.is_blank());
        Ok((!is_blank).then_some(ContentPart {
            path: place,
            content: said,
            cache: self.cache_control,
            breakpoint: self.prompt_cache_breakpoint,
        }))
    }
}

impl<'b> Image<'b> {
    fn check(&self, place: MessagePath, losses: &mut DroppedFields) -> Result<(), UntranslatableRequest> {
        losses.drop_unknown(self.unknown.as_ref());
        let path = || place.field_path("image_url.detail");
        losses.drop_unless_handled(
            "messages[].content[].image_url.detail",
            self.detail.map(JsonText::raw),
            path,
        )
    }

    /// Returns the location of the data.
    pub fn media(&self, place: MessagePath) -> Result<MediaSource<'b>, UntranslatableRequest> {
        self.url.and_then(MediaSource::read).ok_or_else(|| {
            let message = "an image must be a data: URL in base64, or an http or https URL";
            UntranslatableRequest::new(place.field_path("image_url.url"), message)
        })
    }
}

impl<'b> File<'b> {
    fn check(&self, place: MessagePath, losses: &mut DroppedFields) -> Result<(), UntranslatableRequest> {
        losses.drop_unknown(self.unknown.as_ref());
        if self.file_data.is_some() == self.file_id.is_some() {
            let message = "a file must have either file_data or file_id";
            return Err(UntranslatableRequest::new(place.field_path("file"), message));
        }
        let path = || place.field_path("file.filename");
        let name = self.filename.map(JsonText::raw);
        losses.drop_unless_handled("messages[].content[].file.filename", name, path)
    }

    /// Returns the location of the data and its media type, which is empty if unknown.
    pub fn media(&self, place: MessagePath) -> Result<MediaSource<'b>, UntranslatableRequest> {
        if self.file_id.is_some() {
            let message =
                "the provider of this model cannot read files stored at another provider; send file_data";
            return Err(UntranslatableRequest::new(
                place.field_path("file.file_id"),
                message,
            ));
        }
        let read = |data| MediaSource::read(data).or_else(|| MediaSource::read_base64(data));
        self.file_data.and_then(read).ok_or_else(|| {
            let message = "a file must be a data: URL in base64, plain base64, or an http or https URL";
            UntranslatableRequest::new(place.field_path("file.file_data"), message)
        })
    }

    /// Returns the file name, or an empty string.
    pub fn name(&self) -> std::borrow::Cow<'b, str> {
        self.filename.and_then(JsonText::decode).unwrap_or_default()
    }
}

impl<'b> Audio<'b> {
    fn check(
        &self,
        place: MessagePath,
        losses: &mut DroppedFields,
    ) -> Result<&'static str, UntranslatableRequest> {
        losses.drop_unknown(self.unknown.as_ref());
        match self.format.as_deref() {
            Some("wav") => Ok("wav"),
            Some("mp3") => Ok("mp3"),
            _ => Err(UntranslatableRequest::new(
                place.field_path("input_audio.format"),
                "the format of a recording must be wav or mp3",
            )),
        }
    }

    /// Returns its data in base64.
    pub fn media(&self, place: MessagePath) -> Result<MediaSource<'b>, UntranslatableRequest> {
        self.data.and_then(MediaSource::read_base64).ok_or_else(|| {
            UntranslatableRequest::new(
                place.field_path("input_audio.data"),
                "a recording must be in base64",
            )
        })
    }
}

impl ContentPart<'_> {
    /// Returns the text of the part.
    ///
    /// # Errors
    /// [`UntranslatableRequest`] for any other part, where the provider accepts only text.
    pub fn text(&self) -> Result<JsonText<'_>, UntranslatableRequest> {
        match self.content {
            PartContent::Text(text) => Ok(text),
            _ => Err(self.misplaced_error()),
        }
    }

    /// Returns the error for a part that is not allowed in a message with its role.
    pub fn misplaced_error(&self) -> UntranslatableRequest {
        let message =
            "the provider of this model does not accept a part of this type in a message with this role";
        UntranslatableRequest::new(self.path.field_path("type"), message)
    }
}
