//! Translation of content blocks to the parts of a chat message.

use super::block_errors::misplaced_block_error;
use super::body::{Block, Content, ContentPart, Source};
use super::destination::Destination;
use super::dropped_fields::{DroppedFields, JsonPath};
use super::json::{Text, write_json, write_string_continuation};
use super::mismatch::read_block_content;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::json::write_string;

/// Returns the text of a `text` block.
pub(super) fn block_text<'b>(
    place: &JsonPath<'_>,
    block: &'b Block<'_>,
    left_out: &mut DroppedFields,
) -> Result<&'b str, UntranslatableRequest> {
    let cites = block.citations.is_some_and(|citations| citations.get() != "[]");
    if cites {
        left_out.drop_preference(&place.field("citations"), "citations")?;
    }
    left_out.drop_unread_fields(
        place,
        block.present_fields(),
        &["type", "text", "citations"],
        block.unknown.as_deref(),
    )?;
    let text = block
        .text
        .as_ref()
        .ok_or_else(|| place.field("text").missing_error())?;
    Ok(&text.0)
}

/// Returns the text of a block at a position where no other type is allowed.
pub(super) fn required_block_text<'b>(
    place: &JsonPath<'_>,
    block: &'b Block<'_>,
    left_out: &mut DroppedFields,
) -> Result<&'b str, UntranslatableRequest> {
    if block.kind.as_ref().is_none_or(|kind| kind.0 != "text") {
        return Err(misplaced_block_error(place, block));
    }
    block_text(place, block, left_out)
}

/// Writes texts as one string, joined by line feeds.
#[derive(Debug, Default)]
pub(super) struct JoinedTextWriter {
    has_text: bool,
}

impl JoinedTextWriter {
    pub(super) fn push(&mut self, text: &str, out: &mut Vec<u8>) {
        if self.has_text {
            out.pop();
            write_json(out, "\\");
            write_string_continuation(out, b'n', text);
        } else {
            write_string(out, text);
        }
        self.has_text = true;
    }

    /// Returns whether there was any text.
    pub(super) fn has_text(&self) -> bool {
        self.has_text
    }
}

/// Writes content that may hold only text as one string; `""` if it holds nothing.
pub(super) fn write_text_only(
    place: &JsonPath<'_>,
    content: &Content<'_>,
    left_out: &mut DroppedFields,
    out: &mut Vec<u8>,
) -> Result<(), UntranslatableRequest> {
    let mut joined = JoinedTextWriter::default();
    for (at, piece) in content.parts().enumerate() {
        match piece {
            ContentPart::Text(text) => joined.push(text, out),
            ContentPart::Block(block) => {
                joined.push(required_block_text(&place.element(at), block, left_out)?, out);
            }
        }
    }
    if !joined.has_text() {
        write_json(out, "\"\"");
    }
    Ok(())
}

/// Writes the parts of a user's message.
#[derive(Debug)]
pub(super) struct PartWriter<'o> {
    pub(super) dropped_fields: &'o mut DroppedFields,
    pub(super) out: &'o mut Vec<u8>,
    has_parts: bool,
    destination: Destination,
}

impl<'o> PartWriter<'o> {
    pub(super) fn new(way: Destination, left_out: &'o mut DroppedFields, out: &'o mut Vec<u8>) -> Self {
        PartWriter {
            dropped_fields: left_out,
            out,
            has_parts: false,
            destination: way,
        }
    }

    fn start_part(&mut self, json: &str) {
        if std::mem::replace(&mut self.has_parts, true) {
            self.out.push(b',');
        }
        write_json(self.out, json);
    }

    pub(super) fn write_text(&mut self, text: &str) {
        self.start_part("{\"type\":\"text\",\"text\":");
        write_string(self.out, text);
        self.out.push(b'}');
    }

    /// Writes a block of type text, image or document.
    pub(super) fn write_block(
        &mut self,
        place: &JsonPath<'_>,
        block: &Block<'_>,
    ) -> Result<(), UntranslatableRequest> {
        match block.kind.as_ref().map(|kind| &*kind.0) {
            Some("text") => {
                let text = block_text(place, block, self.dropped_fields)?;
                self.write_text(text);
                Ok(())
            }
            Some("image") => self.write_image(place, block),
            Some("document") => self.write_document(place, block),
            _ => Err(misplaced_block_error(place, block)),
        }
    }

    fn write_image(&mut self, place: &JsonPath<'_>, block: &Block<'_>) -> Result<(), UntranslatableRequest> {
        self.dropped_fields.drop_unread_fields(
            place,
            block.present_fields(),
            &["type", "source"],
            block.unknown.as_deref(),
        )?;
        let place = &place.field("source");
        let source = block.source.as_ref().ok_or_else(|| place.missing_error())?;
        match source.kind.as_ref().map(|kind| &*kind.0) {
            Some("base64") => {
                let (media_type, data) = self.source_data(place, source)?;
                if !is_image(media_type) {
                    return Err(place
                        .field("media_type")
                        .error("This is not an image media type."));
                }
                self.start_part("{\"type\":\"image_url\",\"image_url\":{\"url\":");
                write_data_url(self.out, media_type, data);
            }
            Some("url") => {
                self.check_source_fields(place, source, &["type", "url"])?;
                let url = source
                    .url
                    .as_ref()
                    .ok_or_else(|| place.field("url").missing_error())?;
                self.start_part("{\"type\":\"image_url\",\"image_url\":{\"url\":");
                write_string(self.out, &url.0);
            }
            _ => return Err(unsupported_source_error(place)),
        }
        write_json(self.out, "}}");
        Ok(())
    }

