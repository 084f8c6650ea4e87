//! Key successions: statements, signed by both keys, that one key succeeds another key of the same
//! name. `docs/reference/ledger-format.md`, section 10, defines their format.
//!
//! The old key signs to name its successor, and the new key signs to accept. A reader who trusts
//! one of the keys can therefore trust the other. Someone who can write to the volume cannot
//! introduce a key, and the holder of one key cannot declare another key its predecessor.

use crate::note::{Note, signature_line};
use crate::statement::{MAX_STATEMENT_BYTES, StatementReader};
use crate::{LedgerError, SigningKey, VerifyingKey};

const FORMAT: &str = "proofgate.dev/key-succession@v1";

/// A statement that one key succeeds another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySuccession {
    /// The key that is replaced.
    pub old_key: VerifyingKey,
    /// The key that replaces it, under the same name.
    pub new_key: VerifyingKey,
    /// Time of signing, in unix microseconds.
    pub signed_at: u64,
    /// The last moment at which the old key may start a log, remove one or erase salts, in unix microseconds.
    pub valid_until: u64,
}

impl KeySuccession {
    /// Signs the statement with both keys under their name and returns the note.
    ///
    /// # Errors
    /// [`LedgerError::StatementMalformed`] when the keys have different names or are the same key, or `until` is before
    /// `made`; [`LedgerError::SignerFailed`].
    pub fn sign(old: &SigningKey, new: &SigningKey, made: u64, until: u64) -> Result<String, LedgerError> {
        let succession = Self {
            old_key: old.verifying_key(),
            new_key: new.verifying_key(),
            signed_at: made,
            valid_until: until,
        };
        succession.check()?;
        let text = succession.body();
        let line = |key: &SigningKey, public: &VerifyingKey| -> Result<String, LedgerError> {
            Ok(signature_line(
                key.name(),
                public.id(),
                &key.sign_bytes(text.as_bytes())?.to_bytes(),
            ))
        };
        let (first, second) = (line(old, &succession.old_key)?, line(new, &succession.new_key)?);
        Ok(format!("{text}\n{first}{second}"))
    }

    /// Returns the signed text: five lines including the format line, each with a newline.
    #[must_use]
    pub fn body(&self) -> String {
        format!(
            "{FORMAT}\nold {}\nnew {}\nmade {}\nuntil {}\n",
            self.old_key.to_text(),
            self.new_key.to_text(),
            self.signed_at,
            self.valid_until
        )
    }

    /// Parses a signed note and verifies that both keys named in it signed it.
    /// [`VerifyingKey::with_successions`] decides whether these keys are trusted.
    ///
    /// # Errors
    /// Any error in the note, its text or one of its two signatures.
    pub fn verify(note: &str) -> Result<Self, LedgerError> {
        if note.len() > MAX_STATEMENT_BYTES {
            return Err(LedgerError::StatementMalformed("larger than 8 KiB"));
        }
        let note = Note::parse(note)?;
        let mut lines = StatementReader::new(note.text, FORMAT)?;
        let succession = Self {
            old_key: VerifyingKey::from_text(lines.next_value("old")?)?,
            new_key: VerifyingKey::from_text(lines.next_value("new")?)?,
            signed_at: lines.next_number("made")?,
            valid_until: lines.next_number("until")?,
        };
        lines.finish()?;
        succession.check()?;
        note.verify(&succession.old_key)?;
        note.verify(&succession.new_key)?;
        Ok(succession)
    }

    /// Splits concatenated notes, which may have blank lines between them. Each returned note has
    /// its final newline. Text before the first note becomes part of the first element.
    #[must_use]
    pub fn split_notes(text: &str) -> Vec<String> {
        let begin = format!("\n{FORMAT}\n");
        let mut notes = Vec::new();
        let mut rest = text.trim_matches('\n');
        while !rest.is_empty() {
            let end = rest.find(&begin).map_or(rest.len(), |at| at + 1);
            let (note, behind) = rest.split_at(end);
            notes.push(format!("{}\n", note.trim_end_matches('\n')));
            rest = behind;
        }
        notes
    }

    fn check(&self) -> Result<(), LedgerError> {
        let malformed = LedgerError::StatementMalformed;
        if self.old_key.name() != self.new_key.name() {
            return Err(malformed("the two keys have different names"));
        }
        if self.old_key.is_same_key(&self.new_key) {
            return Err(malformed("the two keys are the same"));
        }
        match self.signed_at <= self.valid_until {
            true => Ok(()),
            false => Err(malformed("the old key ends before the time of the statement")),
        }
    }
}

#[cfg(test)]
mod tests;
