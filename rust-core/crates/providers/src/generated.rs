use std::ops::Range;

use proofgate_json::{Event, JsonError, Reader, Str, Workspace};

use crate::splice::Place;

/// What a document of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A `chat.completion`, a `chat.completion.chunk` or a `text_completion`: an object with an array `choices`.
    Choices,
    /// Some other JSON document, such as an error.
    Other,
}

/// The strings that a model generated, read from an answer or from one event of a streamed one.
///
/// They are the strings below `choices[*].message`, `choices[*].delta` and `choices[*].text`, except values of `role`,
/// `type` and `id` of the message itself and of elements of arrays, such as content parts and tool calls. Strings with the
/// same key belong to one text: what a stream delivers in pieces has the key that it has in a whole answer. The buffers are
/// kept from document to document, until [`GeneratedText::give_back`].
#[derive(Debug, Default)]
pub struct GeneratedText {
    text: String,
    parts: Vec<Part>,
    nodes: Vec<Node>,
    names: String,
    name: String,
    logprobs: Vec<Range<usize>>,
    /// The nodes of the choices that say why they finished.
    finished: Vec<usize>,
    overflowed: bool,
}

/// How many choices, fields and elements below them are read: what is noted of them takes 8 MiB at most, whatever the
/// document's size.
const MOST_NODES: usize = 1 << 16;

/// One generated string, or the piece of it that an event brings.
#[derive(Debug)]
pub struct Part {
    /// Where it stands in the document.
    pub place: Place,
    value: Range<usize>,
    node: usize,
}

/// A step on the way from a choice down to a string.
#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// An element of an array, by its field `index` or else by its position.
    Element(u64),
    /// A field, by its name in [`GeneratedText::names`].
    Field(Range<usize>),
}

impl GeneratedText {
    /// Empty buffers.
    pub fn new() -> Self {
        GeneratedText::default()
    }

    /// Reads a JSON document.
    ///
    /// # Errors
    /// [`JsonError`] when it is not JSON.
    pub fn read(&mut self, document: &[u8], workspace: &mut Workspace) -> Result<Shape, JsonError> {
        self.text.clear();
        self.parts.clear();
        self.nodes.clear();
        self.names.clear();
        self.logprobs.clear();
        self.finished.clear();
        self.overflowed = false;
        let mut reader = Reader::new(document, workspace)?;
        let mut shape = Shape::Other;
        let first = reader.read()?;
        if first == Event::ObjectStart {
            while let Event::Key(key) = reader.read()? {
                let choices = key.decoded(&mut self.name) == "choices";
                match reader.read()? {
                    Event::ArrayStart if choices => {
                        shape = Shape::Choices;
                        self.choices(&mut reader)?;
                    }
                    value => reader.skip(value)?,
                }
            }
        } else {
            reader.skip(first)?;
        }
        reader.finish()?;
        Ok(shape)
    }

    /// Whether the document has more choices, fields and elements than are read: what was taken of it is not all.
    pub fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Forgets the document, and gives back the memory of a buffer that has more than `most` bytes.
    pub fn give_back(&mut self, most: usize) {
        for text in [&mut self.text, &mut self.names, &mut self.name] {
            text.clear();
            text.shrink_to(most);
        }
        self.parts.clear();
        self.parts.shrink_to(most / size_of::<Part>());
        self.nodes.clear();
        self.nodes.shrink_to(most / size_of::<Node>());
        self.logprobs.clear();
        self.logprobs.shrink_to(most / size_of::<Range<usize>>());
        self.finished.clear();
        self.finished.shrink_to(most / size_of::<usize>());
    }

    /// Bytes of memory that the buffers take, for the most part.
    pub fn capacity(&self) -> usize {
        let texts = self.text.capacity() + self.names.capacity() + self.name.capacity();
        texts + self.parts.capacity() * size_of::<Part>() + self.nodes.capacity() * size_of::<Node>()
    }

    /// The generated strings, in the document's order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The value of a part.
    pub fn value(&self, part: &Part) -> &str {
        self.text.get(part.value.clone()).unwrap_or_default()
    }

    /// Appends the key of a part: the index of its choice and the way down to it, such as
    /// `0/tool_calls/1/function/arguments`, escaped as in a JSON pointer (RFC 6901).
    pub fn write_key(&self, part: &Part, out: &mut String) {
        self.write_node(part.node, out);
    }

    /// The index of the choice that a part belongs to.
    pub fn choice_index(&self, part: &Part) -> u64 {
        self.choice_of(part.node)
    }

    /// The indices of the choices that say why they finished (`finish_reason`): nothing more is generated for them.
    pub fn finished(&self) -> impl Iterator<Item = u64> + Clone {
        self.finished.iter().map(|node| self.choice_of(*node))
    }

