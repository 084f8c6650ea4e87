//! Reads the names of the tools that a response calls.

use std::ops::Range;

use proofgate_json::{Event, JsonError, Reader, Str, Workspace};

use crate::dialect::Dialect;

/// A tool call in a response, or the part of a call in a stream event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The index of the choice, and the index of the call within it. In a stream of Chat Completions, fragments with
    /// equal indices belong to one call, and their names are concatenated.
    pub call_index: (u64, u64),
    /// Whether the name is complete; `false` if later events may continue it.
    pub is_complete: bool,
    /// Whether it carries arguments.
    pub has_arguments: bool,
    name: Range<usize>,
}

/// The tool calls in a response, or in one event of a streamed one: Chat Completions, Responses, Messages and Gemini.
///
/// A tool without its own name, such as OpenAI's `shell_call`, has the name of its type without
/// `_call`. A tool in a group (a namespace or a server) is listed by its own name and by its name
/// joined with the group, as clients join the two. Content that a document repeats from its
/// request, such as the offered tools, is not a call.
#[derive(Debug, Default)]
pub struct ToolCalls {
    names: String,
    calls: Vec<ToolCall>,
    finished: Vec<u64>,
    group_buffer: String,
}

/// The index of the call in `function_call`, a single field that is not an element of an array.
const LEGACY: u64 = u64::MAX;

/// Fields by which a call names the group of its tool, and the prefixes that clients write before the group name.
const GROUPS: [(&str, &[&str]); 3] = [
    ("namespace", &[""]),
    ("server_label", &["", "mcp__"]),
    ("server_name", &["", "mcp__"]),
];

/// Item types that do not identify the called tool.
const UNNAMED_CALL_TYPES: [&str; 3] = ["function_call", "custom_tool_call", "mcp_call"];

impl ToolCalls {
    /// Reads a JSON document of a response in `dialect`. In dialects other than those of [`ToolCalls`] there are no
    /// calls.
    ///
    /// # Errors
    /// [`JsonError`] when it is not JSON.
    pub fn read(
        &mut self,
        dialect: Dialect,
        document: &[u8],
        workspace: &mut Workspace,
    ) -> Result<(), JsonError> {
        self.names.clear();
        self.calls.clear();
        self.finished.clear();
        let mut reader = Reader::new(document, workspace)?;
        match reader.read_event()? {
            Event::ObjectStart => self.read_document(dialect, &mut reader)?,
            // Google's streams that are not event streams are arrays.
            Event::ArrayStart => self.read_elements(&mut reader, |tools, reader, _| {
                tools.read_document(dialect, reader)
            })?,
            other => reader.skip(other)?,
        }
        reader.finish()
    }

    fn read_document(&mut self, dialect: Dialect, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        match dialect {
            Dialect::Chat => self.read_each_object(reader, "choices", Self::read_choice),
            Dialect::Messages => self.read_message(reader),
            Dialect::Responses => self.read_response(reader),
            Dialect::Gemini => self.read_each_object(reader, "candidates", Self::read_candidate),
            _ => reader.skip(Event::ObjectStart),
        }
    }

    /// Returns the calls, in document order.
    pub fn calls(&self) -> impl Iterator<Item = (&ToolCall, &str)> {
        let name = |call: &ToolCall| self.names.get(call.name.clone()).unwrap_or_default();
        self.calls.iter().map(move |call| (call, name(call)))
    }

    /// Returns the indices of choices that have a finish reason: their calls get no more fragments.
    pub fn finished(&self) -> &[u64] {
        &self.finished
    }

    /// Returns the approximate number of bytes of memory that the buffers take.
    pub fn capacity(&self) -> usize {
        self.names.capacity() + self.group_buffer.capacity() + self.calls.capacity() * size_of::<ToolCall>()
    }

