use memchr::memchr2;

use crate::part::Part;
use crate::{Boundary, MultipartError};

/// Maximum number of parts in a form.
pub const MAX_PARTS: usize = 256;
/// Maximum length of the headers of a part, in bytes.
pub const MAX_HEAD_BYTES: usize = 4096;

const LINE_END: &[u8] = b"\r\n";

/// An event of a form, in document order.
#[derive(Debug, PartialEq, Eq)]
pub enum FormEvent<'a> {
    /// A part begins.
    Part(Part),
    /// Bytes of the part's content.
    Data(&'a [u8]),
    /// The part has ended.
    PartEnd,
}

/// The result of one call of [`FormReader::read`].
#[derive(Debug, PartialEq, Eq)]
pub struct Step<'a> {
    /// Number of bytes consumed from the input.
    pub consumed: usize,
    /// The event found; `None` when more bytes are needed.
    pub event: Option<FormEvent<'a>>,
}

/// Parses a form incrementally.
#[derive(Debug, Clone)]
pub struct FormReader {
    /// `CRLF--boundary`: it contains CR and LF only at its start.
    delimiter: Vec<u8>,
    state: State,
    head: Vec<u8>,
    parts: usize,
    /// Declared length of the content, minus the bytes received so far.
    remaining: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the first delimiter, after this many of its bytes.
    FirstDelimiter(usize),
    /// After a delimiter.
    AfterDelimiter(LineEnd),
    /// In the headers of a part.
    Head,
    /// In the content of a part.
    Content(Content),
    /// After the last delimiter, with this many bytes of the line end read.
    Done(usize),
    Refused(MultipartError),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    None,
    Cr,
    Dash,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Data,
    /// The last bytes match this much of a delimiter; they are data if the match does not continue.
    Delimiter(usize),
    /// At the start of a line that does not follow a CRLF, where this much of a delimiter matches:
    /// some readers would accept a delimiter at this position.
    StrayLine(usize),
}

impl FormReader {
    /// Creates a reader at the start of a body.
    #[must_use]
    pub fn new(boundary: &Boundary) -> Self {
        FormReader {
            delimiter: [b"\r\n--", boundary.as_str().as_bytes()].concat(),
            state: State::FirstDelimiter(LINE_END.len()),
            head: Vec::new(),
            parts: 0,
            remaining: None,
        }
    }

    /// Reads up to the next event.
    ///
    /// # Errors
    /// The fault of the form; every later call returns the same error.
    pub fn read<'a>(&'a mut self, input: &'a [u8]) -> Result<Step<'a>, MultipartError> {
        let mut at = 0;
        loop {
            if let State::Content(content) = self.state {
                let (consumed, found) = self.scan_content(content, &input[at..])?;
                at += consumed;
                self.check_length(consumed, &found)?;
                let event = match found {
                    ContentMatch::None if at == input.len() => None,
                    ContentMatch::None => continue,
                    ContentMatch::Data => Some(FormEvent::Data(&input[at - consumed..at])),
                    ContentMatch::Withheld(length) => Some(FormEvent::Data(&self.delimiter[..length])),
                    ContentMatch::End => Some(FormEvent::PartEnd),
                };
                return Ok(Step { consumed: at, event });
            }
            let Some(byte) = input.get(at) else {
                if let State::Refused(error) = self.state {
                    return Err(error);
                }
                return Ok(Step {
                    consumed: at,
                    event: None,
                });
            };
            at += 1;
            match self.framing_byte(*byte) {
                Ok(None) => {}
                Ok(Some(part)) => {
                    return Ok(Step {
                        consumed: at,
                        event: Some(FormEvent::Part(part)),
                    });
                }
                Err(error) => return Err(self.refuse(error)),
            }
        }
    }

