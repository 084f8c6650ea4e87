use crate::error::JsonError;
use crate::event::Event;
use crate::keys::Keys;
use crate::number::number_end;
use crate::text::Str;

/// How deeply objects and arrays may be nested unless a reader is told otherwise.
pub const DEFAULT_MAX_DEPTH: usize = 64;

/// Buffers of a reader, kept from document to document so that reading allocates nothing.
#[derive(Debug, Default)]
pub struct Workspace {
    open_containers: Vec<Container>,
    keys: Keys,
}

impl Workspace {
    /// Empty buffers.
    pub fn new() -> Self {
        Workspace::default()
    }

    /// Gives back the memory of a buffer that has more than `most` bytes.
    pub fn release_memory(&mut self, most: usize) {
        self.open_containers.clear();
        self.keys.release_memory(most);
    }

    /// Bytes of memory that the buffers take, besides some for each level of nesting.
    pub fn capacity(&self) -> usize {
        self.keys.capacity()
    }
}

/// An object or array that has not ended.
#[derive(Debug, Clone, Copy)]
enum Container {
    Array,
    Object { first_key: usize },
}

/// What has to come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    ValueOrEnd,
    KeyOrEnd,
    CommaOrEnd,
    End,
}

/// Pulls the events of one document, in order.
///
/// ```
/// use proofgate_json::{Event, Reader, Workspace};
/// let mut workspace = Workspace::new();
/// let mut reader = Reader::new(br#"{"n": 1.50}"#, &mut workspace)?;
/// assert_eq!(reader.read_event()?, Event::ObjectStart);
/// assert!(matches!(reader.read_event()?, Event::Key(key) if key.raw() == "n"));
/// assert_eq!(reader.read_event()?, Event::Number("1.50"));
/// assert_eq!(reader.read_event()?, Event::ObjectEnd);
/// reader.finish()?;
/// # Ok::<(), proofgate_json::JsonError>(())
/// ```
#[derive(Debug)]
pub struct Reader<'d, 'w> {
    text: &'d str,
    position: usize,
    expected: Expected,
    max_depth: usize,
    workspace: &'w mut Workspace,
}

impl<'d, 'w> Reader<'d, 'w> {
    /// A reader of a document of which only bytes are known.
    ///
    /// # Errors
    /// [`JsonError::InvalidUtf8`], and [`JsonError::TooLong`] from 2 GiB on.
    pub fn new(document: &'d [u8], workspace: &'w mut Workspace) -> Result<Self, JsonError> {
        match std::str::from_utf8(document) {
            Ok(text) => Self::from_text(text, workspace),
            Err(error) => Err(JsonError::InvalidUtf8 {
                at: error.valid_up_to(),
            }),
        }
    }

    /// A reader of a document that is text.
    ///
    /// # Errors
    /// [`JsonError::TooLong`] from 2 GiB on.
    pub fn from_text(text: &'d str, workspace: &'w mut Workspace) -> Result<Self, JsonError> {
        if text.len() >= 1 << 31 {
            return Err(JsonError::TooLong);
        }
        workspace.open_containers.clear();
        workspace.keys.clear();
        Ok(Reader {
            text,
            position: 0,
            expected: Expected::Value,
            max_depth: DEFAULT_MAX_DEPTH,
            workspace,
        })
    }

    /// Sets how deeply objects and arrays may be nested; `[[]]` has a depth of two.
    #[must_use]
    pub fn with_max_depth(mut self, depth: usize) -> Self {
        self.max_depth = depth;
        self
    }