    /// Calls `read` with every object in the array `field` of an object whose start has been read, and its position.
    fn read_each_object(
        &mut self,
        reader: &mut Reader<'_, '_>,
        field: &str,
        read: impl Fn(&mut Self, &mut Reader<'_, '_>, u64) -> Result<(), JsonError> + Copy,
    ) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read_event()? {
            let is_field = key.decode(&mut self.group_buffer) == field;
            match reader.read_event()? {
                Event::ArrayStart if is_field => self.read_elements(reader, read)?,
                value => reader.skip(value)?,
            }
        }
        Ok(())
    }

    fn read_elements(
        &mut self,
        reader: &mut Reader<'_, '_>,
        read: impl Fn(&mut Self, &mut Reader<'_, '_>, u64) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        for position in 0.. {
            match reader.read_event()? {
                Event::ArrayEnd => break,
                Event::ObjectStart => read(self, reader, position)?,
                other => reader.skip(other)?,
            }
        }
        Ok(())
    }

    fn read_choice(&mut self, reader: &mut Reader<'_, '_>, position: u64) -> Result<(), JsonError> {
        let (first, mut index, mut is_finished) = (self.calls.len(), position, false);
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.group_buffer), value) {
                ("index", Event::Number(number)) => index = number.parse().unwrap_or(position),
                ("finish_reason", Event::String(_)) => is_finished = true,
                ("message" | "delta", Event::ObjectStart) => self.read_chat_message(reader)?,
                (_, value) => reader.skip(value)?,
            }
        }
        let calls = self.calls.iter_mut().skip(first);
        calls.for_each(|call| call.call_index.0 = index);
        if is_finished {
            self.finished.push(index);
        }
        Ok(())
    }

    fn read_chat_message(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.group_buffer), value) {
                ("tool_calls", Event::ArrayStart) => self.read_elements(reader, Self::read_tool_call)?,
                ("function_call", Event::ObjectStart) => self.read_tool_call(reader, LEGACY)?,
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    /// Reads a call, or the called function. Each of its objects has a name, whatever the object's key.
    fn read_tool_call(&mut self, reader: &mut Reader<'_, '_>, position: u64) -> Result<(), JsonError> {
        let (first, mut index, mut has_arguments) = (self.calls.len(), position, false);
        self.read_call_fields(reader, &mut index, &mut has_arguments, true)?;
        if self.calls.len() == first {
            self.push_name(None);
        }
        for call in self.calls.iter_mut().skip(first) {
            call.call_index.1 = index;
            call.has_arguments = has_arguments;
            call.is_complete = false;
        }
        Ok(())
    }

    fn read_call_fields(
        &mut self,
        reader: &mut Reader<'_, '_>,
        index: &mut u64,
        has_arguments: &mut bool,
        is_outer: bool,
    ) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.group_buffer), value) {
                ("index", Event::Number(number)) if is_outer => *index = number.parse().unwrap_or(*index),
                ("name", Event::String(name)) => self.push_name(Some(name)),
                ("arguments" | "input", Event::String(string)) => *has_arguments |= !string.raw().is_empty(),
                ("arguments" | "input", value) => {
                    *has_arguments |= value != Event::Null;
                    reader.skip(value)?;
                }
                (_, Event::ObjectStart) if is_outer => {
                    self.read_call_fields(reader, index, has_arguments, false)?;
                }
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    /// Reads a message or an event.
    fn read_message(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.group_buffer), value) {
                ("content", Event::ArrayStart) => self.read_elements(reader, Self::read_block)?,
                ("message", Event::ObjectStart) => {
                    self.read_each_object(reader, "content", Self::read_block)?
                }
                ("content_block", Event::ObjectStart) => self.read_block(reader, 0)?,
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    /// Reads a content block: only calls have a name.
    fn read_block(&mut self, reader: &mut Reader<'_, '_>, _position: u64) -> Result<(), JsonError> {
        let (first, mut groups) = (self.calls.len(), Vec::new());
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.group_buffer), value) {
                ("name", Event::String(name)) => self.push_name(Some(name)),
                (field, Event::String(group)) => groups.extend(tool_group(field, group)),
                (_, value) => reader.skip(value)?,
            }
        }
        self.push_grouped_names(first, &groups);
        Ok(())
    }

    /// Reads a response or an event; an event may name the tool outside its item.
    fn read_response(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.group_buffer), value) {
                ("output", Event::ArrayStart) => self.read_elements(reader, Self::read_item)?,
                ("item", Event::ObjectStart) => self.read_item(reader, 0)?,
                ("response", Event::ObjectStart) => {
                    self.read_each_object(reader, "output", Self::read_item)?
                }
                ("name", Event::String(name)) => self.push_name(Some(name)),
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    fn read_item(&mut self, reader: &mut Reader<'_, '_>, _position: u64) -> Result<(), JsonError> {
        let (first, mut groups) = (self.calls.len(), Vec::new());
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.group_buffer), value) {
                ("name", Event::String(name)) => self.push_name(Some(name)),
                ("type", Event::String(kind)) => {
                    let kind = kind.decode(&mut self.group_buffer);
                    let tool = kind.strip_suffix("_call");
                    if let Some(tool) = tool.filter(|_| !UNNAMED_CALL_TYPES.contains(&kind)) {
                        let start = self.names.len();
                        self.names.push_str(tool);
                        self.push(start);
                    }
                }
                (field, Event::String(group)) => groups.extend(tool_group(field, group)),
                (_, value) => reader.skip(value)?,
            }
        }
        self.push_grouped_names(first, &groups);
        Ok(())
    }

    fn read_candidate(&mut self, reader: &mut Reader<'_, '_>, _position: u64) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.group_buffer), value) {
                ("content", Event::ObjectStart) => self.read_each_object(reader, "parts", Self::read_part)?,
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    /// Reads a part of Gemini's content. Its field names may have either form that Protocol Buffers allow in JSON.
    fn read_part(&mut self, reader: &mut Reader<'_, '_>, _position: u64) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read_event()? {
            let value = reader.read_event()?;
            match (key.decode(&mut self.group_buffer), value) {
                ("functionCall" | "function_call", Event::ObjectStart) => self.read_block(reader, 0)?,
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    fn push_name(&mut self, name: Option<Str<'_>>) {
        let start = self.names.len();
        if let Some(name) = name {
            name.unescape_into(&mut self.names);
        }
        self.push(start);
    }

    /// Adds the calls from number `first` on a second time, under their names joined with their
    /// groups' names.
    fn push_grouped_names(&mut self, first: usize, groups: &[(&[&str], String)]) {
        let end = self.calls.len();
        for (before, group) in groups {
            for call in first..end {
                let name = self.names[self.calls[call].name.clone()].to_owned();
                for before in *before {
                    let start = self.names.len();
                    for part in [*before, group.as_str(), "__", &name] {
                        self.names.push_str(part);
                    }
                    self.push(start);
                }
            }
        }
    }

    /// Adds a call whose name begins at `start` of the names.
    fn push(&mut self, start: usize) {
        self.calls.push(ToolCall {
            call_index: (0, 0),
            is_complete: true,
            has_arguments: true,
            name: start..self.names.len(),
        });
    }
}

/// Returns the group that a call names in this field, if it does: its prefixes and its name.
fn tool_group(field: &str, group: Str<'_>) -> Option<(&'static [&'static str], String)> {
    let (_, before) = GROUPS.iter().find(|(name, _)| *name == field)?;
    let mut name = String::new();
    group.unescape_into(&mut name);
    Some((*before, name))
}
