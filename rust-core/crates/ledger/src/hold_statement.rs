//! Hold statements, which the retention job signs when a hold is placed or released, in the format
//! of `docs/reference/ledger-format.md`, section 9.

use crate::note::Note;
use crate::statement::{Justification, MAX_STATEMENT_BYTES, StatementReader};
use crate::{LedgerError, SigningKey, VerifyingKey};

const HOLD_FORMAT: &str = "proofgate.dev/hold@v1";
const RELEASE_FORMAT: &str = "proofgate.dev/release@v1";
/// Largest scope of a hold, in bytes.
const MAX_SCOPE_BYTES: usize = 4096;

/// A change of a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldChange {
    /// The hold was placed.
    Placed {
        /// Scope of the hold: a JSON object on one line, as in the retention job's state.
        scope: String,
    },
    /// The hold was released.
    Released {
        /// Time of the release, in unix microseconds.
        at: u64,
    },
}

/// A statement that a hold was placed or released, when, by whom and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldStatement {
    /// Name of the ledger.
    pub ledger: String,
    /// Number of the hold in the retention job's state.
    pub hold: u64,
    /// Time at which the hold was placed, in unix microseconds.
    pub placed_at: u64,
    /// Whether it was placed or released.
    pub change: HoldChange,
    /// Time of signing, in unix microseconds. A hold takes effect before its statement is signed,
    /// so this time may be later than the time of the change.
    pub signed_at: u64,
    /// Author of the change, and the reason for it.
    pub justification: Justification,
}

impl HoldStatement {
    /// Returns the time at which the hold was placed or released, in unix microseconds.
    #[must_use]
    pub fn time(&self) -> u64 {
        match self.change {
            HoldChange::Placed { .. } => self.placed_at,
            HoldChange::Released { at } => at,
        }
    }

    /// Returns the signed text: eight lines including the format line, or nine with a ticket. Each
    /// line ends in a newline.
    #[must_use]
    pub fn body(&self) -> String {
        let (format, change) = match &self.change {
            HoldChange::Placed { scope } => (HOLD_FORMAT, format!("scope {scope}")),
            HoldChange::Released { at } => (RELEASE_FORMAT, format!("released {at}")),
        };
        format!(
            "{format}\n{}\nhold {}\nadded {}\n{change}\nstated {}\n{}",
            self.ledger,
            self.hold,
            self.placed_at,
            self.signed_at,
            self.justification.lines()
        )
    }

    /// Signs the statement with the retention key under its own name and returns the note.
    ///
    /// # Errors
    /// [`LedgerError::StatementMalformed`] when a part of [`Self::justification`], or the scope, is not one line of text;
    /// [`LedgerError::SignerFailed`].
    pub fn sign(&self, key: &SigningKey) -> Result<String, LedgerError> {
        self.justification.check()?;
        self.check_scope()?;
        key.sign_note(&self.body())
    }

    /// Returns whether the hold was released before it was placed, or the statement was signed
    /// before the placing or the release.
    #[must_use]
    pub fn is_backdated(&self) -> bool {
        self.time() < self.placed_at || self.signed_at < self.time()
    }

    /// Reads a signed note and verifies that the retention key signed it. The caller must [check](Self::is_backdated)
    /// that its times are in order.
    ///
    /// # Errors
    /// Any error in the note, its text or its signature.
    pub fn verify(note: &str, key: &VerifyingKey) -> Result<Self, LedgerError> {
        if note.len() > MAX_STATEMENT_BYTES {
            return Err(LedgerError::StatementMalformed("larger than 8 KiB"));
        }
        let note = Note::parse(note)?;
        let is_release = note.text.starts_with(RELEASE_FORMAT);
        let mut lines =
            StatementReader::new(note.text, if is_release { RELEASE_FORMAT } else { HOLD_FORMAT })?;
        let statement = Self {
            ledger: lines.next_line()?.to_owned(),
            hold: lines.next_number("hold")?,
            placed_at: lines.next_number("added")?,
            change: match is_release {
                true => HoldChange::Released {
                    at: lines.next_number("released")?,
                },
                false => HoldChange::Placed {
                    scope: lines.next_value("scope")?.to_owned(),
                },
            },
            signed_at: lines.next_number("stated")?,
            justification: lines.into_justification()?,
        };
        statement.check_scope()?;
        note.verify_signer(key, Some(statement.signed_at))?;
        Ok(statement)
    }

    fn check_scope(&self) -> Result<(), LedgerError> {
        match &self.change {
            HoldChange::Placed { scope }
                if scope.is_empty()
                    || scope.len() > MAX_SCOPE_BYTES
                    || scope.chars().any(char::is_control) =>
            {
                Err(LedgerError::StatementMalformed(
                    "a hold's scope must be one line of 1 to 4096 bytes",
                ))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HoldChange, HoldStatement};
    use crate::{Justification, SigningKey};
    use proptest::prelude::*;

    fn key(name: &str) -> SigningKey {
        SigningKey::generate(name, [3; 32]).unwrap()
    }

    fn statement(change: HoldChange) -> HoldStatement {
        HoldStatement {
            ledger: "proofgate.dev/team/llm".to_owned(),
            hold: 3,
            placed_at: 5,
            change,
            signed_at: 9,
            justification: Justification {
                author: "officer".to_owned(),
                reason: "litigation".to_owned(),
                ticket: Some("2026-17".to_owned()),
            },
        }
    }

    fn placed(scope: &str) -> HoldStatement {
        let scope = scope.to_owned();
        statement(HoldChange::Placed { scope })
    }

    #[test]
    fn what_was_signed_is_read_back_and_no_other_key_is_believed() {
        let text = "proofgate.dev/release@v1\nproofgate.dev/team/llm\nhold 3\nadded 5\nreleased 9\nstated 9\nauthor officer\n\
                    reason litigation\nticket 2026-17\n\n";
        let released = statement(HoldChange::Released { at: 9 });
        assert!(released.sign(&key("retention")).unwrap().starts_with(text));
        for statement in [released, placed(r#"{"tenant":"acme"}"#)] {
            let note = statement.sign(&key("retention")).unwrap();
            let read = HoldStatement::verify(&note, &key("retention").verifying_key()).unwrap();
            assert_eq!(read, statement);
            assert!(HoldStatement::verify(&note, &key("other").verifying_key()).is_err());
        }
    }

    #[test]
    fn a_release_before_the_hold_is_told_and_a_scope_of_two_lines_is_not_signed() {
        assert!(statement(HoldChange::Released { at: 4 }).is_backdated());
        assert!(!statement(HoldChange::Released { at: 5 }).is_backdated());
        assert!(
            statement(HoldChange::Released { at: 10 }).is_backdated(),
            "stated before"
        );
        for scope in ["", "{\n}", &"x".repeat(4097)] {
            assert!(placed(scope).sign(&key("retention")).is_err());
        }
    }

    proptest! {
        #[test]
        fn bytes_from_outside_are_read_or_refused(text in "\\PC{0,200}") {
            let _ = HoldStatement::verify(&text, &key("retention").verifying_key());
            let signed = key("retention").sign_note(&format!("{text}\n")).unwrap();
            let _ = HoldStatement::verify(&signed, &key("retention").verifying_key());
        }
    }
}
