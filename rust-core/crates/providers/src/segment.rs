use crate::splice::Place;

/// What a part of a text is in its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The value of a string.
    Text,
    /// The key of an object.
    Key,
    /// A long number, as it is written, that can as well be a string: data of a tool or of the client.
    Number,
    /// A long number of a field of the API.
    Setting,
}

/// One string or number of a document, in 12 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    /// Where it begins in the text.
    start: u32,
    /// Where its characters begin in the document; the highest bit says that they hold escapes.
    raw: u32,
    /// Their length in bytes; the two highest bits say of which kind it is.
    length: u32,
}

const ESCAPED: u32 = 1 << 31;
const KEY: u32 = 1 << 31;
const NUMBER: u32 = 1 << 30;

impl Segment {
    /// `None` when it begins at 2 GiB of the document or behind, or has 1 GiB or more.
    pub(crate) fn new(start: usize, place: &Place, kind: Kind) -> Option<Self> {
        let raw = u32::try_from(place.raw.start).ok()?;
        let length = u32::try_from(place.raw.len()).ok()?;
        if raw & ESCAPED != 0 || length & (KEY | NUMBER) != 0 {
            return None;
        }
        let kind = match kind {
            Kind::Text => 0,
            Kind::Key => KEY,
            Kind::Number => NUMBER,
            Kind::Setting => KEY | NUMBER,
        };
        Some(Segment {
            start: u32::try_from(start).ok()?,
            raw: raw | if place.escaped { ESCAPED } else { 0 },
            length: length | kind,
        })
    }

    pub(crate) fn start(self) -> usize {
        self.start as usize
    }

    pub(crate) fn kind(self) -> Kind {
        match self.length & (KEY | NUMBER) {
            0 => Kind::Text,
            NUMBER => Kind::Number,
            KEY => Kind::Key,
            _ => Kind::Setting,
        }
    }

    pub(crate) fn place(self) -> Place {
        let start = (self.raw & !ESCAPED) as usize;
        Place {
            raw: start..start + (self.length & !(KEY | NUMBER)) as usize,
            escaped: self.raw & ESCAPED != 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Segment};
    use crate::splice::Place;

    #[test]
    fn what_is_packed_is_what_was_given_up_to_the_bounds() {
        let largest = (1 << 31) - 1;
        for kind in [Kind::Text, Kind::Key, Kind::Number, Kind::Setting] {
            for (start, raw) in [
                (0, 0..0),
                (7, 9..12),
                (u32::MAX as usize, largest..largest + (1 << 30) - 1),
            ] {
                for escaped in [false, true] {
                    let place = Place {
                        raw: raw.clone(),
                        escaped,
                    };
                    let segment = Segment::new(start, &place, kind).unwrap();
                    let unpacked = segment.place();
                    assert_eq!((segment.start(), segment.kind()), (start, kind));
                    assert_eq!((unpacked.raw, unpacked.escaped), (place.raw, escaped));
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
            let place = Place { raw, escaped: false };
            assert!(Segment::new(start, &place, Kind::Text).is_none());
        }
    }
}
