//! Holds and their releases: what the retention job signs of them, in the words of `docs/reference/ledger-format.md`,
//! section 9.

use crate::note::Note;
use crate::statement::{Justification, Lines, MAX_STATEMENT};
use crate::{LedgerError, SigningKey, VerifyingKey};

const HOLD: &str = "proofgate.dev/hold@v1";
const RELEASE: &str = "proofgate.dev/release@v1";
/// Largest scope of a hold, in bytes.
const MAX_SCOPE: usize = 4096;

/// What became of a hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldChange {
    /// It was placed.
    Placed {
        /// What it is about: a JSON object in one line, as the retention job's state has it.
        scope: String,
    },
    /// It was released.
    Released {
        /// When, in unix microseconds.
        at: u64,
    },
}

/// That a hold was placed or released: which one, when, by whom and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldStatement {
    /// Name of the ledger.
    pub ledger: String,
    /// Number of the hold in the retention job's state.
    pub hold: u64,
    /// When it was placed, in unix microseconds.
    pub added: u64,
    /// What became of it.
    pub change: HoldChange,
    /// When this was signed, in unix microseconds: it may be later, as a hold counts before it is stated.
    pub stated: u64,
    /// Who did that, and why.
    pub why: Justification,
}

impl HoldStatement {
    /// When what it speaks of happened, in unix microseconds.
    #[must_use]
    pub fn time(&self) -> u64 {
        match self.change {
            HoldChange::Placed { .. } => self.added,
            HoldChange::Released { at } => at,
        }
    }

    /// The signed text: eight lines with the format's, each with a newline; one more with a ticket.
    #[must_use]
    pub fn body(&self) -> String {
        let (format, change) = match &self.change {
            HoldChange::Placed { scope } => (HOLD, format!("scope {scope}")),
            HoldChange::Released { at } => (RELEASE, format!("released {at}")),
        };
        format!(
            "{format}\n{}\nhold {}\nadded {}\n{change}\nstated {}\n{}",
            self.ledger,
            self.hold,
            self.added,
            self.stated,
            self.why.lines()
        )
    }

    /// The signed note, by the retention key under its own name.
    ///
    /// # Errors
    /// [`LedgerError::StatementMalformed`] when a part of [`Self::why`], or the scope, is not one line of text;
    /// [`LedgerError::Signer`].
    pub fn sign(&self, key: &SigningKey) -> Result<String, LedgerError> {
        self.why.check()?;
        self.check_scope()?;
        key.sign_note(&self.body())
    }

    /// Whether it says that the hold was released before it was placed, or that this was signed before either.
    #[must_use]
    pub fn is_backdated(&self) -> bool {
        self.time() < self.added || self.stated < self.time()
    }

    /// Reads a signed note and checks that the retention key signed it. That its times are in order is for the reader
    /// to [check](Self::is_backdated).
    ///
    /// # Errors
    /// Any refusal of the note, its text or its signature.
    pub fn verify(note: &str, key: &VerifyingKey) -> Result<Self, LedgerError> {
        if note.len() > MAX_STATEMENT {
            return Err(LedgerError::StatementMalformed("larger than 8 KiB"));
        }
        let note = Note::parse(note)?;
        let is_release = note.text.starts_with(RELEASE);
        let mut lines = Lines::of(note.text, if is_release { RELEASE } else { HOLD })?;
        let statement = Self {
            ledger: lines.line()?.to_owned(),
            hold: lines.number("hold")?,
            added: lines.number("added")?,
            change: match is_release {
                true => HoldChange::Released {
                    at: lines.number("released")?,
                },
                false => HoldChange::Placed {
                    scope: lines.value("scope")?.to_owned(),
                },
            },
            stated: lines.number("stated")?,
            why: lines.justification()?,
        };
        statement.check_scope()?;
        note.signer(key, Some(statement.stated))?;
        Ok(statement)
    }

    fn check_scope(&self) -> Result<(), LedgerError> {
        match &self.change {
            HoldChange::Placed { scope }
                if scope.is_empty() || scope.len() > MAX_SCOPE || scope.chars().any(char::is_control) =>
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
            added: 5,
            change,
            stated: 9,
            why: Justification {
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
