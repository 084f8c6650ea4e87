use crate::splice::StringLocation;

/// The kind of a part of a text in its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentKind {
    /// The value of a string.
    Text,
    /// The key of an object.
    Key,
    /// A long number, as written, that can be replaced with a string: data of a tool or of the client.
    Number,
    /// A long number in a field of the API.
    ApiNumber,
}

/// A string or number of a document, stored in 12 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    /// The start in the text.
    start: u32,
    /// The start of its characters in the document; the highest bit is set if they contain escapes.
    raw_start: u32,
    /// Its length in bytes; the two highest bits encode the kind.
    length: u32,
}

const ESCAPED_FLAG: u32 = 1 << 31;
const KEY_FLAG: u32 = 1 << 31;
const NUMBER_FLAG: u32 = 1 << 30;

impl Segment {
    /// Returns `None` if it begins at or beyond 2 GiB in the document, or is 1 GiB or longer.
    pub(crate) fn new(start: usize, place: &StringLocation, kind: SegmentKind) -> Option<Self> {
        let raw = u32::try_from(place.raw.start).ok()?;
        let length = u32::try_from(place.raw.len()).ok()?;
        if raw & ESCAPED_FLAG != 0 || length & (KEY_FLAG | NUMBER_FLAG) != 0 {
            return None;
        }
        let kind = match kind {
            SegmentKind::Text => 0,
            SegmentKind::Key => KEY_FLAG,
            SegmentKind::Number => NUMBER_FLAG,
            SegmentKind::ApiNumber => KEY_FLAG | NUMBER_FLAG,
        };
        Some(Segment {
            start: u32::try_from(start).ok()?,
            raw_start: raw | if place.has_escapes { ESCAPED_FLAG } else { 0 },
            length: length | kind,
        })
    }

    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    pub(crate) fn kind(self) -> SegmentKind {
        match self.length & (KEY_FLAG | NUMBER_FLAG) {
            0 => SegmentKind::Text,
            NUMBER_FLAG => SegmentKind::Number,
            KEY_FLAG => SegmentKind::Key,
            _ => SegmentKind::ApiNumber,
        }
    }

    pub(crate) fn location(self) -> StringLocation {
        let start = (self.raw_start & !ESCAPED_FLAG) as usize;
        StringLocation {
            raw: start..start + (self.length & !(KEY_FLAG | NUMBER_FLAG)) as usize,
            has_escapes: self.raw_start & ESCAPED_FLAG != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Segment, SegmentKind};
    use crate::splice::StringLocation;

    #[test]
    fn what_is_packed_is_what_was_given_up_to_the_bounds() {
        let largest = (1 << 31) - 1;
        for kind in [
            SegmentKind::Text,
            SegmentKind::Key,
            SegmentKind::Number,
            SegmentKind::ApiNumber,
        ] {
            for (start, raw) in [
                (0, 0..0),
                (7, 9..12),
                (u32::MAX as usize, largest..largest + (1 << 30) - 1),
            ] {
                for escaped in [false, true] {
                    let place = StringLocation {
                        raw: raw.clone(),
                        has_escapes: escaped,
                    };
                    let segment = Segment::new(start, &place, kind).unwrap();
                    let unpacked = segment.location();
                    assert_eq!((segment.start(), segment.kind()), (start, kind));
                    assert_eq!((unpacked.raw, unpacked.has_escapes), (place.raw, escaped));
                }
            }
        }
    }

    #[test]
    fn what_is_too_long_or_too_far_behind_is_not_packed() {
        for (start, raw) in [
            (0, 1 << 31..1 << 31),
            (0, 0..1 << 30),
            (u32::MAX as usize + 1, 0..1),
        ] {
            let place = StringLocation {
                raw,
                has_escapes: false,
            };
            assert!(Segment::new(start, &place, SegmentKind::Text).is_none());
        }
    }
}
