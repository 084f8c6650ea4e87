//! Reads the content of a response in a dialect of blocks or items: JSON of any shape, in which
//! some fields belong to the API.

use std::ops::Range;

use proofgate_json::{Event, JsonError, Reader, Str};

use super::paths::Step;
use super::{GeneratedText, Part, PartEncoding};
use crate::attachment::{AttachmentPolicy, is_skipped_attachment};
use crate::body_text::MIN_DIGITS;
use crate::splice::StringLocation;

/// The way in which the strings of an object are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextMode {
    /// The strings are complete texts.
    Complete,
    /// The strings are fragments that later events continue, except inside nested objects and
    /// arrays.
    Fragment,
}

impl GeneratedText {
    /// Records the strings of the value that starts with `event`, each as a complete text. The depth limit of the
    /// reader bounds the recursion.
    pub(super) fn read_content(
        &mut self,
        reader: &mut Reader<'_, '_>,
        event: Event<'_>,
        node: usize,
    ) -> Result<(), JsonError> {
        match event {
            Event::String(string) => self.push_complete(string, node, PartEncoding::String),
            Event::ObjectStart => self.read_fields(reader, node, TextMode::Complete)?,
            Event::ArrayStart => {
                for position in 0.. {
                    let event = reader.read_event()?;
                    if event == Event::ArrayEnd {
                        break;
                    }
                    let element = self.paths.add(Some(node), Step::Element(position));
                    self.read_content(reader, event, element)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Records the strings of an object after its start.
    ///
    /// It excludes names and numbers of the API, and data that only the provider can read and that
    /// clients must send back byte for byte: signatures, and encrypted content.
    pub(super) fn read_fields(
        &mut self,
        reader: &mut Reader<'_, '_>,
        node: usize,
        begin: TextMode,
    ) -> Result<(), JsonError> {
        let (mut is_redacted, mut data) = (false, 0..0);
        while let Event::Key(key) = reader.read_event()? {
            let start = reader.offset();
            let value = reader.read_event()?;
            let (name, first) = (key.decode(&mut self.name), self.parts.len());
            match (name, value) {
                ("type", Event::String(kind)) => {
                    is_redacted = kind.decode(&mut self.name) == "redacted_thinking";
                }
                (name, Event::String(_)) if is_opaque_field(name) => {}
                ("data", Event::String(string)) if is_binary_data(string, &mut self.text) => {}
                ("data", value) => {
                    let field = self.paths.add_field(Some(node), key);
                    self.read_content(reader, value, field)?;
                    data = first..self.parts.len();
                }
                ("logprobs", Event::ObjectStart | Event::ArrayStart) => {
                    reader.skip(value)?;
                    self.logprobs.push(start..reader.offset());
                }
                // The arguments of a tool are the model's text, including their field names.
                ("input" | "arguments", Event::ObjectStart | Event::ArrayStart) => {
                    let field = self.paths.add_field(Some(node), key);
                    self.read_json(reader, value, field)?;
                }
                // The name of a tool is sent whole.
                (name, Event::String(string)) if begin == TextMode::Fragment && name != "name" => {
                    let field = self.paths.add_field(Some(node), key);
                    self.push_fragment(string, field);
                }
                (_, Event::String(_) | Event::ObjectStart | Event::ArrayStart) => {
                    let field = self.paths.add_field(Some(node), key);
                    self.read_content(reader, value, field)?;
                }
                _ => {}
            }
        }
        if is_redacted {
            self.parts.drain(data);
        }
        Ok(())
    }

    /// Records everything in the value that starts with `event`: keys, strings and long numbers.
    pub(super) fn read_json(
        &mut self,
        reader: &mut Reader<'_, '_>,
        event: Event<'_>,
        node: usize,
    ) -> Result<(), JsonError> {
        match event {
            Event::String(string) => self.push_complete(string, node, PartEncoding::String),
            Event::Number(number) => {
                let end = reader.offset();
                self.push_number(number, end - number.len()..end, node);
            }
            Event::ObjectStart => {
                while let Event::Key(key) = reader.read_event()? {
                    let field = self.paths.add_field(Some(node), key);
                    self.push_complete(key, field, PartEncoding::Key);
                    let value = reader.read_event()?;
                    self.read_json(reader, value, field)?;
                }
            }
            Event::ArrayStart => {
                for position in 0.. {
                    let event = reader.read_event()?;
                    if event == Event::ArrayEnd {
                        break;
                    }
                    let element = self.paths.add(Some(node), Step::Element(position));
                    self.read_json(reader, event, element)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a string that is a complete text.
    fn push_complete(&mut self, string: Str<'_>, node: usize, written: PartEncoding) {
        if self.paths.overflowed() {
            return;
        }
        let start = self.text.len();
        string.unescape_into(&mut self.text);
        self.parts.push(Part {
            location: StringLocation::from(string),
            encoding: written,
            is_complete: true,
            value: start..self.text.len(),
            node,
        });
    }

    fn push_number(&mut self, number: &str, raw: Range<usize>, node: usize) {
        if self.paths.overflowed() || number.len() < MIN_DIGITS {
            return;
        }
        let start = self.text.len();
        self.text.push_str(number);
        self.parts.push(Part {
            location: StringLocation {
                raw,
                has_escapes: false,
            },
            encoding: PartEncoding::Number,
            is_complete: true,
            value: start..self.text.len(),
            node,
        });
    }
}

/// Whether strings in the field `name` are not text.
pub(super) fn is_opaque_field(name: &str) -> bool {
    matches!(
        name,
        "id" | "call_id"
            | "item_id"
            | "tool_use_id"
            | "status"
            | "role"
            | "signature"
            | "thoughtSignature"
            | "stop_reason"
            | "stop_sequence"
    ) || name.starts_with("encrypted_")
}

/// Whether `string`, the field `data` of a part, is an image, a recording or a file. `room` is a
/// buffer whose content is kept.
fn is_binary_data(string: Str<'_>, room: &mut String) -> bool {
    if !string.is_escaped() {
        return is_skipped_attachment(string.raw(), false, AttachmentPolicy::ScanText);
    }
    // Some providers write each `/` of base64 as `\/`.
    let start = room.len();
    string.unescape_into(room);
    let is_file = is_skipped_attachment(&room[start..], false, AttachmentPolicy::ScanText);
    room.truncate(start);
    is_file
}
