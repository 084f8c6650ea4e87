//! What a message says, part by part.

use serde_json::value::RawValue;

use crate::body::{Audio, File, Image, Message, Part};
use crate::losses::{Losses, json};
use crate::media::Media;
use crate::place::Place;
use crate::request::Chat;
use proofgate_dialect::Untranslatable;
use proofgate_dialect::json_text::JsonText;
use proofgate_dialect::losses::OTHER_FIELDS;

/// A part of a message, or the text that it is as a whole.
pub struct Piece<'b> {
    pub place: Place,
    pub said: Said<'b>,
    /// Marks for a cache, if the writer says them.
    pub cache: Option<&'b RawValue>,
    pub breakpoint: Option<&'b RawValue>,
}

pub enum Said<'b> {
    /// A text, or that of a refusal.
    Text(JsonText<'b>),
    Image(Image<'b>),
    File(File<'b>),
    /// A recording, and its format.
    Audio(Audio<'b>, &'static str),
}

impl<'b> Chat<'b> {
    /// What a message says, blank texts left out: most providers refuse them.
    pub fn pieces(
        &self,
        message: &Message<'b>,
        place: Place,
        losses: &mut Losses,
    ) -> Result<Vec<Piece<'b>>, Untranslatable> {
        match message.content {
            Some(content) => self.pieces_of(content, place, losses),
            None => Ok(Vec::new()),
        }
    }

    /// What a value says, which has the form of a message's content.
    pub fn pieces_of(
        &self,
        content: &'b RawValue,
        place: Place,
        losses: &mut Losses,
    ) -> Result<Vec<Piece<'b>>, Untranslatable> {
        if let Some(text) = JsonText::of(content) {
            let piece = Piece {
                place,
                said: Said::Text(text),
                cache: None,
                breakpoint: None,
            };
            return Ok(if text.is_blank() { Vec::new() } else { vec![piece] });
        }
        if !content.get().starts_with('[') {
            let message = "content must be a string or an array of parts";
            return Err(Untranslatable::new(place.field("content"), message));
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
    /// Reads a part; `None` is a blank text, or a part of a type that is not known, which is left out and named.
    fn read(
        self,
        place: Place,
        content: &'b RawValue,
        losses: &mut Losses,
    ) -> Result<Option<Piece<'b>>, Untranslatable> {
        let missing = |field: &str| {
            Untranslatable::new(
                place.field(field),
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
            losses.note(OTHER_FIELDS, content.get());
        }
        losses.unknown(self.unknown.as_ref());
        let said = match self.kind.as_deref() {
            Some("text") => Said::Text(self.text.ok_or_else(|| missing("text"))?),
            Some("refusal") => Said::Text(self.refusal.ok_or_else(|| missing("refusal"))?),
            Some("image_url") => {
                let image = self.image_url.ok_or_else(|| missing("image_url"))?;
                image.check(place, losses)?;
                Said::Image(image)
            }
            Some("file") => {
                let file = self.file.ok_or_else(|| missing("file"))?;
                file.check(place, losses)?;
                Said::File(file)
            }
            Some("input_audio") => {
                let audio = self.input_audio.ok_or_else(|| missing("input_audio"))?;
                let format = audio.check(place, losses)?;
                Said::Audio(audio, format)
            }
            Some(_) => {
                losses.lose("messages[].content[].type", content.get(), || place.field("type"))?;
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
            losses.offer(key, json(value), || place.field(field))?;
        }
        let is_blank = matches!(said, Said::Text(text) if text.is_blank());
        Ok((!is_blank).then_some(Piece {
            place,
            said,
            cache: self.cache_control,
            breakpoint: self.prompt_cache_breakpoint,
        }))
    }
}

impl<'b> Image<'b> {
    fn check(&self, place: Place, losses: &mut Losses) -> Result<(), Untranslatable> {
        losses.unknown(self.unknown.as_ref());
        let path = || place.field("image_url.detail");
        losses.offer(
            "messages[].content[].image_url.detail",
            self.detail.map(JsonText::raw),
            path,
        )
    }

    /// Where it is.
    pub fn media(&self, place: Place) -> Result<Media<'b>, Untranslatable> {
        self.url.and_then(Media::read).ok_or_else(|| {
            let message = "an image must be a data: URL in base64, or an http or https URL";
            Untranslatable::new(place.field("image_url.url"), message)
        })
    }
}

impl<'b> File<'b> {
    fn check(&self, place: Place, losses: &mut Losses) -> Result<(), Untranslatable> {
        losses.unknown(self.unknown.as_ref());
        if self.file_data.is_some() == self.file_id.is_some() {
            let message = "a file must have either file_data or file_id";
            return Err(Untranslatable::new(place.field("file"), message));
        }
        let path = || place.field("file.filename");
        let name = self.filename.map(JsonText::raw);
        losses.offer("messages[].content[].file.filename", name, path)
    }

    /// Where it is, and of which media type it is: of one that is not known the type is empty.
    pub fn media(&self, place: Place) -> Result<Media<'b>, Untranslatable> {
        if self.file_id.is_some() {
            let message =
                "the provider of this model cannot read files stored at another provider; send file_data";
            return Err(Untranslatable::new(place.field("file.file_id"), message));
        }
        let read = |data| Media::read(data).or_else(|| Media::read_bare(data));
        self.file_data.and_then(read).ok_or_else(|| {
            let message = "a file must be a data: URL in base64, plain base64, or an http or https URL";
            Untranslatable::new(place.field("file.file_data"), message)
        })
    }

    /// Its name, or nothing.
    pub fn name(&self) -> std::borrow::Cow<'b, str> {
        self.filename.and_then(JsonText::decoded).unwrap_or_default()
    }
}

impl<'b> Audio<'b> {
    fn check(&self, place: Place, losses: &mut Losses) -> Result<&'static str, Untranslatable> {
        losses.unknown(self.unknown.as_ref());
        match self.format.as_deref() {
            Some("wav") => Ok("wav"),
            Some("mp3") => Ok("mp3"),
            _ => Err(Untranslatable::new(
                place.field("input_audio.format"),
                "the format of a recording must be wav or mp3",
            )),
        }
    }

    /// Its data in base64.
    pub fn media(&self, place: Place) -> Result<Media<'b>, Untranslatable> {
        self.data.and_then(Media::read_bare).ok_or_else(|| {
            Untranslatable::new(place.field("input_audio.data"), "a recording must be in base64")
        })
    }
}

impl Piece<'_> {
    /// The text that it is.
    ///
    /// # Errors
    /// [`Untranslatable`] for anything else, where the provider takes nothing else.
    pub fn text(&self) -> Result<JsonText<'_>, Untranslatable> {
        match self.said {
            Said::Text(text) => Ok(text),
            _ => Err(self.not_here()),
        }
    }

    /// The refusal of a part in a message of its role.
    pub fn not_here(&self) -> Untranslatable {
        let message =
            "the provider of this model does not accept a part of this type in a message with this role";
        Untranslatable::new(self.place.field("type"), message)
    }
}
