//! Blocks of content as the parts of a chat message.

use super::body::{Block, Content, Piece, Source};
use super::json::{Text, put, put_continued};
use super::left_out::{LeftOut, Place};
use super::misfit::content_within;
use super::refused_blocks::block_refused;
use super::way::Way;
use proofgate_dialect::Untranslatable;
use proofgate_dialect::json::write_string;

/// The text of a block of type `text`.
pub(super) fn text_of<'b>(
    place: &Place<'_>,
    block: &'b Block<'_>,
    left_out: &mut LeftOut,
) -> Result<&'b str, Untranslatable> {
    let cites = block.citations.is_some_and(|citations| citations.get() != "[]");
    if cites {
        left_out.preference(&place.field("citations"), "citations")?;
    }
    left_out.others(
        place,
        block.given(),
        &["type", "text", "citations"],
        block.unknown.as_deref(),
    )?;
    let text = block
        .text
        .as_ref()
        .ok_or_else(|| place.field("text").required())?;
    Ok(&text.0)
}

/// The text of a block at a place where no other type can stand.
pub(super) fn only_text_of<'b>(
    place: &Place<'_>,
    block: &'b Block<'_>,
    left_out: &mut LeftOut,
) -> Result<&'b str, Untranslatable> {
    if block.kind.as_ref().is_none_or(|kind| kind.0 != "text") {
        return Err(block_refused(place, block));
    }
    text_of(place, block, left_out)
}

/// Writes texts as one string, joined by line feeds.
#[derive(Debug, Default)]
pub(super) struct Joined {
    begun: bool,
}

impl Joined {
    pub(super) fn push(&mut self, text: &str, out: &mut Vec<u8>) {
        if self.begun {
            out.pop();
            put(out, "\\");
            put_continued(out, b'n', text);
        } else {
            write_string(out, text);
        }
        self.begun = true;
    }

    /// Whether there was any text.
    pub(super) fn begun(&self) -> bool {
        self.begun
    }
}

/// Writes a content that may hold only text as one string; `""` when it holds nothing.
pub(super) fn put_text_only(
    place: &Place<'_>,
    content: &Content<'_>,
    left_out: &mut LeftOut,
    out: &mut Vec<u8>,
) -> Result<(), Untranslatable> {
    let mut joined = Joined::default();
    for (at, piece) in content.pieces().enumerate() {
        match piece {
            Piece::Text(text) => joined.push(text, out),
            Piece::Block(block) => {
                joined.push(only_text_of(&place.item(at), block, left_out)?, out);
            }
        }
    }
    if !joined.begun() {
        put(out, "\"\"");
    }
    Ok(())
}

/// Writes the parts of a user's message.
#[derive(Debug)]
pub(super) struct Parts<'o> {
    pub(super) left_out: &'o mut LeftOut,
    pub(super) out: &'o mut Vec<u8>,
    begun: bool,
    way: Way,
}

impl<'o> Parts<'o> {
    pub(super) fn new(way: Way, left_out: &'o mut LeftOut, out: &'o mut Vec<u8>) -> Self {
        Parts {
            left_out,
            out,
            begun: false,
            way,
        }
    }

    fn begin(&mut self, json: &str) {
        if std::mem::replace(&mut self.begun, true) {
            self.out.push(b',');
        }
        put(self.out, json);
    }

    pub(super) fn text(&mut self, text: &str) {
        self.begin("{\"type\":\"text\",\"text\":");
        write_string(self.out, text);
        self.out.push(b'}');
    }

    /// A block of type text, image or document.
    pub(super) fn block(&mut self, place: &Place<'_>, block: &Block<'_>) -> Result<(), Untranslatable> {
        match block.kind.as_ref().map(|kind| &*kind.0) {
            Some("text") => {
                let text = text_of(place, block, self.left_out)?;
                self.text(text);
                Ok(())
            }
            Some("image") => self.image(place, block),
            Some("document") => self.document(place, block),
            _ => Err(block_refused(place, block)),
        }
    }

    fn image(&mut self, place: &Place<'_>, block: &Block<'_>) -> Result<(), Untranslatable> {
        self.left_out.others(
            place,
            block.given(),
            &["type", "source"],
            block.unknown.as_deref(),
        )?;
        let place = &place.field("source");
        let source = block.source.as_ref().ok_or_else(|| place.required())?;
        match source.kind.as_ref().map(|kind| &*kind.0) {
            Some("base64") => {
                let (media_type, data) = self.data(place, source)?;
                if !is_image(media_type) {
                    return Err(place
                        .field("media_type")
                        .refused("This is not an image media type."));
                }
                self.begin("{\"type\":\"image_url\",\"image_url\":{\"url\":");
                put_data_url(self.out, media_type, data);
            }
            Some("url") => {
                self.only(place, source, &["type", "url"])?;
                let url = source.url.as_ref().ok_or_else(|| place.field("url").required())?;
                self.begin("{\"type\":\"image_url\",\"image_url\":{\"url\":");
                write_string(self.out, &url.0);
            }
            _ => return Err(source_refused(place)),
        }
        put(self.out, "}}");
        Ok(())
    }

