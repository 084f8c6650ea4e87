//! Names of segments, and how large they can be.

/// Most bytes of a segment: no writer makes a longer one.
pub const MAX_SEGMENT_BYTES: u64 = 1 << 30;

/// Name of the segment whose first record is `first_seq`.
#[must_use]
pub fn segment_name(first_seq: u64) -> String {
    format!("{first_seq:020}.seg")
}

/// Name of a segment that is prepared and holds no followed record yet. Its first record is not known when it is made,
/// so the ledger thread gives it its lasting name when it first reads from it.
#[must_use]
pub fn prepared_name(ordinal: u64) -> String {
    format!("{ordinal:020}.next")
}

/// What a file name says about a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SegmentName {
    /// A segment whose first record has this number.
    First(u64),
    /// A prepared segment of this ordinal, which may hold records already.
    Prepared(u64),
}

impl SegmentName {
    /// Reads a file name; `None` for one that is no segment's.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (number, kind) = name.split_once('.')?;
        if number.len() != 20 || !number.bytes().all(|c| c.is_ascii_digit()) {
            return None;
        }
        let number = number.parse().ok()?;
        match kind {
            "seg" => Some(Self::First(number)),
            "next" => Some(Self::Prepared(number)),
            _ => None,
        }
    }
}
