//! Key successions: that a key gives way to another one of the same name, signed by both; in the words of
//! `docs/reference/ledger-format.md`, section 10.
//!
//! The old key says who speaks after it, and the new one that it takes this on: whoever knows either learns the other.
//! So a writer of the volume plants no key of his own, and a holder of some key makes nobody its predecessor.

use crate::note::{Note, signature_line};
use crate::statement::{Lines, MAX_STATEMENT};
use crate::{LedgerError, SigningKey, VerifyingKey};

const FORMAT: &str = "proofgate.dev/key-succession@v1";

/// That one key follows another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySuccession {
    /// The key that ends.
    pub old: VerifyingKey,
    /// The key that follows it, under the same name.
    pub new: VerifyingKey,
    /// When it was signed, in unix microseconds.
    pub made: u64,
    /// The last moment at which the old key may begin a log, remove one or erase salts, in unix microseconds.
    pub until: u64,
}

impl KeySuccession {
    /// The signed note, by both keys under their name.
    ///
    /// # Errors
    /// [`LedgerError::StatementMalformed`] when the keys have different names or are one key, or `until` is before `made`;
    /// [`LedgerError::Signer`].
    pub fn sign(old: &SigningKey, new: &SigningKey, made: u64, until: u64) -> Result<String, LedgerError> {
        let succession = Self {
            old: old.verifying_key(),
            new: new.verifying_key(),
            made,
            until,
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
        let (first, second) = (line(old, &succession.old)?, line(new, &succession.new)?);
        Ok(format!("{text}\n{first}{second}"))
    }

    /// The signed text: five lines with the format's, each with a newline.
    #[must_use]
    pub fn body(&self) -> String {
        format!(
            "{FORMAT}\nold {}\nnew {}\nmade {}\nuntil {}\n",
            self.old.to_text(),
            self.new.to_text(),
            self.made,
            self.until
        )
    }

    /// Reads a signed note and checks that both keys that it names signed it. Whether one of them is to be believed is for
    /// [`VerifyingKey::with_successions`] to say.
    ///
    /// # Errors
    /// Any refusal of the note, its text or one of its two signatures.
    pub fn verify(note: &str) -> Result<Self, LedgerError> {
        if note.len() > MAX_STATEMENT {
            return Err(LedgerError::StatementMalformed("larger than 8 KiB"));
        }
        let note = Note::parse(note)?;
        let mut lines = Lines::of(note.text, FORMAT)?;
        let succession = Self {
            old: VerifyingKey::from_text(lines.value("old")?)?,
            new: VerifyingKey::from_text(lines.value("new")?)?,
            made: lines.number("made")?,
            until: lines.number("until")?,
        };
        lines.end()?;
        succession.check()?;
        note.verify(&succession.old)?;
        note.verify(&succession.new)?;
        Ok(succession)
    }

    /// Takes notes apart that stand one behind the other, with or without blank lines between them, each with the newline
    /// at its end. What stands before the first of them is the first part of the answer.
    #[must_use]
    pub fn split(text: &str) -> Vec<String> {
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
        if self.old.name() != self.new.name() {
            return Err(malformed("the two keys have different names"));
        }
        if self.old.is_same_point(&self.new) {
            return Err(malformed("the two keys are the same"));
        }
        match self.made <= self.until {
            true => Ok(()),
            false => Err(malformed("the old key ends before the time of the statement")),
        }
    }
}

#[cfg(test)]
mod tests;
