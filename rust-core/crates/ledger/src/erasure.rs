//! Erasures: statements that the retention job signs about salts that it destroys, in the format of
//! `docs/reference/ledger-format.md`, section 9.

use crate::checkpoint::parse_decimal;
use crate::note::Note;
use crate::statement::{Justification, MAX_STATEMENT_BYTES, StatementReader, check_reason};
use crate::{LedgerError, SigningKey, VerifyingKey};

const FORMAT: &str = "proofgate.dev/erasure@v2";

/// The admissions of a log that an erasure covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErasureScope {
    /// The admission with this record number.
    Single(u64),
    /// The admissions of a tenant up to a time, in unix microseconds.
    Tenant {
        /// Name of the tenant.
        name: String,
        /// Time up to which the tenant's admissions are covered.
        until: u64,
    },
}

/// A statement that the salts of certain admissions of a log were destroyed, when, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// Origin of the log: `<ledger>/<shard>/<incarnation>`.
    pub origin: String,
    /// Total number of records in the log.
    pub size: u64,
    /// Time of signing, in unix microseconds.
    pub time: u64,
    /// Number of covered admissions.
    pub exchanges: u64,
    /// The covered admissions.
    pub scope: ErasureScope,
    /// Author of the erasure, and the reason for it.
    pub justification: Justification,
}

impl Erasure {
    /// Returns whether the erasure covers the admission with this record number, tenant and time.
    #[must_use]
    pub fn covers(&self, seq: u64, tenant: &str, ts: u64) -> bool {
        seq < self.size
            && match &self.scope {
                ErasureScope::Single(one) => *one == seq,
                ErasureScope::Tenant { name, until } => name == tenant && ts <= *until,
            }
    }

    /// Returns the signed text: eight lines including the format line, or nine with a ticket. Each
    /// line ends in a newline.
    #[must_use]
    pub fn body(&self) -> String {
        let what = match &self.scope {
            ErasureScope::Single(seq) => format!("salt {seq}"),
            ErasureScope::Tenant { name, until } => format!("tenant {until} {name}"),
        };
        format!(
            "{FORMAT}\n{}\n{}\nerased {}\nexchanges {}\n{what}\n{}",
            self.origin,
            self.size,
            self.time,
            self.exchanges,
            self.justification.lines()
        )
    }

    /// Signs the statement with the retention key under its own name and returns the note.
    ///
    /// # Errors
    /// [`LedgerError::StatementMalformed`] when a part of [`Self::justification`], or the tenant's name, is not one
    /// line of text; [`LedgerError::SignerFailed`].
    pub fn sign(&self, key: &SigningKey) -> Result<String, LedgerError> {
        self.justification.check()?;
        if let ErasureScope::Tenant { name, .. } = &self.scope {
            check_reason(name)?;
        }
        key.sign_note(&self.body())
    }

    /// Reads a signed note and verifies that the retention key signed it.
    ///
    /// # Errors
    /// Any error in the note, its text or its signature.
    pub fn verify(note: &str, key: &VerifyingKey) -> Result<Self, LedgerError> {
        let malformed = LedgerError::StatementMalformed;
        if note.len() > MAX_STATEMENT_BYTES {
            return Err(malformed("larger than 8 KiB"));
        }
        let note = Note::parse(note)?;
        let mut lines = StatementReader::new(note.text, FORMAT)?;
        let erasure = Self {
            origin: lines.next_line()?.to_owned(),
            size: lines.next_decimal()?,
            time: lines.next_number("erased")?,
            exchanges: lines.next_number("exchanges")?,
            scope: parse_scope(lines.next_line()?)
                .ok_or(malformed("it does not say which admissions were erased"))?,
            justification: lines.into_justification()?,
        };
        note.verify_signer(key, Some(erasure.time))?;
        Ok(erasure)
    }
}

fn parse_scope(line: &str) -> Option<ErasureScope> {
    if let Some(seq) = line.strip_prefix("salt ") {
        return parse_decimal(seq).map(ErasureScope::Single);
    }
    let (until, name) = line.strip_prefix("tenant ")?.split_once(' ')?;
    let name = Some(name).filter(|name| !name.is_empty())?.to_owned();
    let until = parse_decimal(until)?;
    Some(ErasureScope::Tenant { name, until })
}

#[cfg(test)]
mod tests {
    use super::{Erasure, ErasureScope};
    use crate::{Justification, SigningKey};
    use proptest::prelude::*;

    fn key(name: &str) -> SigningKey {
        SigningKey::generate(name, [3; 32]).unwrap()
    }

    fn erasure(erased: ErasureScope) -> Erasure {
        Erasure {
            origin: "a/0/X".to_owned(),
            size: 81,
            time: 3,
            exchanges: 1,
            scope: erased,
            justification: Justification {
                author: "officer".to_owned(),
                reason: "asked for on paper".to_owned(),
                ticket: Some("R-7".to_owned()),
            },
        }
    }

    fn of(name: &str) -> ErasureScope {
        ErasureScope::Tenant {
            name: name.to_owned(),
            until: 9,
        }
    }

    #[test]
    fn what_was_signed_is_read_back_and_no_other_key_is_believed() {
        for erased in [
            ErasureScope::Single(0),
            ErasureScope::Single(u64::MAX),
            of("acme"),
            of("two words"),
        ] {
            let note = erasure(erased.clone()).sign(&key("retention")).unwrap();
            let read = Erasure::verify(&note, &key("retention").verifying_key()).unwrap();
            assert_eq!(read, erasure(erased));
            assert!(Erasure::verify(&note, &key("other").verifying_key()).is_err());
        }
        assert!(erasure(of("")).sign(&key("retention")).is_err());
        assert!(erasure(of("a\nb")).sign(&key("retention")).is_err());
    }

    #[test]
    fn it_is_about_what_it_names_and_nothing_else() {
        let one = erasure(ErasureScope::Single(4));
        assert!(one.covers(4, "acme", 1) && !one.covers(5, "acme", 1));
        let all = erasure(of("acme"));
        assert!(all.covers(5, "acme", 9) && all.covers(80, "acme", 0));
        assert!(!all.covers(5, "acme", 10) && !all.covers(5, "globex", 1) && !all.covers(81, "acme", 1));
    }

    proptest! {
        #[test]
        fn bytes_from_outside_are_read_or_refused(text in "\\PC{0,200}") {
            let _ = Erasure::verify(&text, &key("retention").verifying_key());
            let signed = key("retention").sign_note(&format!("{text}\n")).unwrap();
            let _ = Erasure::verify(&signed, &key("retention").verifying_key());
        }
    }
}
