//! The trailer section after the last chunk (RFC 9112 section 7.1.2): checked, bounded and dropped.

use crate::headers::{KNOWN_NAME_BYTES, is_hop_by_hop, is_protected, plain_name_byte};
use crate::limits::{Limits, MAX_HEADERS};
use crate::refusal::Refusal;
use crate::syntax::{is_control, is_tchar};

/// Reads a trailer section byte by byte.
#[derive(Debug, Clone)]
pub(crate) struct Trailers {
    place: Place,
    bytes_left: usize,
    fields_left: usize,
    name: [u8; KNOWN_NAME_BYTES],
    name_length: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    LineStart,
    Name,
    Value,
    LineEnd,
    SectionEnd,
}

impl Trailers {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            place: Place::LineStart,
            bytes_left: limits.head_bytes,
            fields_left: limits.headers.min(MAX_HEADERS),
            name: [0; KNOWN_NAME_BYTES],
            name_length: 0,
        }
    }

    /// Takes one byte; `true` when it ends the section.
    pub(crate) fn push(&mut self, byte: u8) -> Result<bool, Refusal> {
        self.bytes_left = self.bytes_left.checked_sub(1).ok_or(Refusal::TrailersTooLarge)?;
        self.place = match (self.place, byte) {
            (Place::LineStart, b'\r') => Place::SectionEnd,
            (Place::LineStart, _) if is_tchar(byte) => {
                self.fields_left = self.fields_left.checked_sub(1).ok_or(Refusal::TrailersTooLarge)?;
                self.name_length = 0;
                self.keep(byte);
                Place::Name
            }
            (Place::Name, b':') if self.is_forbidden() => return Err(Refusal::ForbiddenTrailer),
            (Place::Name, b':') => Place::Value,
            (Place::Name, _) if is_tchar(byte) => {
                self.keep(byte);
                Place::Name
            }
            (Place::Value, b'\r') => Place::LineEnd,
            (Place::Value, _) if !is_control(byte) => Place::Value,
            (Place::LineEnd, b'\n') => Place::LineStart,
            (Place::SectionEnd, b'\n') => return Ok(true),
            (Place::LineEnd | Place::SectionEnd, _) => return Err(Refusal::BareCarriageReturn),
            (_, b'\n') => return Err(Refusal::BareLineFeed),
            _ => return Err(Refusal::InvalidTrailer),
        };
        Ok(false)
    }

    /// Whether the field would change the framing, the connection or who asks (RFC 9110 section 6.5.1).
    fn is_forbidden(&self) -> bool {
        let name = &self.name[..self.name_length];
        is_protected(name) || std::str::from_utf8(name).is_ok_and(is_hop_by_hop)
    }

    /// Keeps as much of the name as it takes to recognise a forbidden one, or one that imitates it.
    fn keep(&mut self, byte: u8) {
        if let Some(place) = self.name.get_mut(self.name_length) {
            *place = plain_name_byte(byte);
            self.name_length += 1;
        }
    }
}
