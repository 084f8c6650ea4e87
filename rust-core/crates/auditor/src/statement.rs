//! Statements that the retention job signed. The auditor reports their digests, so that the
//! aggregate log proves a time at which each statement existed.

use crate::finding::FindingCode;
use serde::{Deserialize, Serialize};

/// Largest time by which a statement's time may be before the last check that did not find the
/// statement, or ahead of the auditor's clock, in microseconds. It exceeds the clock differences
/// within a cluster, and the time for which a network file system returns an old listing.
pub const STATEMENT_TOLERANCE: u64 = 600_000_000;

/// The kind of a statement. Tombstones are reported as entries about the removed log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatementKind {
    /// A hold was placed.
    Hold,
    /// A hold was released.
    Release,
    /// Salts of a log were destroyed.
    Erasure,
    /// A shred key was destroyed.
    KeyDestruction,
}

/// A statement as it is in an entry of the aggregate log. The author and the reason are only in the
/// signed note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statement {
    /// The kind of the statement.
    pub kind: StatementKind,
    /// SHA-256 of the signed note, in 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Time of signing according to the statement, in unix microseconds.
    pub signed: u64,
    /// Number of the hold, for a hold or a release; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<u64>,
    /// Number of the admission, for an erasure of one exchange; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub admission: Option<u64>,
    /// Id of the shred key, for a key destruction; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Returns the problem with the time in a statement, if any. `about` is the time of the events to
/// which the statement refers, if known. `visited` is the time of the last check that did not find
/// the statement; 0 for never.
pub(crate) fn check_time(
    signed: u64,
    about: Option<u64>,
    visited: u64,
    now: u64,
) -> Option<(FindingCode, String)> {
    if let Some(about) = about.filter(|about| signed < *about) {
        let message = format!(
            "it states the signing time {signed}, but the data that it refers to is dated {about} (unix microseconds)"
        );
        return Some((FindingCode::StatementBackdated, message));
    }
    if signed.saturating_add(STATEMENT_TOLERANCE) < visited {
        let message = format!(
            "it states the signing time {signed}, but it did not exist when the auditor checked at {visited} (unix microseconds)"
        );
        return Some((FindingCode::StatementBackdated, message));
    }
    (signed > now.saturating_add(STATEMENT_TOLERANCE)).then(|| {
        let message =
            format!("its signing time {signed} is in the future: the time is now {now} (unix microseconds)");
        (FindingCode::StatementPostdated, message)
    })
}

#[cfg(test)]
mod tests {
    use super::{STATEMENT_TOLERANCE as TOLERANCE, check_time};
    use crate::FindingCode;

    #[test]
    fn a_time_is_between_what_it_speaks_of_and_the_auditors_clock() {
        let code =
            |signed, about, visited, now| check_time(signed, about, visited, now).map(|(code, _)| code);
        let now = 10 * TOLERANCE;
        assert_eq!(code(5, Some(5), 0, now), None, "it was never looked for");
        assert_eq!(code(4, Some(5), 0, now), Some(FindingCode::StatementBackdated));
        assert_eq!(code(4, None, 4 + TOLERANCE, now), None);
        assert_eq!(
            code(4, None, 5 + TOLERANCE, now),
            Some(FindingCode::StatementBackdated)
        );
        assert_eq!(code(now + TOLERANCE, None, now, now), None);
        assert_eq!(
            code(now + TOLERANCE + 1, None, now, now),
            Some(FindingCode::StatementPostdated)
        );
    }
}
