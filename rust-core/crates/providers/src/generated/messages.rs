//! Anthropic's messages, whole or as `message_start`, `content_block_*` and `message_delta`.
//!
//! Generated are the strings of content blocks, and of `stop_details`. The block with the index 2 has the keys `2/text`,
//! `2/thinking`, `2/input/city`, and in a stream `2/partial_json`.

use proofgate_json::{Event, JsonError, Reader};

use super::content::Begin;
use super::paths::Step;
use super::{GeneratedText, Shape};

/// What a document says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    /// `content_block_start` or `content_block_delta`.
    Piece,
    BlockStop,
    OtherEvent,
    Unknown,
}

impl Kind {
    fn of(name: &str) -> Self {
        match name {
            "message" => Kind::Message,
            "content_block_start" | "content_block_delta" => Kind::Piece,
            "content_block_stop" => Kind::BlockStop,
            "message_start" | "message_delta" | "message_stop" | "ping" => Kind::OtherEvent,
            _ => Kind::Unknown,
        }
    }
}

impl GeneratedText {
    pub(super) fn read_message(&mut self, reader: &mut Reader<'_, '_>) -> Result<Shape, JsonError> {
        // The kind, the index and what they are of come in any order.
        let block = self.paths.add(None, Step::Element(0));
        let (mut kind, mut has_content, mut has_error) = (Kind::Message, false, false);
        while let Event::Key(key) = reader.read()? {
            let value = reader.read()?;
            match (key.decoded(&mut self.name), value) {
                ("type", Event::String(name)) => kind = Kind::of(name.decoded(&mut self.name)),
                ("error", value) => {
                    has_error |= value != Event::Null;
                    reader.skip(value)?;
                }
                ("index", value) if matches!(value, Event::Number(_)) => self.paths.set_index(block, value),
                ("content", Event::ArrayStart) => {
                    has_content = true;
                    self.elements(reader)?;
                }
                ("message", Event::ObjectStart) => self.started(reader)?,
                ("content_block" | "delta", Event::ObjectStart) => {
                    self.fields(reader, block, Begin::Piece)?;
                }
                ("content_block" | "delta", Event::String(string)) => self.piece(string, block),
                ("content_block" | "delta", value) => self.content(reader, value, block)?,
                ("stop_details", value) => {
                    let details = self.paths.field(None, key);
                    self.content(reader, value, details)?;
                }
                (_, value) => reader.skip(value)?,
            }
        }
        let is_known = match kind {
            Kind::Message => has_content,
            Kind::Unknown => false,
            Kind::Piece | Kind::BlockStop | Kind::OtherEvent => true,
        };
        if !is_known || has_error {
            return Ok(Shape::Other);
        }
        if kind != Kind::Piece {
            self.parts.iter_mut().for_each(|part| part.whole = true);
        }
        if kind == Kind::BlockStop {
            self.finished.push(block);
        }
        Ok(Shape::Known)
    }

    /// The message of `message_start`.
    fn started(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read()? {
            match (key.decoded(&mut self.name), reader.read()?) {
                ("content", Event::ArrayStart) => self.elements(reader)?,
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    /// The elements of an array that has begun: each begins the key of what is below it.
    pub(super) fn elements(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        for position in 0.. {
            let event = reader.read()?;
            if event == Event::ArrayEnd {
                break;
            }
            let element = self.paths.add(None, Step::Element(position));
            self.content(reader, event, element)?;
        }
        Ok(())
    }
}
