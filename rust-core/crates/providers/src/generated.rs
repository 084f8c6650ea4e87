//! What a model generated, in answers of each dialect.

mod candidates;
mod choices;
mod content;
mod media;
mod messages;
mod paths;
mod responses;
mod silent;

use std::ops::Range;

use proofgate_json::{Event, JsonError, Reader, Str, Workspace};
use proofgate_policy::Scope;

use crate::dialect::Dialect;
use crate::splice::StringLocation;
use paths::NodePaths;

/// What a document of an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// An answer of the dialect, or an event of a streamed one.
    Known,
    /// Some other JSON document, such as an error.
    Other,
}

/// The strings that a model generated, read from an answer or from one event of a streamed one.
///
/// Strings with the same key belong to one text, unless they are [whole](Part::whole): what a stream delivers in pieces has
/// the key that it has in a whole answer. The buffers are kept from document to document, until [`GeneratedText::release_memory`].
#[derive(Debug, Default)]
pub struct GeneratedText {
    text: String,
    parts: Vec<Part>,
    paths: NodePaths,
    name: String,
    /// What an event says that it is.
    kind: String,
    logprobs: Vec<Range<usize>>,
    /// The nodes of the choices, blocks and items that finished.
    finished: Vec<usize>,
}

/// How a part is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartEncoding {
    /// As a string.
    String,
    /// As the key of an object that a tool is called with.
    Key,
    /// As a number of such an object.
    Number,
}

/// One generated string, or the piece of it that an event brings.
#[derive(Debug)]
pub struct Part {
    /// Where it stands in the document.
    pub place: StringLocation,
    /// How it is written there.
    pub encoding: PartEncoding,
    /// Whether it is a text of its own: nothing else of the answer belongs to it.
    pub is_complete: bool,
    value: Range<usize>,
    node: usize,
}

impl GeneratedText {
    /// Empty buffers.
    pub fn new() -> Self {
        GeneratedText::default()
    }

    /// Reads a JSON document of an answer in `dialect`.
    ///
    /// # Errors
    /// [`JsonError`] when it is not JSON.
    pub fn read(
        &mut self,
        dialect: Dialect,
        document: &[u8],
        workspace: &mut Workspace,
    ) -> Result<Shape, JsonError> {
        self.clear();
        let mut reader = Reader::new(document, workspace)?;
        let first = reader.read_event()?;
        let shape = match dialect {
            _ if first != Event::ObjectStart => {
                reader.skip(first)?;
                Shape::Other
            }
            // What no client speaks is translated before it is read.
            Dialect::Converse | Dialect::Invoke | Dialect::InvokeTokens => {
                reader.skip(first)?;
                Shape::Other
            }
            // Every string of theirs is looked at.
            Dialect::Transcriptions
            | Dialect::Translations
            | Dialect::ImageEdits
            | Dialect::ImageVariations
            | Dialect::Storage(_) => {
                reader.skip(first)?;
                Shape::Other
            }
            Dialect::Chat | Dialect::Completions => self.read_completion(&mut reader)?,
            Dialect::Messages => self.read_message(&mut reader)?,
            Dialect::Responses => self.read_response(&mut reader)?,
            Dialect::Gemini => self.read_candidates(&mut reader)?,
            Dialect::Images => self.read_images(&mut reader)?,
            Dialect::Speech => self.read_speech(&mut reader)?,
            Dialect::Embeddings
            | Dialect::Moderations
            | Dialect::ResponseTokens
            | Dialect::CountTokens
            | Dialect::GeminiTokens
            | Dialect::GeminiEmbedding
            | Dialect::GeminiEmbeddings => self.read_non_generating(dialect, &mut reader)?,
        };
        reader.finish()?;
        if shape == Shape::Other {
            self.clear();
        }
        Ok(shape)
    }

    /// Whether the document has more choices, fields and elements than are read: what was taken of it is not all.
    pub fn overflowed(&self) -> bool {
        self.paths.overflowed()
    }

    /// Forgets the document, and gives back the memory of a buffer that has more than `most` bytes.
    pub fn release_memory(&mut self, most: usize) {
        self.clear();
        self.text.shrink_to(most);
        self.name.shrink_to(most);
        self.kind.shrink_to(most);
        self.parts.shrink_to(most / size_of::<Part>());
        self.paths.release_memory(most);
        self.logprobs.shrink_to(most / size_of::<Range<usize>>());
        self.finished.shrink_to(most / size_of::<usize>());
    }

    /// Bytes of memory that the buffers take, for the most part.
    pub fn capacity(&self) -> usize {
        let texts = self.text.capacity() + self.name.capacity() + self.kind.capacity();
        texts + self.parts.capacity() * size_of::<Part>() + self.paths.capacity()
    }

    /// The generated strings, in the document's order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The value of a part.
    pub fn value(&self, part: &Part) -> &str {
        self.text.get(part.value.clone()).unwrap_or_default()
    }

    /// Appends the key of a part: the index of its choice, block or item and the way down to it, such as
    /// `0/tool_calls/1/function/arguments`, escaped as in a JSON pointer (RFC 6901).
    pub fn write_key(&self, part: &Part, out: &mut String) {
        self.paths.write(part.node, out);
    }

    /// What a part is: what a tool is to be called with, or what the model answers.
    pub fn scope(&self, part: &Part) -> Scope {
        // Names of the API: what a model names itself stands below one of these.
        const TOOL_CALL_FIELDS: [&str; 14] = [
            "tool_calls",
            "function_call",
            "input",
            "partial_json",
            "arguments",
            "code",
            "operation",
            "action",
            "functionCall",
            "function_call_arguments",
            "args",
            "partialArgs",
            "executableCode",
            "executable_code",
        ];
        match self.paths.has_field(part.node, &TOOL_CALL_FIELDS) {
            true => Scope::ResponseArguments,
            false => Scope::Response,
        }
    }

    /// The index of the choice, block or item that a part belongs to; the largest one for what belongs to none.
    pub fn choice_index(&self, part: &Part) -> u64 {
        self.paths.first_index(part.node)
    }

    /// The indices of the choices that say why they finished (`finish_reason`), and of the blocks and items of which an event
    /// says that they, or a part of them, are done: nothing more is generated for what came before.
    pub fn finished(&self) -> impl Iterator<Item = u64> + Clone {
        self.finished.iter().map(|node| self.paths.first_index(*node))
    }

    /// Where values of `logprobs` stand that are not null: they repeat the generated text token by token.
    pub fn logprobs(&self) -> &[Range<usize>] {
        &self.logprobs
    }

    fn clear(&mut self) {
        self.text.clear();
        self.parts.clear();
        self.paths.clear();
        self.name.clear();
        self.kind.clear();
        self.logprobs.clear();
        self.finished.clear();
    }

    /// Takes a string of which other events may bring more.
    fn push_fragment(&mut self, string: Str<'_>, node: usize) {
        if self.paths.overflowed() {
            return;
        }
        let start = self.text.len();
        string.unescape_into(&mut self.text);
        self.parts.push(Part {
            place: StringLocation::from(string),
            encoding: PartEncoding::String,
            is_complete: false,
            value: start..self.text.len(),
            node,
        });
    }
}
