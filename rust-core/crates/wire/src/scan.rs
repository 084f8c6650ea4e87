//! Finds the end of a head in a buffer that is still being filled.

use crate::limits::Limits;
use crate::refusal::Refusal;
use crate::syntax::{has_control, is_control};
use memchr::memchr;

/// An incremental search for the end of a head (RFC 9112 section 2.1): every byte is looked at once, however
/// the bytes are split into reads. It refuses what can be refused without knowing a field: an empty line
/// before the start line, bare LF, bare CR, control bytes, and a head that is too large.
#[derive(Debug, Clone, Default)]
pub struct HeadScanner {
    position: usize,
    place: Place,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    HeadStart,
    StartLine,
    StartLineCr,
    LineStart,
    Line,
    LineCr,
    EmptyLineCr,
}

impl HeadScanner {
    /// A scanner at the start of a head.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the head: the next scan starts a new one.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Looks at the bytes of `buf` that it has not seen yet.
    ///
    /// `buf` is everything unread, the head starts at its first byte, and it grows between calls without
    /// changing. Returns the length of the head in bytes, final CRLF CRLF included, or `None` when more bytes
    /// are needed.
    ///
    /// # Errors
    /// The first offending byte in the order of the stream decides. [`Refusal::TargetTooLong`] when not even
    /// the start line ends within [`Limits::head_bytes`], [`Refusal::HeadTooLarge`] when the head does not.
    pub fn scan(&mut self, buf: &[u8], limits: &Limits) -> Result<Option<usize>, Refusal> {
        let window = &buf[..buf.len().min(limits.head_bytes)];
        while let Some(rest @ [first, ..]) = window.get(self.position..) {
            match self.place {
                Place::HeadStart => match first {
                    b'\r' | b'\n' => return Err(Refusal::LeadingEmptyLine),
                    _ => self.place = Place::StartLine,
                },
                Place::LineStart if *first == b'\r' => {
                    self.position += 1;
                    self.place = Place::EmptyLineCr;
                }
                Place::StartLine | Place::LineStart | Place::Line => {
                    let end = memchr(b'\r', rest);
                    let text = &rest[..end.unwrap_or(rest.len())];
                    check_text(text)?;
                    let in_start_line = self.place == Place::StartLine;
                    self.position += text.len();
                    self.place = if in_start_line {
                        Place::StartLine
                    } else {
                        Place::Line
                    };
                    if end.is_some() {
                        self.position += 1;
                        self.place = if in_start_line {
                            Place::StartLineCr
                        } else {
                            Place::LineCr
                        };
                    }
                }
                Place::StartLineCr | Place::LineCr | Place::EmptyLineCr => {
                    if *first != b'\n' {
                        return Err(Refusal::BareCarriageReturn);
                    }
                    if self.place == Place::EmptyLineCr {
                        return Ok(Some(self.position + 1));
                    }
                    self.position += 1;
                    self.place = Place::LineStart;
                }
            }
        }
        match self.place {
            _ if buf.len() < limits.head_bytes => Ok(None),
            Place::HeadStart | Place::StartLine | Place::StartLineCr => Err(Refusal::TargetTooLong),
            _ => Err(Refusal::HeadTooLarge),
        }
    }
}

/// Refuses the first control byte of a piece of a line.
fn check_text(text: &[u8]) -> Result<(), Refusal> {
    if !has_control(text) {
        return Ok(());
    }
    match text.iter().find(|&&byte| is_control(byte)) {
        Some(b'\n') => Err(Refusal::BareLineFeed),
        _ => Err(Refusal::ControlByte),
    }
}