    /// The document.
    pub fn text(&self) -> &'d str {
        self.text
    }

    /// How many bytes have been read: after an event, the offset right behind it (behind the colon after a key).
    pub fn offset(&self) -> usize {
        self.position
    }

    /// The next event; `None` when the document has ended as it should.
    ///
    /// # Errors
    /// [`JsonError`] at the first byte that breaks a rule. What follows an error means nothing.
    #[allow(
        clippy::should_implement_trait,
        reason = "an iterator could not return its error with `?`"
    )]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Event<'d>>, JsonError> {
        if self.expected == Expected::End {
            return match self.skip_whitespace() {
                Some(_) => Err(JsonError::TrailingData { at: self.position }),
                None => Ok(None),
            };
        }
        self.read_event().map(Some)
    }

    /// The next event of a document that is not over.
    ///
    /// # Errors
    /// As for [`next`](Reader::next), and [`JsonError::UnexpectedEnd`] behind the end of the value.
    #[inline]
    pub fn read_event(&mut self) -> Result<Event<'d>, JsonError> {
        let byte = match self.skip_whitespace() {
            Some(byte) if self.expected != Expected::End => byte,
            _ => return Err(JsonError::UnexpectedEnd { at: self.position }),
        };
        match (self.expected, byte) {
            (Expected::CommaOrEnd, b',') => {
                self.position += 1;
                let byte = self
                    .skip_whitespace()
                    .ok_or(JsonError::UnexpectedEnd { at: self.position })?;
                match self.workspace.open_containers.last() {
                    Some(&Container::Object { first_key }) => self.read_key(byte, first_key),
                    _ => self.read_value(byte),
                }
            }
            (Expected::CommaOrEnd | Expected::KeyOrEnd, b'}') => self.end_object(),
            (Expected::CommaOrEnd | Expected::ValueOrEnd, b']') => self.end_array(),
            (Expected::KeyOrEnd, _) => self.read_key(byte, self.workspace.keys.len()),
            (Expected::Value | Expected::ValueOrEnd, _) => self.read_value(byte),
            _ => Err(JsonError::UnexpectedByte { at: self.position }),
        }
    }

    /// Reads the rest of the value that `event` began, checking it as everything else; nothing is left of a value that
    /// is no object or array.
    ///
    /// # Errors
    /// As for [`next`](Reader::next).
    pub fn skip(&mut self, event: Event<'d>) -> Result<(), JsonError> {
        if !matches!(event, Event::ObjectStart | Event::ArrayStart) {
            return Ok(());
        }
        let outside = self.workspace.open_containers.len().saturating_sub(1);
        while self.workspace.open_containers.len() > outside {
            self.read_event()?;
        }
        Ok(())
    }

    /// Checks that nothing but white space follows the value.
    ///
    /// # Errors
    /// [`JsonError::TrailingData`], or [`JsonError::UnexpectedEnd`] when the value is not complete.
    pub fn finish(mut self) -> Result<(), JsonError> {
        match self.next()? {
            None => Ok(()),
            Some(_) => Err(JsonError::UnexpectedEnd { at: self.position }),
        }
    }

    /// The next byte that is no white space.
    #[inline]
    fn skip_whitespace(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.position) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.position += 1,
                other => return other.copied(),
            }
        }
    }

    #[inline]
    fn read_value(&mut self, byte: u8) -> Result<Event<'d>, JsonError> {
        let event = match byte {
            b'"' => {
                let string = Str::scan(self.text, self.position + 1)?;
                self.position = string.range().end + 1;
                Event::String(string)
            }
            b'{' => {
                let first_key = self.workspace.keys.len();
                return self.open_container(
                    Container::Object { first_key },
                    Expected::KeyOrEnd,
                    Event::ObjectStart,
                );
            }
            b'[' => return self.open_container(Container::Array, Expected::ValueOrEnd, Event::ArrayStart),
            b't' => self.read_literal("true", Event::Bool(true))?,
            b'f' => self.read_literal("false", Event::Bool(false))?,
            b'n' => self.read_literal("null", Event::Null)?,
            b'-' | b'0'..=b'9' => {
                let end = number_end(self.text.as_bytes(), self.position)
                    .ok_or(JsonError::InvalidNumber { at: self.position })?;
                let number = &self.text[self.position..end];
                self.position = end;
                Event::Number(number)
            }
            _ => return Err(JsonError::UnexpectedByte { at: self.position }),
        };
        self.expect_after_value();
        Ok(event)
    }

    fn read_key(&mut self, byte: u8, first_key: usize) -> Result<Event<'d>, JsonError> {
        let at = self.position;
        if byte != b'"' {
            return Err(JsonError::UnexpectedByte { at });
        }
        let name = Str::scan(self.text, at + 1)?;
        self.position = name.range().end + 1;
        if !self.workspace.keys.push(first_key, name, self.text) {
            return Err(JsonError::DuplicateKey { at: at + 1 });
        }
        match self.skip_whitespace() {
            Some(b':') => self.position += 1,
            Some(_) => return Err(JsonError::UnexpectedByte { at: self.position }),
            None => return Err(JsonError::UnexpectedEnd { at: self.position }),
        }
        self.expected = Expected::Value;
        Ok(Event::Key(name))
    }

    fn read_literal(&mut self, literal: &str, event: Event<'d>) -> Result<Event<'d>, JsonError> {
        if !self.text.as_bytes()[self.position..].starts_with(literal.as_bytes()) {
            return Err(JsonError::UnexpectedByte { at: self.position });
        }
        self.position += literal.len();
        Ok(event)
    }

    fn open_container(
        &mut self,
        open: Container,
        expected: Expected,
        event: Event<'d>,
    ) -> Result<Event<'d>, JsonError> {
        if self.workspace.open_containers.len() >= self.max_depth {
            return Err(JsonError::TooDeep { at: self.position });
        }
        self.workspace.open_containers.push(open);
        self.expected = expected;
        self.position += 1;
        Ok(event)
    }

    fn end_object(&mut self) -> Result<Event<'d>, JsonError> {
        let Some(&Container::Object { first_key }) = self.workspace.open_containers.last() else {
            return Err(JsonError::UnexpectedByte { at: self.position });
        };
        if let Some(at) = self.workspace.keys.close_object(first_key, self.text) {
            return Err(JsonError::DuplicateKey { at });
        }
        self.finish_value(Event::ObjectEnd)
    }

    fn end_array(&mut self) -> Result<Event<'d>, JsonError> {
        match self.workspace.open_containers.last() {
            Some(Container::Array) => self.finish_value(Event::ArrayEnd),
            _ => Err(JsonError::UnexpectedByte { at: self.position }),
        }
    }

    fn finish_value(&mut self, event: Event<'d>) -> Result<Event<'d>, JsonError> {
        self.workspace.open_containers.pop();
        self.position += 1;
        self.expect_after_value();
        Ok(event)
    }

    #[inline]
    fn expect_after_value(&mut self) {
        self.expected = if self.workspace.open_containers.is_empty() {
            Expected::End
        } else {
            Expected::CommaOrEnd
        };
    }
}
