//! Tombstones: statements that the retention job signs about logs that it removes, in the format of
//! `docs/reference/ledger-format.md`, section 8.

use crate::checkpoint::parse_hash;
use crate::note::Note;
use crate::statement::{Justification, MAX_STATEMENT_BYTES, StatementReader};
use crate::{Hash, LedgerError, SigningKey, VerifyingKey};
use base64::{Engine, engine::general_purpose::STANDARD};

const FORMAT: &str = "proofgate.dev/tombstone@v2";

/// A statement that a log was removed, with the log's final state and a justification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// Origin of the log: `<ledger>/<shard>/<incarnation>`.
    pub origin: String,
    /// Total number of records in the log.
    pub size: u64,
    /// Root of the log's tree.
    pub root: Hash,
    /// Time of signing the tombstone, in unix microseconds.
    pub removed_at: u64,
    /// Number of admissions in the log.
    pub exchanges: u64,
    /// Time of the log's newest record, in unix microseconds.
    pub newest_time: u64,
    /// Minimum retention of the log's records, in days: the longest minimum among the tenants in
    /// the log.
    pub minimum_days: u64,
    /// Author of the removal, and the reason for it.
    pub justification: Justification,
}

impl Tombstone {
    /// Returns the signed text: ten lines including the format line, or eleven with a ticket. Each
    /// line ends in a newline.
    #[must_use]
    pub fn body(&self) -> String {
        format!(
            "{FORMAT}\n{}\n{}\n{}\nremoved {}\nexchanges {}\nnewest {}\nminimum-days {}\n{}",
            self.origin,
            self.size,
            STANDARD.encode(self.root),
            self.removed_at,
            self.exchanges,
            self.newest_time,
            self.minimum_days,
            self.justification.lines(),
        )
    }

    /// Signs the statement with the retention key under its own name and returns the note.
    ///
    /// # Errors
    /// [`LedgerError::StatementMalformed`] when a part of [`Self::justification`] is not one line of text;
    /// [`LedgerError::SignerFailed`].
    pub fn sign(&self, key: &SigningKey) -> Result<String, LedgerError> {
        self.justification.check()?;
        key.sign_note(&self.body())
    }

    /// Reads a signed note and verifies that the retention key signed it.
    ///
    /// # Errors
    /// Any error in the note, its text or its signature.
    pub fn verify(note: &str, key: &VerifyingKey) -> Result<Self, LedgerError> {
        let tombstone = Self::parse_unverified(note)?;
        Note::parse(note)?.verify_signer(key, Some(tombstone.removed_at))?;
        Ok(tombstone)
    }

    /// Parses a signed note **without verifying it**: no signature is checked.
    ///
    /// # Errors
    /// Any error in the note's form or its text.
    pub fn parse_unverified(note: &str) -> Result<Self, LedgerError> {
        let malformed = LedgerError::StatementMalformed;
        if note.len() > MAX_STATEMENT_BYTES {
            return Err(malformed("larger than 8 KiB"));
        }
        let mut lines = StatementReader::new(Note::parse(note)?.text, FORMAT)?;
        let origin = lines.next_line()?.to_owned();
        if origin.is_empty() {
            return Err(malformed("empty origin"));
        }
        Ok(Self {
            origin,
            size: lines.next_decimal()?,
            root: parse_hash(lines.next_line()?)
                .ok_or(malformed("the root is not 32 bytes of strict base64"))?,
            removed_at: lines.next_number("removed")?,
            exchanges: lines.next_number("exchanges")?,
            newest_time: lines.next_number("newest")?,
            minimum_days: lines.next_number("minimum-days")?,
            justification: lines.into_justification()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Tombstone;
    use crate::{Justification, SigningKey};
    use proptest::prelude::*;

    fn key(name: &str) -> SigningKey {
        SigningKey::generate(name, [3; 32]).unwrap()
    }

    fn tombstone() -> Tombstone {
        Tombstone {
            origin: "a/0/X".to_owned(),
            size: 81,
            root: [7; 32],
            removed_at: 3,
            exchanges: 40,
            newest_time: 2,
            minimum_days: 180,
            justification: Justification {
                author: "officer".to_owned(),
                reason: "the retention of 180 days".to_owned(),
                ticket: None,
            },
        }
    }

    #[test]
    fn what_was_signed_is_read_back_and_no_other_key_is_believed() {
        let note = tombstone().sign(&key("retention")).unwrap();
        let read = Tombstone::verify(&note, &key("retention").verifying_key());
        assert_eq!(read.unwrap(), tombstone());
        for name in ["retention/x", "other"] {
            assert!(Tombstone::verify(&note, &key(name).verifying_key()).is_err());
        }
    }

    #[test]
    fn an_author_a_reason_and_a_ticket_are_each_one_line() {
        type Part = fn(&mut Justification, String);
        let parts: [Part; 3] = [
            |why, text| why.author = text,
            |why, text| why.reason = text,
            |why, text| why.ticket = Some(text),
        ];
        for text in ["", "two\nlines", "\u{7f}", &"x".repeat(513)] {
            for (at, part) in parts.iter().enumerate() {
                let mut tombstone = tombstone();
                part(&mut tombstone.justification, text.to_owned());
                assert!(tombstone.sign(&key("retention")).is_err(), "{at}: {text:?}");
            }
        }
    }

    #[test]
    fn a_ticket_is_signed_behind_the_reason_and_nothing_behind_that() {
        let mut ticketed = tombstone();
        ticketed.justification.ticket = Some("2026-17".to_owned());
        assert!(
            ticketed
                .body()
                .ends_with("author officer\nreason the retention of 180 days\nticket 2026-17\n")
        );
        let note = ticketed.sign(&key("retention")).unwrap();
        let retention = key("retention").verifying_key();
        assert_eq!(Tombstone::verify(&note, &retention).unwrap(), ticketed);
        for line in ["more\n", "ticket again\n"] {
            let longer = key("retention").sign_note(&(ticketed.body() + line)).unwrap();
            assert!(Tombstone::verify(&longer, &retention).is_err(), "{line}");
        }
    }

    #[test]
    fn every_line_decides() {
        let note = tombstone().sign(&key("retention")).unwrap();
        let lines: Vec<&str> = note.split_inclusive('\n').collect();
        for at in 0..lines.len() {
            let mut fewer = lines.clone();
            fewer.remove(at);
            assert!(
                Tombstone::verify(&fewer.concat(), &key("retention").verifying_key()).is_err(),
                "without {:?}",
                lines[at]
            );
        }
    }

    proptest! {
        #[test]
        fn bytes_from_outside_are_read_or_refused(text in "\\PC{0,200}", cut in 0usize..400) {
            let _ = Tombstone::parse_unverified(&text);
            let note = tombstone().sign(&key("retention")).unwrap();
            let cut = (0..=cut.min(note.len())).rev().find(|at| note.is_char_boundary(*at)).unwrap();
            prop_assert!(cut == note.len() || Tombstone::parse_unverified(&note[..cut]).is_err());
        }
    }
}
