//! A checkpoint as a witness receives it: signed by any key, possibly with extension lines.

use crate::note::{Note, signature_line};
use crate::{Checkpoint, LedgerError, VerifyingKey};

/// The signed note of a checkpoint, parsed but not verified.
pub struct SignedCheckpoint<'a> {
    pub(crate) note: Note<'a>,
    checkpoint: Checkpoint,
}

impl<'a> SignedCheckpoint<'a> {
    /// Parses a note without verifying signatures.
    ///
    /// # Errors
    /// Any error in the note's form or in the checkpoint text.
    pub fn parse(note: &'a str) -> Result<Self, LedgerError> {
        let note = Note::parse(note)?;
        let (checkpoint, extensions) = Checkpoint::parse_extended(note.text)?;
        if extensions.starts_with('\n') || extensions.contains("\n\n") {
            return Err(LedgerError::CheckpointMalformed("an extension line is empty"));
        }
        Ok(Self { note, checkpoint })
    }

    /// Returns the signed text, including its last newline.
    #[must_use]
    pub fn text(&self) -> &'a str {
        self.note.text
    }

    /// Returns the checkpoint, without its extension lines.
    #[must_use]
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// Verifies that a log's key signed the checkpoint under the key's own name. Signatures by
    /// other keys are ignored.
    ///
    /// # Errors
    /// [`LedgerError::NoteUnsigned`], [`LedgerError::BadSignature`].
    pub fn verify(&self, key: &VerifyingKey) -> Result<(), LedgerError> {
        self.note.verify(key)
    }

    /// Returns the signature lines by a log's key, verbatim and not verified.
    #[must_use]
    pub fn signature_lines_by(&self, key: &VerifyingKey) -> String {
        let signatures = self.note.signatures_by(key.name(), key.id());
        signatures
            .map(|signature| signature_line(key.name(), key.id(), signature))
            .collect()
    }
}
