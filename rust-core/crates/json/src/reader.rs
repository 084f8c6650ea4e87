use crate::error::JsonError;
use crate::event::Event;
use crate::keys::Keys;
use crate::number::number_end;
use crate::text::Str;

/// How deeply objects and arrays may be nested unless a reader is told otherwise.
pub const DEFAULT_DEPTH: usize = 64;

/// Buffers of a reader, kept from document to document so that reading allocates nothing.
#[derive(Debug, Default)]
pub struct Workspace {
    open: Vec<Open>,
    keys: Keys,
}

impl Workspace {
    /// Empty buffers.
    pub fn new() -> Self {
        Workspace::default()
    }

    /// Gives back the memory of a buffer that has more than `most` bytes.
    pub fn give_back(&mut self, most: usize) {
        self.open.clear();
        self.keys.give_back(most);
    }

    /// Bytes of memory that the buffers take, besides some for each level of nesting.
    pub fn capacity(&self) -> usize {
        self.keys.capacity()
    }
}

/// An object or array that has not ended.
#[derive(Debug, Clone, Copy)]
enum Open {
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
    Nothing,
}

/// Pulls the events of one document, in order.
///
/// ```
/// use proofgate_json::{Event, Reader, Workspace};
/// let mut workspace = Workspace::new();
/// let mut reader = Reader::new(br#"{"n": 1.50}"#, &mut workspace)?;
/// assert_eq!(reader.read()?, Event::ObjectStart);
/// assert!(matches!(reader.read()?, Event::Key(key) if key.raw() == "n"));
/// assert_eq!(reader.read()?, Event::Number("1.50"));
/// assert_eq!(reader.read()?, Event::ObjectEnd);
/// reader.finish()?;
/// # Ok::<(), proofgate_json::JsonError>(())
/// ```
#[derive(Debug)]
pub struct Reader<'d, 'w> {
    text: &'d str,
    at: usize,
    expected: Expected,
    depth: usize,
    workspace: &'w mut Workspace,
}

impl<'d, 'w> Reader<'d, 'w> {
    /// A reader of a document of which only bytes are known.
    ///
    /// # Errors
    /// [`JsonError::InvalidUtf8`], and [`JsonError::TooLong`] from 2 GiB on.
    pub fn new(document: &'d [u8], workspace: &'w mut Workspace) -> Result<Self, JsonError> {
        match std::str::from_utf8(document) {
            Ok(text) => Self::of_text(text, workspace),
            Err(error) => Err(JsonError::InvalidUtf8 {
                at: error.valid_up_to(),
            }),
        }
    }

    /// A reader of a document that is text.
    ///
    /// # Errors
    /// [`JsonError::TooLong`] from 2 GiB on.
    pub fn of_text(text: &'d str, workspace: &'w mut Workspace) -> Result<Self, JsonError> {
        if text.len() >= 1 << 31 {
            return Err(JsonError::TooLong);
        }
        workspace.open.clear();
        workspace.keys.clear();
        Ok(Reader {
            text,
            at: 0,
            expected: Expected::Value,
            depth: DEFAULT_DEPTH,
            workspace,
        })
    }

    /// Sets how deeply objects and arrays may be nested; `[[]]` has a depth of two.
    #[must_use]
    pub fn with_depth(mut self, depth: usize) -> Self {
        self.depth = depth;
        self
    }

