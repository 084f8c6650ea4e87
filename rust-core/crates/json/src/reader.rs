use crate::error::JsonError;
use crate::event::Event;
use crate::keys::Keys;
use crate::number::number_end;
use crate::text::Str;

/// Default maximum nesting depth of objects and arrays.
pub const DEFAULT_MAX_DEPTH: usize = 64;

/// Buffers of a reader, reused between documents so that reading does not allocate.
#[derive(Debug, Default)]
pub struct Workspace {
    open_containers: Vec<Container>,
    keys: Keys,
}

impl Workspace {
    /// Creates empty buffers.
    pub fn new() -> Self {
        Workspace::default()
    }

    /// Releases every buffer with more than `most` bytes.
    pub fn release_memory(&mut self, most: usize) {
        self.open_containers.clear();
        self.keys.release_memory(most);
    }

    /// Returns the bytes of memory of the buffers, without a few bytes for each nesting level.
    pub fn capacity(&self) -> usize {
        self.keys.capacity()
    }
}

/// An open object or array.
#[derive(Debug, Clone, Copy)]
enum Container {
    Array,
    Object { first_key: usize },
}

/// The expected next token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Value,
    ValueOrEnd,
    KeyOrEnd,
    CommaOrEnd,
    End,
}

/// A pull parser for the events of one document.
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
    /// Creates a reader for a document whose encoding has not been checked.
    ///
    /// # Errors
    /// [`JsonError::InvalidUtf8`], or [`JsonError::TooLong`] if it has 2 GiB or more.
    pub fn new(document: &'d [u8], workspace: &'w mut Workspace) -> Result<Self, JsonError> {
        match std::str::from_utf8(document) {
            Ok(text) => Self::from_text(text, workspace),
            Err(error) => Err(JsonError::InvalidUtf8 {
                at: error.valid_up_to(),
            }),
        }
    }

    /// Creates a reader for a document that is valid UTF-8.
    ///
    /// # Errors
    /// [`JsonError::TooLong`] if it has 2 GiB or more.
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

    /// Sets the maximum nesting depth of objects and arrays; `[[]]` has a depth of two.
    #[must_use]
    pub fn with_max_depth(mut self, depth: usize) -> Self {
        self.max_depth = depth;
        self
    }

    /// Returns the document.
    pub fn text(&self) -> &'d str {
        self.text
    }

    /// Returns how many bytes have been read: after an event, the offset directly after it (after the colon for a
    /// key).
    pub fn offset(&self) -> usize {
        self.position
    }

    /// Returns the next event; `None` after the end of a valid document.
    ///
    /// # Errors
    /// [`JsonError`] at the first invalid byte. Results after an error are meaningless.
    #[allow(
        clippy::should_implement_trait,
        reason = "not an Iterator: callers return its error with `?`"
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

    /// Returns the next event of a document that must not have ended.
    ///
    /// # Errors
    /// The errors of [`next`](Reader::next), and [`JsonError::UnexpectedEnd`] after the end of the
    /// value.
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

    /// Skips the rest of the value that `event` started, with the same checks as for any other value. Does nothing if
    /// the value is not an object or array.
    ///
    /// # Errors
    /// The errors of [`next`](Reader::next).
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

    /// Checks that only white space follows the value.
    ///
    /// # Errors
    /// [`JsonError::TrailingData`], or [`JsonError::UnexpectedEnd`] when the value is not complete.
    pub fn finish(mut self) -> Result<(), JsonError> {
        match self.next()? {
            None => Ok(()),
            Some(_) => Err(JsonError::UnexpectedEnd { at: self.position }),
        }
    }

    /// Returns the next byte that is not white space.
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
