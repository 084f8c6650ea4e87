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
    pub is_whole: bool,
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
    room: String,
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
const TYPES_OF_NAMED: [&str; 3] = ["function_call", "custom_tool_call", "mcp_call"];

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
        match reader.read()? {
            Event::ObjectStart => self.document(dialect, &mut reader)?,
            // As Google's streams have it that are no events.
            Event::ArrayStart => {
                self.elements(&mut reader, |tools, reader, _| tools.document(dialect, reader))?
            }
            other => reader.skip(other)?,
        }
        reader.finish()
    }

    fn document(&mut self, dialect: Dialect, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        match dialect {
            Dialect::Chat => self.each_of(reader, "choices", Self::choice),
            Dialect::Messages => self.message(reader),
            Dialect::Responses => self.response(reader),
            Dialect::Gemini => self.each_of(reader, "candidates", Self::candidate),
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
        self.names.capacity() + self.room.capacity() + self.calls.capacity() * size_of::<CalledTool>()
    }

    /// Calls `read` with every object in the array `field` of an object that has begun, and its position.
    fn each_of(
        &mut self,
        reader: &mut Reader<'_, '_>,
        field: &str,
        read: impl Fn(&mut Self, &mut Reader<'_, '_>, u64) -> Result<(), JsonError> + Copy,
    ) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read()? {
            let is_field = key.decoded(&mut self.room) == field;
            match reader.read()? {
                Event::ArrayStart if is_field => self.elements(reader, read)?,
                value => reader.skip(value)?,
            }
        }
        Ok(())
    }

    fn elements(
        &mut self,
        reader: &mut Reader<'_, '_>,
        read: impl Fn(&mut Self, &mut Reader<'_, '_>, u64) -> Result<(), JsonError>,
    ) -> Result<(), JsonError> {
        for position in 0.. {
            match reader.read()? {
                Event::ArrayEnd => break,
                Event::ObjectStart => read(self, reader, position)?,
                other => reader.skip(other)?,
            }
        }
        Ok(())
    }

    fn choice(&mut self, reader: &mut Reader<'_, '_>, position: u64) -> Result<(), JsonError> {
        let (first, mut index, mut is_finished) = (self.calls.len(), position, false);
        while let Event::Key(key) = reader.read()? {
            let value = reader.read()?;
            match (key.decoded(&mut self.room), value) {
                ("index", Event::Number(number)) => index = number.parse().unwrap_or(position),
                ("finish_reason", Event::String(_)) => is_finished = true,
                ("message" | "delta", Event::ObjectStart) => self.chat_message(reader)?,
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

    fn chat_message(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read()? {
            let value = reader.read()?;
            match (key.decoded(&mut self.room), value) {
                ("tool_calls", Event::ArrayStart) => self.elements(reader, Self::tool_call)?,
                ("function_call", Event::ObjectStart) => self.tool_call(reader, LEGACY)?,
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    /// A call, or the function that is called. It has a name in each of its objects, whatever these are called.
    fn tool_call(&mut self, reader: &mut Reader<'_, '_>, position: u64) -> Result<(), JsonError> {
        let (first, mut index, mut has_arguments) = (self.calls.len(), position, false);
        self.call_fields(reader, &mut index, &mut has_arguments, true)?;
        if self.calls.len() == first {
            self.push_name(None);
        }
        for call in self.calls.iter_mut().skip(first) {
            call.call.1 = index;
            call.has_arguments = has_arguments;
            call.is_whole = false;
        }
        Ok(())
    }

    fn call_fields(
        &mut self,
        reader: &mut Reader<'_, '_>,
        index: &mut u64,
        has_arguments: &mut bool,
        is_outer: bool,
    ) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read()? {
            let value = reader.read()?;
            match (key.decoded(&mut self.room), value) {
                ("index", Event::Number(number)) if is_outer => *index = number.parse().unwrap_or(*index),
                ("name", Event::String(name)) => self.push_name(Some(name)),
                ("arguments" | "input", Event::String(string)) => *has_arguments |= !string.raw().is_empty(),
                ("arguments" | "input", value) => {
                    *has_arguments |= value != Event::Null;
                    reader.skip(value)?;
                }
                (_, Event::ObjectStart) if is_outer => {
                    self.call_fields(reader, index, has_arguments, false)?;
                }
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    /// A message, or an event.
    fn message(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read()? {
            let value = reader.read()?;
            match (key.decoded(&mut self.room), value) {
                ("content", Event::ArrayStart) => self.elements(reader, Self::block)?,
                ("message", Event::ObjectStart) => self.each_of(reader, "content", Self::block)?,
                ("content_block", Event::ObjectStart) => self.block(reader, 0)?,
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    /// A block: only calls have a name.
    fn block(&mut self, reader: &mut Reader<'_, '_>, _position: u64) -> Result<(), JsonError> {
        let (first, mut groups) = (self.calls.len(), Vec::new());
        while let Event::Key(key) = reader.read()? {
            let value = reader.read()?;
            match (key.decoded(&mut self.room), value) {
                ("name", Event::String(name)) => self.push_name(Some(name)),
                (field, Event::String(group)) => groups.extend(group_of(field, group)),
                (_, value) => reader.skip(value)?,
            }
        }
        self.push_grouped(first, &groups);
        Ok(())
    }

    /// A response, or an event, which may name the tool besides its item.
    fn response(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read()? {
            let value = reader.read()?;
            match (key.decoded(&mut self.room), value) {
                ("output", Event::ArrayStart) => self.elements(reader, Self::item)?,
                ("item", Event::ObjectStart) => self.item(reader, 0)?,
                ("response", Event::ObjectStart) => self.each_of(reader, "output", Self::item)?,
                ("name", Event::String(name)) => self.push_name(Some(name)),
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    fn item(&mut self, reader: &mut Reader<'_, '_>, _position: u64) -> Result<(), JsonError> {
        let (first, mut groups) = (self.calls.len(), Vec::new());
        while let Event::Key(key) = reader.read()? {
            let value = reader.read()?;
            match (key.decoded(&mut self.room), value) {
                ("name", Event::String(name)) => self.push_name(Some(name)),
                ("type", Event::String(kind)) => {
                    let kind = kind.decoded(&mut self.room);
                    let tool = kind.strip_suffix("_call");
                    if let Some(tool) = tool.filter(|_| !TYPES_OF_NAMED.contains(&kind)) {
                        let start = self.names.len();
                        self.names.push_str(tool);
                        self.push(start);
                    }
                }
                (field, Event::String(group)) => groups.extend(group_of(field, group)),
                (_, value) => reader.skip(value)?,
            }
        }
        self.push_grouped(first, &groups);
        Ok(())
    }

    fn candidate(&mut self, reader: &mut Reader<'_, '_>, _position: u64) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read()? {
            let value = reader.read()?;
            match (key.decoded(&mut self.room), value) {
                ("content", Event::ObjectStart) => self.each_of(reader, "parts", Self::part)?,
                (_, value) => reader.skip(value)?,
            }
        }
        Ok(())
    }

    /// A part of Gemini's content; its fields may be written in either way that Protocol Buffers allow in JSON.
    fn part(&mut self, reader: &mut Reader<'_, '_>, _position: u64) -> Result<(), JsonError> {
        while let Event::Key(key) = reader.read()? {
            let value = reader.read()?;
            match (key.decoded(&mut self.room), value) {
                ("functionCall" | "function_call", Event::ObjectStart) => self.block(reader, 0)?,
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
    fn push_grouped(&mut self, first: usize, groups: &[(&[&str], String)]) {
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
            is_whole: true,
            has_arguments: true,
            name: start..self.names.len(),
        });
    }
}

/// A group that a call names, if this field does that: what is written before it, and its name.
fn group_of(field: &str, group: Str<'_>) -> Option<(&'static [&'static str], String)> {
    let (_, before) = GROUPS.iter().find(|(name, _)| *name == field)?;
    let mut name = String::new();
    group.unescape_into(&mut name);
    Some((*before, name))
}