    fn choice_of(&self, mut node: usize) -> u64 {
        while let Some(parent) = self.nodes[node].parent {
            node = parent;
        }
        match self.nodes[node].step {
            Step::Element(index) => index,
            Step::Field(_) => 0,
        }
    }

    /// Where values of `choices[*].logprobs` stand that are not null: they repeat the generated text token by token.
    pub fn logprobs(&self) -> &[Range<usize>] {
        &self.logprobs
    }

    fn choices(&mut self, reader: &mut Reader<'_, '_>) -> Result<(), JsonError> {
        let mut position = 0;
        loop {
            match reader.read()? {
                Event::ArrayEnd => return Ok(()),
                Event::ObjectStart => self.choice(reader, position)?,
                other => reader.skip(other)?,
            }
            position += 1;
        }
    }

    fn choice(&mut self, reader: &mut Reader<'_, '_>, position: u64) -> Result<(), JsonError> {
        let choice = self.node(None, Step::Element(position));
        while let Event::Key(key) = reader.read()? {
            let start = reader.offset();
            let value = reader.read()?;
            match key.decoded(&mut self.name) {
                "message" | "delta" => self.generated(reader, value, choice)?,
                "text" => {
                    let field = self.field(choice, key);
                    self.generated(reader, value, field)?;
                }
                "index" => self.set_index(choice, value),
                "finish_reason" if matches!(value, Event::String(_)) => self.finished.push(choice),
                "logprobs" if value != Event::Null => {
                    reader.skip(value)?;
                    self.logprobs.push(start..reader.offset());
                }
                _ => reader.skip(value)?,
            }
        }
        Ok(())
    }

    /// Takes the strings of the value that `event` begins. The depth limit of the reader bounds the recursion.
    fn generated(
        &mut self,
        reader: &mut Reader<'_, '_>,
        event: Event<'_>,
        node: usize,
    ) -> Result<(), JsonError> {
        match event {
            Event::String(string) => self.part(string, node),
            Event::ObjectStart => self.object(reader, node, false)?,
            Event::ArrayStart => {
                let mut position = 0;
                loop {
                    match reader.read()? {
                        Event::ArrayEnd => break,
                        Event::ObjectStart => {
                            let element = self.node(Some(node), Step::Element(position));
                            self.object(reader, element, true)?;
                        }
                        event => {
                            let element = self.node(Some(node), Step::Element(position));
                            self.generated(reader, event, element)?;
                        }
                    }
                    position += 1;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn object(&mut self, reader: &mut Reader<'_, '_>, node: usize, element: bool) -> Result<(), JsonError> {
        let has_api_fields = element || self.nodes[node].parent.is_none();
        while let Event::Key(key) = reader.read()? {
            let value = reader.read()?;
            match (key.decoded(&mut self.name), value) {
                ("role" | "type" | "id", Event::String(_)) if has_api_fields => {}
                ("index", Event::Number(_)) if element => self.set_index(node, value),
                (_, Event::String(_) | Event::ObjectStart | Event::ArrayStart) => {
                    let field = self.field(node, key);
                    self.generated(reader, value, field)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn part(&mut self, string: Str<'_>, node: usize) {
        if self.overflowed {
            return;
        }
        let start = self.text.len();
        string.unescape_into(&mut self.text);
        self.parts.push(Part {
            place: Place::from(string),
            value: start..self.text.len(),
            node,
        });
    }

    fn field(&mut self, parent: usize, key: Str<'_>) -> usize {
        if self.overflowed {
            return parent;
        }
        let start = self.names.len();
        key.unescape_into(&mut self.names);
        self.node(Some(parent), Step::Field(start..self.names.len()))
    }

    /// Adds a node. Of a document with too many the rest is read to its end, and nothing more is noted.
    fn node(&mut self, parent: Option<usize>, step: Step) -> usize {
        self.overflowed |= self.nodes.len() >= MOST_NODES;
        if !self.overflowed {
            self.nodes.push(Node { parent, step });
        }
        self.nodes.len() - 1
    }

    /// Gives an element the index that it names; what is no index leaves it at its position.
    fn set_index(&mut self, node: usize, value: Event<'_>) {
        if let Event::Number(number) = value
            && let Ok(index) = number.parse()
        {
            self.nodes[node].step = Step::Element(index);
        }
    }

    fn write_node(&self, node: usize, out: &mut String) {
        let Node { parent, step } = &self.nodes[node];
        if let Some(parent) = *parent {
            self.write_node(parent, out);
            out.push('/');
        }
        match step {
            Step::Element(index) => write_number(*index, out),
            Step::Field(name) => {
                for character in self.names[name.clone()].chars() {
                    match character {
                        '~' => out.push_str("~0"),
                        '/' => out.push_str("~1"),
                        other => out.push(other),
                    }
                }
            }
        }
    }
}

fn write_number(number: u64, out: &mut String) {
    if number >= 10 {
        write_number(number / 10, out);
    }
    out.push(char::from(b'0' + (number % 10) as u8));
}
