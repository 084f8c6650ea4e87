//! Names and sizes of segments.

/// Largest size of a segment, in bytes.
pub const MAX_SEGMENT_BYTES: u64 = 1 << 30;

/// Returns the name of the segment whose first record is `first_seq`.
#[must_use]
pub fn segment_name(first_seq: u64) -> String {
    format!("{first_seq:020}.seg")
}

/// Returns the name of a prepared segment that the ledger thread has not read from yet. The first
/// record of a segment is not known when the segment is created, so the ledger thread renames the
/// segment when it first reads from it.
#[must_use]
pub fn prepared_name(ordinal: u64) -> String {
    format!("{ordinal:020}.next")
}

/// A parsed segment file name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SegmentName {
    /// A segment whose first record has this number.
    FirstSeq(u64),
    /// A prepared segment with this ordinal, which may already hold records.
    Prepared(u64),
}

impl SegmentName {
    /// Parses a file name; `None` when it is not the name of a segment.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (number, kind) = name.split_once('.')?;
        if number.len() != 20 || !number.bytes().all(|c| c.is_ascii_digit()) {
            return None;
        }
        let number = number.parse().ok()?;
        match kind {
            "seg" => Some(Self::FirstSeq(number)),
            "next" => Some(Self::Prepared(number)),
            _ => None,
        }
    }
}