    /// Whether the form is complete: only the end of its last line may follow.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done(_))
    }

    /// Declares the end of the body.
    ///
    /// # Errors
    /// [`MultipartError::Truncated`] when the form is incomplete.
    pub fn finish(&self) -> Result<(), MultipartError> {
        match self.state {
            State::Done(0 | 2) => Ok(()),
            State::Done(_) => Err(MultipartError::Epilogue),
            State::Refused(error) => Err(error),
            _ => Err(MultipartError::Truncated),
        }
    }

    fn refuse(&mut self, error: MultipartError) -> MultipartError {
        self.state = State::Refused(error);
        error
    }

    /// Checks the content read so far against the declared length of the part.
    fn check_length(&mut self, consumed: usize, found: &ContentMatch) -> Result<(), MultipartError> {
        let Some(missing) = self.remaining else {
            return Ok(());
        };
        let came = match found {
            ContentMatch::None => 0,
            ContentMatch::Data => consumed as u64,
            ContentMatch::Withheld(length) => *length as u64,
            ContentMatch::End => {
                self.remaining = None;
                return match missing {
                    0 => Ok(()),
                    _ => Err(self.refuse(MultipartError::InvalidPartLength)),
                };
            }
        };
        match missing.checked_sub(came) {
            Some(missing) => self.remaining = Some(missing),
            None => return Err(self.refuse(MultipartError::InvalidPartLength)),
        }
        Ok(())
    }

    /// Reads a byte that is not content.
    fn framing_byte(&mut self, byte: u8) -> Result<Option<Part>, MultipartError> {
        self.state = match self.state {
            State::FirstDelimiter(matched) if self.delimiter.get(matched) == Some(&byte) => {
                match matched + 1 == self.delimiter.len() {
                    true => State::AfterDelimiter(LineEnd::None),
                    false => State::FirstDelimiter(matched + 1),
                }
            }
            State::FirstDelimiter(_) => return Err(MultipartError::Preamble),
            State::AfterDelimiter(LineEnd::None) if byte == b'\r' => State::AfterDelimiter(LineEnd::Cr),
            // A form must have at least one part (RFC 2046 section 5.1.1).
            State::AfterDelimiter(LineEnd::None) if byte == b'-' && self.parts > 0 => {
                State::AfterDelimiter(LineEnd::Dash)
            }
            State::AfterDelimiter(LineEnd::Cr) if byte == b'\n' => {
                self.parts += 1;
                if self.parts > MAX_PARTS {
                    return Err(MultipartError::TooManyParts);
                }
                State::Head
            }
            State::AfterDelimiter(LineEnd::Dash) if byte == b'-' => State::Done(0),
            State::AfterDelimiter(_) => return Err(MultipartError::BoundaryLine),
            State::Head => return self.head_byte(byte),
            State::Done(matched) if LINE_END.get(matched) == Some(&byte) => State::Done(matched + 1),
            State::Done(_) => return Err(MultipartError::Epilogue),
            State::Refused(error) => return Err(error),
            State::Content(_) => return Ok(None),
        };
        Ok(None)
    }

    fn head_byte(&mut self, byte: u8) -> Result<Option<Part>, MultipartError> {
        if self.head.len() == MAX_HEAD_BYTES {
            return Err(MultipartError::HeadTooLong);
        }
        self.head.push(byte);
        if self.head.starts_with(LINE_END) {
            return Err(MultipartError::InvalidDisposition);
        }
        if !self.head.ends_with(b"\r\n\r\n") {
            return Ok(None);
        }
        let lines = &self.head[..self.head.len() - LINE_END.len()];
        let (part, length) = Part::parse(lines)?;
        self.remaining = length;
        self.head.clear();
        // Some readers take the end of the headers for the line break before a delimiter.
        self.state = State::Content(Content::StrayLine(0));
        Ok(Some(part))
    }

    /// Scans bytes of a content; returns the number of consumed bytes, and their kind.
    fn scan_content(
        &mut self,
        content: Content,
        input: &[u8],
    ) -> Result<(usize, ContentMatch), MultipartError> {
        let goes_on = |matched: usize| {
            let rest = &self.delimiter[matched..];
            input.iter().zip(rest).take_while(|(one, two)| one == two).count()
        };
        let (next, consumed, found) = match content {
            Content::Delimiter(matched) => {
                let more = goes_on(matched);
                let matched = matched + more;
                if matched == self.delimiter.len() {
                    self.state = State::AfterDelimiter(LineEnd::None);
                    return Ok((more, ContentMatch::End));
                }
                if more == input.len() {
                    (Content::Delimiter(matched), more, ContentMatch::None)
                } else if matched == 1 {
                    (Content::StrayLine(0), more, ContentMatch::Withheld(1))
                } else {
                    (Content::Data, more, ContentMatch::Withheld(matched))
                }
            }
            Content::StrayLine(matched) => {
                let more = goes_on(LINE_END.len() + matched);
                let found = if more == 0 {
                    ContentMatch::None
                } else {
                    ContentMatch::Data
                };
                if LINE_END.len() + matched + more == self.delimiter.len() {
                    return Err(self.refuse(MultipartError::StrayBoundary));
                }
                match more == input.len() {
                    true => (Content::StrayLine(matched + more), more, found),
                    false => (Content::Data, more, found),
                }
            }
            Content::Data => match (memchr2(b'\r', b'\n', input), input) {
                (None, []) => (Content::Data, 0, ContentMatch::None),
                (None, _) => (Content::Data, input.len(), ContentMatch::Data),
                (Some(0), [b'\r', ..]) => (Content::Delimiter(1), 1, ContentMatch::None),
                (Some(0), _) => (Content::StrayLine(0), 1, ContentMatch::Data),
                (Some(at), _) => (Content::Data, at, ContentMatch::Data),
            },
        };
        self.state = State::Content(next);
        Ok((consumed, found))
    }
}

/// The result of scanning bytes of a content.
enum ContentMatch {
    None,
    /// All consumed bytes are data.
    Data,
    /// The consumed bytes follow this many bytes of a partial delimiter, which are data because the
    /// match did not continue.
    Withheld(usize),
    End,
}
