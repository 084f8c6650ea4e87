//! Finds the end of a head in a buffer that is still being filled.

use crate::limits::Limits;
use crate::protocol_error::ProtocolError;
use crate::syntax::{has_control, is_control};
use memchr::memchr;

/// An incremental search for the end of a head (RFC 9112 section 2.1). Every byte is read once,
/// regardless of how the bytes are split into reads. The search refuses errors that are detectable
/// without parsing fields: an empty line before the start line, bare LF, bare CR, control bytes,
/// and a head that is too large.
#[derive(Debug, Clone, Default)]
pub struct HeadScanner {
    position: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
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
    /// Creates a scanner at the start of a head.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Resets the scanner, so that the next scan starts a new head.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Scans the bytes of `buf` that were not scanned yet.
    ///
    /// `buf` holds all unread bytes, starting with the head. Between calls, bytes may only be added
    /// to it. Returns the length of the head in bytes, including the final CRLF CRLF, or `None` if
    /// more bytes are needed.
    ///
    /// # Errors
    /// The error of the first invalid byte in the stream. [`ProtocolError::TargetTooLong`] if the
    /// start line does not end within [`Limits::head_bytes`]; [`ProtocolError::HeadTooLarge`] if
    /// only the rest of the head does not.
    pub fn scan(&mut self, buf: &[u8], limits: &Limits) -> Result<Option<usize>, ProtocolError> {
        let window = &buf[..buf.len().min(limits.head_bytes)];
        while let Some(rest @ [first, ..]) = window.get(self.position..) {
            match self.state {
                State::HeadStart => match first {
                    b'\r' | b'\n' => return Err(ProtocolError::LeadingEmptyLine),
                    _ => self.state = State::StartLine,
                },
                State::LineStart if *first == b'\r' => {
                    self.position += 1;
                    self.state = State::EmptyLineCr;
                }
                State::StartLine | State::LineStart | State::Line => {
                    let end = memchr(b'\r', rest);
                    let text = &rest[..end.unwrap_or(rest.len())];
                    check_text(text)?;
                    let in_start_line = self.state == State::StartLine;
                    self.position += text.len();
                    self.state = if in_start_line {
                        State::StartLine
                    } else {
                        State::Line
                    };
                    if end.is_some() {
                        self.position += 1;
                        self.state = if in_start_line {
                            State::StartLineCr
                        } else {
                            State::LineCr
                        };
                    }
                }
                State::StartLineCr | State::LineCr | State::EmptyLineCr => {
                    if *first != b'\n' {
                        return Err(ProtocolError::BareCarriageReturn);
                    }
                    if self.state == State::EmptyLineCr {
                        return Ok(Some(self.position + 1));
                    }
                    self.position += 1;
                    self.state = State::LineStart;
                }
            }
        }
        match self.state {
            _ if buf.len() < limits.head_bytes => Ok(None),
            State::HeadStart | State::StartLine | State::StartLineCr => Err(ProtocolError::TargetTooLong),
            _ => Err(ProtocolError::HeadTooLarge),
        }
    }
}

/// Refuses the first control byte of a part of a line.
fn check_text(text: &[u8]) -> Result<(), ProtocolError> {
    if !has_control(text) {
        return Ok(());
    }
    match text.iter().find(|&&byte| is_control(byte)) {
        Some(b'\n') => Err(ProtocolError::BareLineFeed),
        _ => Err(ProtocolError::ControlByte),
    }
}