    fn write_document(
        &mut self,
        place: &JsonPath<'_>,
        block: &Block<'_>,
    ) -> Result<(), UntranslatableRequest> {
        let read = ["type", "source", "title", "context", "citations"];
        self.dropped_fields.drop_unread_fields(
            place,
            block.present_fields(),
            &read,
            block.unknown.as_deref(),
        )?;
        if block
            .citations
            .is_some_and(|citations| requests_citations(citations.get()))
        {
            self.dropped_fields
                .drop_preference(&place.field("citations"), "citations")?;
        }
        let place = &place.field("source");
        let source = block.source.as_ref().ok_or_else(|| place.missing_error())?;
        match source.kind.as_ref().map(|kind| &*kind.0) {
            Some("base64") => {
                let (media_type, data) = self.source_data(place, source)?;
                if media_type != "application/pdf" {
                    return Err(place
                        .field("media_type")
                        .error("Documents in base64 must be PDF."));
                }
                self.write_texts([&block.context]);
                self.start_part("{\"type\":\"file\",\"file\":{\"filename\":");
                write_string(
                    self.out,
                    block.title.as_ref().map_or("document.pdf", |title| &title.0),
                );
                write_json(self.out, ",\"file_data\":");
                write_data_url(self.out, media_type, data);
                write_json(self.out, "}}");
            }
            Some("text") => {
                let (_, data) = self.source_data(place, source)?;
                self.write_texts([&block.title, &block.context]);
                self.write_text(data);
            }
            Some("content") => {
                self.check_source_fields(place, source, &["type", "content"])?;
                let place = &place.field("content");
                let content = source.content.as_ref().ok_or_else(|| place.missing_error())?;
                self.write_texts([&block.title, &block.context]);
                for (at, piece) in read_block_content(place, content)?.parts().enumerate() {
                    match piece {
                        ContentPart::Text(text) => self.write_text(text),
                        ContentPart::Block(block)
                            if block.kind.as_ref().is_some_and(|kind| kind.0 == "document") =>
                        {
                            return Err(misplaced_block_error(&place.element(at), block));
                        }
                        ContentPart::Block(block) => self.write_block(&place.element(at), block)?,
                    }
                }
            }
            // The URL takes the position of the data.
            Some("url") if self.destination.is_intermediate() => {
                self.check_source_fields(place, source, &["type", "url"])?;
                let url = source
                    .url
                    .as_ref()
                    .ok_or_else(|| place.field("url").missing_error())?;
                self.write_texts([&block.title, &block.context]);
                self.start_part("{\"type\":\"file\",\"file\":{\"file_data\":");
                write_string(self.out, &url.0);
                write_json(self.out, "}}");
            }
            _ => return Err(unsupported_source_error(place)),
        }
        Ok(())
    }

    /// Writes the title and the context of a document as parts before it.
    fn write_texts<const N: usize>(&mut self, texts: [&Option<Text<'_>>; N]) {
        for text in texts.into_iter().flatten() {
            self.write_text(&text.0);
        }
    }

    /// Returns the media type and the data of an inline source.
    fn source_data<'s>(
        &mut self,
        place: &JsonPath<'_>,
        source: &'s Source<'_>,
    ) -> Result<(&'s str, &'s str), UntranslatableRequest> {
        self.check_source_fields(place, source, &["type", "media_type", "data"])?;
        let required = |name| move || place.field(name).missing_error();
        let media_type = source.media_type.as_ref().ok_or_else(required("media_type"))?;
        let data = source.data.as_ref().ok_or_else(required("data"))?;
        Ok((&media_type.0, &data.0))
    }

    fn check_source_fields(
        &mut self,
        place: &JsonPath<'_>,
        source: &Source<'_>,
        read: &[&str],
    ) -> Result<(), UntranslatableRequest> {
        self.dropped_fields.drop_unread_fields(
            place,
            source.present_fields(),
            read,
            source.unknown.as_deref(),
        )
    }
}

fn unsupported_source_error(place: &JsonPath<'_>) -> UntranslatableRequest {
    place.field("type").error(
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

fn requests_citations(citations: &str) -> bool {
    // `{"enabled":false}` is the only other value in the API.
    citations.contains("true")
}

fn write_data_url(out: &mut Vec<u8>, media_type: &str, data: &str) {
    write_json(out, "\"data:");
    write_json(out, media_type);
    write_json(out, ";base64");
    write_string_continuation(out, b',', data);
}
