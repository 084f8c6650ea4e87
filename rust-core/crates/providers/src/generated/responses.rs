//! OpenAI's Responses, whole or as events.
//!
//! The generated text is the strings of output items, `output_text`, and an `error` next to them,
//! but not the fields in which a response repeats its request. The deltas of an event such as
//! `response.output_text.delta` have the key of their text in the whole response, such as
//! `0/content/1/text`; the deltas of an unknown event have the event's name and indices instead.
//! Repetitions in other events are complete texts.

use proofgate_json::{Event, JsonError, Reader};

use super::content::is_opaque_field;
use super::paths::{Step, index};
use super::{DocumentKind, GeneratedText};

/// The identifying fields of a document, which come in any order.
#[derive(Debug, Default)]
struct ResponseFields {
    /// Whether it is a `response.…` event; its name is in [`GeneratedText::kind`].
    is_event: bool,
    is_other_event: bool,
    is_response: bool,
    has_output: bool,
    /// The node of its `delta` field.
    delta: Option<usize>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    other_index: Option<u64>,
}

impl GeneratedText {
    pub(super) fn read_response(&mut self, reader: &mut Reader<'_, '_>) -> Result<DocumentKind, JsonError> {
        let nowhere = Step::Field(0..0);
        let item = self.paths.add(None, nowhere.clone());
        let event = self.paths.add(Some(item), nowhere);
        let mut seen = ResponseFields::default();
        while let Event::Key(key) = reader.read_event()? {
            let start = reader.offset();
            let value = reader.read_event()?;
            match (key.decode(&mut self.name), value) {
                ("type", Event::String(name)) => {
                    self.kind.clear();
                    name.unescape_into(&mut self.kind);
                    seen.is_event = self.kind.starts_with("response.");
                    seen.is_other_event = !seen.is_event;
                }
                ("object", Event::String(name)) => {
                    seen.is_response = name.decode(&mut self.name) == "response";
                }
                ("output_index", value @ Event::Number(_)) => self.paths.set_index(item, value),
                ("content_index", value @ Event::Number(_)) => seen.content_index = index(value),
                ("summary_index", value @ Event::Number(_)) => seen.summary_index = index(value),
                (name, value @ Event::Number(_)) if name.ends_with("_index") => {
                    seen.other_index = index(value);
                }
                ("output", Event::ArrayStart) => {
                    seen.has_output = true;
                    self.read_elements(reader)?;
                }
                ("output_text" | "error", value) => {
                    let field = self.paths.add_field(None, key);
                    self.read_content(reader, value, field)?;
                }
                ("response", Event::ObjectStart) => {
                    let response = self.paths.add_field(Some(event), key);
                    self.read_nested_response(reader, response)?;
                }
                ("logprobs", Event::ObjectStart | Event::ArrayStart) => {
                    reader.skip(value)?;
                    self.logprobs.push(start..reader.offset());
                }
                ("response_id" | "event_id" | "obfuscation", Event::String(_)) => {}
                (name, Event::String(_)) if is_opaque_field(name) => {}
                // The other fields of a response repeat its request.
                (_, value) if seen.is_response => reader.skip(value)?,
                ("input" | "arguments", Event::ObjectStart | Event::ArrayStart) => {
                    let field = self.paths.add_field(Some(event), key);
                    self.read_json(reader, value, field)?;
                }
                (name, value) => {
                    let is_delta = name == "delta";
                    let field = self.paths.add_field(Some(event), key);
                    seen.delta = if is_delta { Some(field) } else { seen.delta };
                    self.read_content(reader, value, field)?;
                }
            }
        }
        match (seen.is_event, seen.is_response) {
            (true, false) => self.assign_event_path(item, event, &seen),
            (false, true) if seen.has_output && !seen.is_other_event => {
                // These parts were recorded before their item or event was known.
                let paths = &self.paths;
                self.parts.retain(|part| !paths.is_below(part.node, event));
            }
            _ => return Ok(DocumentKind::Other),
        }
        Ok(DocumentKind::Known)
    }

    /// Reads the response in an event.
    fn read_nested_response(&mut self, reader: &mut Reader<'_, '_>, node: usize) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read_event()? {
            match (key.decode(&mut self.name), reader.read_event()?) {
                ("output" | "output_text" | "error", value) => {
                    let field = self.paths.add_field(Some(node), key);
                    self.read_content(reader, value, field)?;
                }
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    /// Sets the keys of an event's parts, once its name and its indices are known.
    fn assign_event_path(&mut self, item: usize, event: usize, seen: &ResponseFields) {
        if self.overflowed() {
            return;
        }
        let kind = std::mem::take(&mut self.kind);
        let name = kind.strip_prefix("response.").unwrap_or_default();
        match (name.strip_suffix(".delta"), seen.delta) {
            // Audio data.
            (Some("audio"), _) => self.parts.clear(),
            (Some(family), Some(delta)) => {
                self.parts.iter_mut().for_each(|part| part.is_complete = false);
                self.assign_delta_path(item, event, delta, family, seen);
            }
            _ => {
                let step = self.paths.field_step(&kind);
                self.paths.move_to(event, Some(item), step);
            }
        }
        if name.ends_with(".done") {
            self.finished.push(item);
        }
        self.kind = kind;
    }

    /// Moves `delta` to the path of its text in the whole response.
    fn assign_delta_path(
        &mut self,
        item: usize,
        event: usize,
        delta: usize,
        family: &str,
        seen: &ResponseFields,
    ) {
        let indices: &[Option<u64>] = match family {
            "output_text" | "refusal" | "reasoning_text" => &[Some(seen.content_index.unwrap_or(0))],
            "reasoning_summary_text" => &[Some(seen.summary_index.unwrap_or(0))],
            "function_call_arguments" | "mcp_call_arguments" => &[],
            "custom_tool_call_input" | "code_interpreter_call_code" => &[],
            _ => &[seen.content_index, seen.summary_index, seen.other_index],
        };
        let (array, field) = match family {
            "output_text" | "reasoning_text" => (Some("content"), "text"),
            "refusal" => (Some("content"), "refusal"),
            "reasoning_summary_text" => (Some("summary"), "text"),
            "function_call_arguments" | "mcp_call_arguments" => (None, "arguments"),
            "custom_tool_call_input" => (None, "input"),
            "code_interpreter_call_code" => (None, "code"),
            other => (Some(other), "delta"),
        };
        let mut parent = item;
        if let Some(array) = array {
            let step = self.paths.field_step(array);
            self.paths.move_to(event, Some(item), step);
            parent = event;
        }
        for index in indices.iter().copied().flatten() {
            parent = self.paths.add(Some(parent), Step::Element(index));
        }
        let step = self.paths.field_step(field);
        self.paths.move_to(delta, Some(parent), step);
    }
}