    fn document(&mut self, place: &Place<'_>, block: &Block<'_>) -> Result<(), Untranslatable> {
        let read = ["type", "source", "title", "context", "citations"];
        self.left_out
            .others(place, block.given(), &read, block.unknown.as_deref())?;
        if block
            .citations
            .is_some_and(|citations| wants_citations(citations.get()))
        {
            self.left_out.preference(&place.field("citations"), "citations")?;
        }
        let place = &place.field("source");
        let source = block.source.as_ref().ok_or_else(|| place.required())?;
        match source.kind.as_ref().map(|kind| &*kind.0) {
            Some("base64") => {
                let (media_type, data) = self.data(place, source)?;
                if media_type != "application/pdf" {
                    return Err(place
                        .field("media_type")
                        .refused("Documents in base64 must be PDF."));
                }
                self.texts([&block.context]);
                self.begin("{\"type\":\"file\",\"file\":{\"filename\":");
                write_string(
                    self.out,
                    block.title.as_ref().map_or("document.pdf", |title| &title.0),
                );
                put(self.out, ",\"file_data\":");
                put_data_url(self.out, media_type, data);
                put(self.out, "}}");
            }
            Some("text") => {
                let (_, data) = self.data(place, source)?;
                self.texts([&block.title, &block.context]);
                self.text(data);
            }
            Some("content") => {
                self.only(place, source, &["type", "content"])?;
                let place = &place.field("content");
                let content = source.content.as_ref().ok_or_else(|| place.required())?;
                self.texts([&block.title, &block.context]);
                for (at, piece) in content_within(place, content)?.pieces().enumerate() {
                    match piece {
                        Piece::Text(text) => self.text(text),
                        Piece::Block(block)
                            if block.kind.as_ref().is_some_and(|kind| kind.0 == "document") =>
                        {
                            return Err(block_refused(&place.item(at), block));
                        }
                        Piece::Block(block) => self.block(&place.item(at), block)?,
                    }
                }
            }
            // The address stands where the data would.
            Some("url") if self.way.goes_on() => {
                self.only(place, source, &["type", "url"])?;
                let url = source.url.as_ref().ok_or_else(|| place.field("url").required())?;
                self.texts([&block.title, &block.context]);
                self.begin("{\"type\":\"file\",\"file\":{\"file_data\":");
                write_string(self.out, &url.0);
                put(self.out, "}}");
            }
            _ => return Err(source_refused(place)),
        }
        Ok(())
    }

    /// What the model is told of a document, as parts before it.
    fn texts<const N: usize>(&mut self, texts: [&Option<Text<'_>>; N]) {
        for text in texts.into_iter().flatten() {
            self.text(&text.0);
        }
    }

    /// The media type and the data of a source that holds it.
    fn data<'s>(
        &mut self,
        place: &Place<'_>,
        source: &'s Source<'_>,
    ) -> Result<(&'s str, &'s str), Untranslatable> {
        self.only(place, source, &["type", "media_type", "data"])?;
        let required = |name| move || place.field(name).required();
        let media_type = source.media_type.as_ref().ok_or_else(required("media_type"))?;
        let data = source.data.as_ref().ok_or_else(required("data"))?;
        Ok((&media_type.0, &data.0))
    }

    fn only(&mut self, place: &Place<'_>, source: &Source<'_>, read: &[&str]) -> Result<(), Untranslatable> {
        self.left_out
            .others(place, source.given(), read, source.unknown.as_deref())
    }
}

fn source_refused(place: &Place<'_>) -> Untranslatable {
    place.field("type").refused(
        "A source of this type has no counterpart at the provider of this model. Send the data itself.",
    )
}

fn is_image(media_type: &str) -> bool {
    let subtype = media_type.strip_prefix("image/").unwrap_or_default();
    !subtype.is_empty()
        && subtype
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn wants_citations(citations: &str) -> bool {
    // `{"enabled":false}` is the only other value that the API knows.
    citations.contains("true")
}

fn put_data_url(out: &mut Vec<u8>, media_type: &str, data: &str) {
    put(out, "\"data:");
    put(out, media_type);
    put(out, ";base64");
    put_continued(out, b',', data);
}
