//! Extracts the text that a model generated from responses of each dialect.

mod candidates;
mod choices;
mod content;
mod media;
mod messages;
mod non_generating;
mod paths;
mod responses;

use std::ops::Range;

use proofgate_json::{Event, JsonError, Reader, Str, Workspace};
use proofgate_policy::Scope;

use crate::dialect::Dialect;
use crate::splice::StringLocation;
use paths::NodePaths;

/// The kind of a response document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentKind {
    /// A response of the dialect, or an event of a streamed response.
    Known,
    /// Some other JSON document, such as an error.
    Other,
}

/// The strings that a model generated, read from a response or from one event of a streamed
/// response.
///
/// Strings with the same key belong to one text, unless they are [complete](Part::is_complete): a fragment in a
/// stream has the same key as its text in a whole response. The buffers are reused between documents, until
/// [`GeneratedText::release_memory`].
#[derive(Debug, Default)]
pub struct GeneratedText {
    text: String,
    parts: Vec<Part>,
    paths: NodePaths,
    name: String,
    /// The type that an event declares.
    kind: String,
    logprobs: Vec<Range<usize>>,
    /// The nodes of the choices, blocks and items that finished.
    finished: Vec<usize>,
}

/// The encoding of a part in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartEncoding {
    /// A string.
    String,
    /// The key of an object in tool arguments.
    Key,
    /// A number in tool arguments.
    Number,
}

/// A generated string, or the fragment of one in an event.
#[derive(Debug)]
pub struct Part {
    /// The location in the document.
    pub location: StringLocation,
    /// The encoding in the document.
    pub encoding: PartEncoding,
    /// Whether it is a complete text: no other string of the response belongs to it.
    pub is_complete: bool,
    value: Range<usize>,
    node: usize,
}

impl GeneratedText {
    /// Creates empty buffers.
    pub fn new() -> Self {
        GeneratedText::default()
    }

    /// Reads a JSON document of a response in `dialect`.
    ///
    /// # Errors
    /// [`JsonError`] when it is not JSON.
    pub fn read(
        &mut self,
        dialect: Dialect,
        document: &[u8],
        workspace: &mut Workspace,
    ) -> Result<DocumentKind, JsonError> {
        self.clear();
        let mut reader = Reader::new(document, workspace)?;
        let first = reader.read_event()?;
        let shape = match dialect {
            _ if first != Event::ObjectStart => {
                reader.skip(first)?;
                DocumentKind::Other
            }
            // Responses in an upstream-only dialect are translated before they are read.
            Dialect::Converse | Dialect::Invoke | Dialect::InvokeTokens => {
                reader.skip(first)?;
                DocumentKind::Other
            }
            // All their strings are scanned.
            Dialect::Transcriptions
            | Dialect::Translations
            | Dialect::ImageEdits
            | Dialect::ImageVariations
            | Dialect::Storage(_) => {
                reader.skip(first)?;
                DocumentKind::Other
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
        if shape == DocumentKind::Other {
            self.clear();
        }
        Ok(shape)
    }

    /// Whether the document has more choices, fields and elements than the limit, so that the result is incomplete.
    pub fn overflowed(&self) -> bool {
        self.paths.overflowed()
    }

    /// Clears the document, and releases every buffer with more than `most` bytes.
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

    /// Returns the approximate number of bytes of memory that the buffers take.
    pub fn capacity(&self) -> usize {
        let texts = self.text.capacity() + self.name.capacity() + self.kind.capacity();
        texts + self.parts.capacity() * size_of::<Part>() + self.paths.capacity()
    }

    /// Returns the generated strings, in document order.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the value of a part.
    pub fn value(&self, part: &Part) -> &str {
        self.text.get(part.value.clone()).unwrap_or_default()
    }

    /// Appends the key of a part: the index of its choice, block or item and the path below it, such as
    /// `0/tool_calls/1/function/arguments`, escaped as in a JSON pointer (RFC 6901).
    pub fn write_key(&self, part: &Part, out: &mut String) {
        self.paths.write(part.node, out);
    }

    /// Returns the scope of a part: tool arguments or model output.
    pub fn scope(&self, part: &Part) -> Scope {
        // API field names; names chosen by the model are always below one of these.
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

    /// Returns the index of the choice, block or item of a part; `u64::MAX` for a part that belongs to none.
    pub fn choice_index(&self, part: &Part) -> u64 {
        self.paths.first_index(part.node)
    }

    /// Returns the indices of the choices with a `finish_reason`, and of the blocks and items that
    /// an event reports as done, in full or in part. Their earlier texts are complete.
    pub fn finished(&self) -> impl Iterator<Item = u64> + Clone {
        self.finished.iter().map(|node| self.paths.first_index(*node))
    }

    /// Returns the ranges of non-null `logprobs` values: they repeat the generated text token by token.
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

    /// Adds a string that later events may continue.
    fn push_fragment(&mut self, string: Str<'_>, node: usize) {
        if self.paths.overflowed() {
            return;
        }
        let start = self.text.len();
        string.unescape_into(&mut self.text);
        self.parts.push(Part {
            location: StringLocation::from(string),
            encoding: PartEncoding::String,
            is_complete: false,
            value: start..self.text.len(),
            node,
        });
    }
}
