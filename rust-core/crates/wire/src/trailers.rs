//! The trailer section after the last chunk (RFC 9112 section 7.1.2). It is checked, limited in
//! size, and dropped.

use crate::headers::{MAX_KNOWN_NAME_BYTES, is_hop_by_hop, is_protected, normalize_name_byte};
use crate::limits::{Limits, MAX_HEADERS};
use crate::protocol_error::ProtocolError;
use crate::syntax::{is_control, is_tchar};

/// A parser that reads a trailer section byte by byte.
#[derive(Debug, Clone)]
pub(crate) struct Trailers {
    state: State,
    bytes_left: usize,
    fields_left: usize,
    name: [u8; MAX_KNOWN_NAME_BYTES],
    name_length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    LineStart,
    Name,
    Value,
    LineEnd,
    SectionEnd,
}

impl Trailers {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            state: State::LineStart,
            bytes_left: limits.head_bytes,
            fields_left: limits.headers.min(MAX_HEADERS),
            name: [0; MAX_KNOWN_NAME_BYTES],
            name_length: 0,
        }
    }

    /// Adds one byte. Returns true if the byte ends the section.
    pub(crate) fn push(&mut self, byte: u8) -> Result<bool, ProtocolError> {
        self.bytes_left = self
            .bytes_left
            .checked_sub(1)
            .ok_or(ProtocolError::TrailersTooLarge)?;
        self.state = match (self.state, byte) {
            (State::LineStart, b'\r') => State::SectionEnd,
            (State::LineStart, _) if is_tchar(byte) => {
                self.fields_left = self
                    .fields_left
                    .checked_sub(1)
                    .ok_or(ProtocolError::TrailersTooLarge)?;
                self.name_length = 0;
                self.push_name_byte(byte);
                State::Name
            }
            (State::Name, b':') if self.is_forbidden() => return Err(ProtocolError::ForbiddenTrailer),
            (State::Name, b':') => State::Value,
            (State::Name, _) if is_tchar(byte) => {
                self.push_name_byte(byte);
                State::Name
            }
            (State::Value, b'\r') => State::LineEnd,
            (State::Value, _) if !is_control(byte) => State::Value,
            (State::LineEnd, b'\n') => State::LineStart,
            (State::SectionEnd, b'\n') => return Ok(true),
            (State::LineEnd | State::SectionEnd, _) => return Err(ProtocolError::BareCarriageReturn),
            (_, b'\n') => return Err(ProtocolError::BareLineFeed),
            _ => return Err(ProtocolError::InvalidTrailer),
        };
        Ok(false)
    }

    /// Returns whether the field would change the framing, the connection or the sender (RFC 9110
    /// section 6.5.1).
    fn is_forbidden(&self) -> bool {
        let name = &self.name[..self.name_length];
        is_protected(name) || std::str::from_utf8(name).is_ok_and(is_hop_by_hop)
    }

    /// Stores the part of a name that suffices to recognise a forbidden name or its imitation.
    fn push_name_byte(&mut self, byte: u8) {
        if let Some(place) = self.name.get_mut(self.name_length) {
            *place = normalize_name_byte(byte);
            self.name_length += 1;
        }
    }
}
