//! Which tools an answer calls, by their names.

use std::ops::Range;

use proofgate_json::{Event, JsonError, Reader, Str, Workspace};

use crate::dialect::Dialect;

/// A call of a tool in an answer, or what one event of a streamed answer brings of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CalledTool {
    /// The index of its choice, and its own among the calls of the choice. In a stream of Chat Completions, pieces with equal
    /// ones belong to one call, and their names are joined.
    pub call: (u64, u64),
    /// Whether the name is all there; `false` where other events may go on with it.
    pub is_complete: bool,
    /// Whether it brings something that the tool is called with.
    pub has_arguments: bool,
    name: Range<usize>,
}

/// The calls in an answer, or in one event of a streamed one: Chat Completions, Responses, Messages and Gemini.
///
/// A tool without a name of its own, such as OpenAI's `shell_call`, has the name of its type without `_call`. One of a group, which
/// is a namespace or a server, is named alone and with its group, as clients join the two. What a document repeats of its
/// request, such as the tools that it offers, is no call.
#[derive(Debug, Default)]
pub struct CalledTools {
    names: String,
    calls: Vec<CalledTool>,
    finished: Vec<u64>,
    group_buffer: String,
}

/// The index that the calls of the field `function_call` have, which is one and no element of an array.
const LEGACY: u64 = u64::MAX;

/// Fields by which a call says which group its tool belongs to, and what clients write before its name for it.
const GROUPS: [(&str, &[&str]); 3] = [
    ("namespace", &[""]),
    ("server_label", &["", "mcp__"]),
    ("server_name", &["", "mcp__"]),
];

/// Types of items that say nothing of which tool is called.
const UNNAMED_CALL_TYPES: [&str; 3] = ["function_call", "custom_tool_call", "mcp_call"];

impl CalledTools {
    /// Reads a JSON document of an answer in `dialect`. In other dialects than those named above nothing is called.
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
            // As Google's streams have it that are no events.
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

    /// The calls, in the document's order.
    pub fn calls(&self) -> impl Iterator<Item = (&CalledTool, &str)> {
        let name = |call: &CalledTool| self.names.get(call.name.clone()).unwrap_or_default();
        self.calls.iter().map(move |call| (call, name(call)))
    }

    /// The indices of choices that say why they finished: nothing more comes of their calls.
    pub fn finished(&self) -> &[u64] {
        &self.finished
    }

    /// Bytes of memory that the buffers take, for the most part.
    pub fn capacity(&self) -> usize {
        self.names.capacity() + self.group_buffer.capacity() + self.calls.capacity() * size_of::<CalledTool>()
    }

    /// Calls `read` with every object in the array `field` of an object that has begun, and its position.
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
        calls.for_each(|call| call.call.0 = index);
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

    /// A call, or the function that is called. It has a name in each of its objects, whatever these are called.
    fn read_tool_call(&mut self, reader: &mut Reader<'_, '_>, position: u64) -> Result<(), JsonError> {
        let (first, mut index, mut has_arguments) = (self.calls.len(), position, false);
        self.read_call_fields(reader, &mut index, &mut has_arguments, true)?;
        if self.calls.len() == first {
            self.push_name(None);
        }
        for call in self.calls.iter_mut().skip(first) {
            call.call.1 = index;
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

    /// A message, or an event.
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

    /// A block: only calls have a name.
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

    /// A response, or an event, which may name the tool besides its item.
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

    /// A part of Gemini's content; its fields may be written in either way that Protocol Buffers allow in JSON.
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

    /// Takes the calls from the one with the number `first` on once more, by their names with those of their groups.
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

    /// Takes a call whose name begins at `start` of the names.
    fn push(&mut self, start: usize) {
        self.calls.push(CalledTool {
            call: (0, 0),
            is_complete: true,
            has_arguments: true,
            name: start..self.names.len(),
        });
    }
}

/// A group that a call names, if this field does that: what is written before it, and its name.
fn tool_group(field: &str, group: Str<'_>) -> Option<(&'static [&'static str], String)> {
    let (_, before) = GROUPS.iter().find(|(name, _)| *name == field)?;
    let mut name = String::new();
    group.unescape_into(&mut name);
    Some((*before, name))
}
