//! Anthropic's messages, whole or as the events `message_start`, `content_block_*` and `message_delta`.
//!
//! The generated text is the strings of content blocks and of `stop_details`. The block with index 2 has the keys
//! `2/text`, `2/thinking`, `2/input/city`, and in a stream `2/partial_json`.

use proofgate_json::{Event, JsonError, Reader};

use super::content::TextMode;
use super::paths::Step;
use super::{DocumentKind, GeneratedText};

/// The type that a document declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Message,
    /// `content_block_start` or `content_block_delta`.
    ContentBlock,
    BlockStop,
    OtherEvent,
    Unknown,
}

impl Kind {
    fn from_name(name: &str) -> Self {
        match name {
            "message" => Kind::Message,
            "content_block_start" | "content_block_delta" => Kind::ContentBlock,
            "content_block_stop" => Kind::BlockStop,
            "message_start" | "message_delta" | "message_stop" | "ping" => Kind::OtherEvent,
            _ => Kind::Unknown,
        }
    }
}

impl GeneratedText {
    pub(super) fn read_message(&mut self, reader: &mut Reader<'_, '_>) -> Result<DocumentKind, JsonError> {
        // The type, the index and the content may come in any order.
        let block = self.paths.add(None, Step::Element(0));
        let (mut kind, mut has_content, mut has_error) = (Kind::Message, false, false);
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.name), value) {
                ("type", Event::String(name)) => kind = Kind::from_name(name.decode(&mut self.name)),
                ("error", value) => {
                    has_error |= value != Event::Null;
                    reader.skip(value)?;
                }
                ("index", value) if matches!(value, Event::Number(_)) => self.paths.set_index(block, value),
                ("content", Event::ArrayStart) => {
                    has_content = true;
                    self.read_elements(reader)?;
                }
                ("message", Event::ObjectStart) => self.read_started_message(reader)?,
                ("content_block" | "delta", Event::ObjectStart) => {
                    self.read_fields(reader, block, TextMode::Fragment)?;
                }
                ("content_block" | "delta", Event::String(string)) => self.push_fragment(string, block),
                ("content_block" | "delta", value) => self.read_content(reader, value, block)?,
                ("stop_details", value) => {
                    let details = self.paths.add_field(None, key);
                    self.read_content(reader, value, details)?;
                }
                (_, value) => reader.skip(value)?,
            }
        }
        let is_known = match kind {
            Kind::Message => has_content,
            Kind::Unknown => false,
            Kind::ContentBlock | Kind::BlockStop | Kind::OtherEvent => true,
        };
        if !is_known || has_error {
            return Ok(DocumentKind::Other);
        }
        if kind != Kind::ContentBlock {
            self.parts.iter_mut().for_each(|part| part.is_complete = true);
        }
        if kind == Kind::BlockStop {
            self.finished.push(block);
        }
        Ok(DocumentKind::Known)
    }

    /// Reads the message of `message_start`.
    fn read_started_message(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read_event()? {
            match (key.decode(&mut self.name), reader.read_event()?) {
                ("content", Event::ArrayStart) => self.read_elements(reader)?,
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    /// Reads the elements of an array after its start: the key of everything in an element begins with its index.
    pub(super) fn read_elements(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        for position in 0.. {
            let event = reader.read_event()?;
            if event == Event::ArrayEnd {
                break;
            }
            let element = self.paths.add(None, Step::Element(position));
            self.read_content(reader, event, element)?;
        }
        Ok(())
    }
}
