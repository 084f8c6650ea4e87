//! Export notes: a signed note (c2sp.org/signed-note) over the SHA-256 of an export's manifest
//! proves whose key signed the export.
//!
//! ```text
//! proofgate/v1/export
//! sha256 <64 hexadecimal digits>
//!
//! — <key name> <base64>
//! ```
//!
//! The second line is not a number, so that the note can never be mistaken for a checkpoint.

use crate::note::Note;
use crate::{Hash, LedgerError, SigningKey, VerifyingKey};
use std::fmt::Write;

fn note_text(manifest: &Hash) -> String {
    let mut text = "proofgate/v1/export\nsha256 ".to_owned();
    for byte in manifest {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text.push('\n');
    text
}

impl SigningKey {
    /// Signs a manifest by its SHA-256 and returns the note.
    ///
    /// # Errors
    /// [`LedgerError::SignerFailed`].
    pub fn sign_export(&self, manifest: &Hash) -> Result<String, LedgerError> {
        self.sign_note(&note_text(manifest))
    }
}

impl VerifyingKey {
    /// Verifies that this key signed the manifest with this SHA-256.
    ///
    /// # Errors
    /// Any error in the note or its signature; [`LedgerError::NoteMalformed`] when it does not
    /// cover this manifest.
    pub fn verify_export(&self, note: &str, manifest: &Hash) -> Result<(), LedgerError> {
        let note = Note::parse(note)?;
        note.verify(self)?;
        match note.text == note_text(manifest) {
            true => Ok(()),
            false => Err(LedgerError::NoteMalformed("it signs another manifest")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Checkpoint;

    #[test]
    fn an_export_is_signed_by_one_key_for_one_manifest() -> Result<(), LedgerError> {
        let key = SigningKey::generate("example.com/exports", [3; 32])?;
        let other = SigningKey::generate("example.com/exports", [4; 32])?;
        let note = key.sign_export(&[1; 32])?;
        key.verifying_key().verify_export(&note, &[1; 32])?;
        assert!(key.verifying_key().verify_export(&note, &[2; 32]).is_err());
        assert!(other.verifying_key().verify_export(&note, &[1; 32]).is_err());
        assert!(Checkpoint::verify(&note, &key.verifying_key()).is_err());
        let checkpoint = Checkpoint {
            origin: key.name().to_owned(),
            size: 1,
            root: [1; 32],
        };
        let checkpoint = checkpoint.sign(&key)?;
        assert!(key.verifying_key().verify_export(&checkpoint, &[1; 32]).is_err());
        Ok(())
    }
}