    /// The document.
    pub fn text(&self) -> &'d str {
        self.text
    }

    /// How many bytes have been read: after an event, the offset right behind it (behind the colon after a key).
    pub fn offset(&self) -> usize {
        self.at
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
        if self.expected == Expected::Nothing {
            return match self.skip_space() {
                Some(_) => Err(JsonError::TrailingData { at: self.at }),
                None => Ok(None),
            };
        }
        self.read().map(Some)
    }

    /// The next event of a document that is not over.
    ///
    /// # Errors
    /// As for [`next`](Reader::next), and [`JsonError::UnexpectedEnd`] behind the end of the value.
    #[inline]
    pub fn read(&mut self) -> Result<Event<'d>, JsonError> {
        let byte = match self.skip_space() {
            Some(byte) if self.expected != Expected::Nothing => byte,
            _ => return Err(JsonError::UnexpectedEnd { at: self.at }),
        };
        match (self.expected, byte) {
            (Expected::CommaOrEnd, b',') => {
                self.at += 1;
                let byte = self
                    .skip_space()
                    .ok_or(JsonError::UnexpectedEnd { at: self.at })?;
                match self.workspace.open.last() {
                    Some(&Open::Object { first_key }) => self.key(byte, first_key),
                    _ => self.value(byte),
                }
            }
            (Expected::CommaOrEnd | Expected::KeyOrEnd, b'}') => self.end_object(),
            (Expected::CommaOrEnd | Expected::ValueOrEnd, b']') => self.end_array(),
            (Expected::KeyOrEnd, _) => self.key(byte, self.workspace.keys.len()),
            (Expected::Value | Expected::ValueOrEnd, _) => self.value(byte),
            _ => Err(JsonError::UnexpectedByte { at: self.at }),
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
        let outside = self.workspace.open.len().saturating_sub(1);
        while self.workspace.open.len() > outside {
            self.read()?;
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
            Some(_) => Err(JsonError::UnexpectedEnd { at: self.at }),
        }
    }

    /// The next byte that is no white space.
    #[inline]
    fn skip_space(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    #[inline]
    fn value(&mut self, byte: u8) -> Result<Event<'d>, JsonError> {
        let event = match byte {
            b'"' => {
                let string = Str::scan(self.text, self.at + 1)?;
                self.at = string.range().end + 1;
                Event::String(string)
            }
            b'{' => {
                let first_key = self.workspace.keys.len();
                return self.open(Open::Object { first_key }, Expected::KeyOrEnd, Event::ObjectStart);
            }
            b'[' => return self.open(Open::Array, Expected::ValueOrEnd, Event::ArrayStart),
            b't' => self.literal("true", Event::Bool(true))?,
            b'f' => self.literal("false", Event::Bool(false))?,
            b'n' => self.literal("null", Event::Null)?,
            b'-' | b'0'..=b'9' => {
                let end = number_end(self.text.as_bytes(), self.at)
                    .ok_or(JsonError::InvalidNumber { at: self.at })?;
                let number = &self.text[self.at..end];
                self.at = end;
                Event::Number(number)
            }
            _ => return Err(JsonError::UnexpectedByte { at: self.at }),
        };
        self.value_ended();
        Ok(event)
    }

    fn key(&mut self, byte: u8, first_key: usize) -> Result<Event<'d>, JsonError> {
        let at = self.at;
        if byte != b'"' {
            return Err(JsonError::UnexpectedByte { at });
        }
        let name = Str::scan(self.text, at + 1)?;
        self.at = name.range().end + 1;
        if !self.workspace.keys.push(first_key, name, self.text) {
            return Err(JsonError::DuplicateKey { at: at + 1 });
        }
        match self.skip_space() {
            Some(b':') => self.at += 1,
            Some(_) => return Err(JsonError::UnexpectedByte { at: self.at }),
            None => return Err(JsonError::UnexpectedEnd { at: self.at }),
        }
        self.expected = Expected::Value;
        Ok(Event::Key(name))
    }

    fn literal(&mut self, literal: &str, event: Event<'d>) -> Result<Event<'d>, JsonError> {
        if !self.text.as_bytes()[self.at..].starts_with(literal.as_bytes()) {
            return Err(JsonError::UnexpectedByte { at: self.at });
        }
        self.at += literal.len();
        Ok(event)
    }

    fn open(&mut self, open: Open, expected: Expected, event: Event<'d>) -> Result<Event<'d>, JsonError> {
        if self.workspace.open.len() >= self.depth {
            return Err(JsonError::TooDeep { at: self.at });
        }
        self.workspace.open.push(open);
        self.expected = expected;
        self.at += 1;
        Ok(event)
    }

    fn end_object(&mut self) -> Result<Event<'d>, JsonError> {
        let Some(&Open::Object { first_key }) = self.workspace.open.last() else {
            return Err(JsonError::UnexpectedByte { at: self.at });
        };
        if let Some(at) = self.workspace.keys.close(first_key, self.text) {
            return Err(JsonError::DuplicateKey { at });
        }
        self.ended(Event::ObjectEnd)
    }

    fn end_array(&mut self) -> Result<Event<'d>, JsonError> {
        match self.workspace.open.last() {
            Some(Open::Array) => self.ended(Event::ArrayEnd),
            _ => Err(JsonError::UnexpectedByte { at: self.at }),
        }
    }

    fn ended(&mut self, event: Event<'d>) -> Result<Event<'d>, JsonError> {
        self.workspace.open.pop();
        self.at += 1;
        self.value_ended();
        Ok(event)
    }

    #[inline]
    fn value_ended(&mut self) {
        self.expected = if self.workspace.open.is_empty() {
            Expected::Nothing
        } else {
            Expected::CommaOrEnd
        };
    }
}
