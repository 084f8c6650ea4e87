//! C2SP signed notes (c2sp.org/signed-note).

use crate::key_text::check_name;
use crate::{LedgerError, SigningKey, VerifyingKey};
use base64::{Engine, engine::general_purpose::STANDARD};

/// Largest note that is parsed, in bytes. A note of this size can contain sixteen ML-DSA-44
/// cosignatures.
pub const MAX_NOTE_BYTES: usize = 64 * 1024;
/// Most signature lines that are parsed: enough for the log and every witness that a policy may
/// name.
pub const MAX_SIGNATURES: usize = 64;

pub(crate) const SIGNATURE_PREFIX: &str = "\u{2014} ";

impl SigningKey {
    /// Signs a note text, which must end in a newline, and returns the whole signed note.
    ///
    /// # Errors
    /// [`LedgerError::SignerFailed`].
    pub(crate) fn sign_note(&self, text: &str) -> Result<String, LedgerError> {
        let signature = self.sign_bytes(text.as_bytes())?.to_bytes();
        let line = signature_line(self.name(), self.verifying_key().id(), &signature);
        Ok(format!("{text}\n{line}"))
    }
}

/// A signed note, parsed but not verified.
pub(crate) struct Note<'a> {
    /// The signed text, including its last newline.
    pub(crate) text: &'a str,
    signatures: Vec<(&'a str, Vec<u8>)>,
}

impl<'a> Note<'a> {
    /// Parses a note without checking a signature.
    pub(crate) fn parse(note: &'a str) -> Result<Self, LedgerError> {
        let malformed = LedgerError::NoteMalformed;
        if note.len() > MAX_NOTE_BYTES {
            return Err(malformed("larger than 64 KiB"));
        }
        if note.chars().any(|c| c.is_control() && c != '\n') {
            return Err(malformed("contains a control character"));
        }
        // The signatures follow the last blank line; earlier ones belong to the text.
        let blank = note
            .rfind("\n\n")
            .ok_or(malformed("no blank line before the signatures"))?;
        let (text, signatures) = (&note[..=blank], &note[blank + 2..]);
        let lines = signatures
            .strip_suffix('\n')
            .ok_or(malformed("does not end in a newline"))?;
        let mut found = Vec::new();
        for line in lines.split('\n') {
            if found.len() == MAX_SIGNATURES {
                return Err(malformed("more than 64 signatures"));
            }
            let (name, body) = line
                .strip_prefix(SIGNATURE_PREFIX)
                .and_then(|line| line.split_once(' '))
                .ok_or(malformed("a signature line is malformed"))?;
            check_name(name).map_err(|_| malformed("a signature has no valid key name"))?;
            let body = STANDARD
                .decode(body)
                .map_err(|_| malformed("a signature is not strict base64"))?;
            if body.len() < 5 {
                return Err(malformed("a signature is too short"));
            }
            found.push((name, body));
        }
        Ok(Self {
            text,
            signatures: found,
        })
    }

    /// Returns the bytes after the key id in each signature line that claims to be by a key of this name and id.
    pub(crate) fn signatures_by(&self, name: &str, id: [u8; 4]) -> impl Iterator<Item = &[u8]> {
        self.signatures
            .iter()
            .filter_map(move |(signer, body)| body.strip_prefix(&id).filter(|_| *signer == name))
    }

    /// Verifies every signature line that claims to be by `key` or a key of its lineage; there must be at least one.
    /// Lines of other keys are ignored, because witnesses add lines.
    pub(crate) fn verify(&self, key: &VerifyingKey) -> Result<(), LedgerError> {
        self.verify_signer(key, None).map(drop)
    }

    /// Same as [`Self::verify`], for a subject that started at `at` (unix microseconds; `None` if
    /// unknown). Returns the key that signed, without its lineage. If several keys of the lineage
    /// signed, returns the newest of them.
    pub(crate) fn verify_signer(
        &self,
        key: &VerifyingKey,
        at: Option<u64>,
    ) -> Result<VerifyingKey, LedgerError> {
        let mut signer = None;
        for member in key.lineage() {
            for signature in self.signatures_by(member.key.name(), member.key.id()) {
                member.key.verify_bytes(self.text.as_bytes(), signature)?;
                signer = Some(member.clone());
            }
        }
        let signer = signer.ok_or_else(|| LedgerError::NoteUnsigned(key.name().to_owned()))?;
        match signer.valid_until.zip(at) {
            Some((until, at)) if at > until => Err(LedgerError::KeySuperseded(signer.key.to_text())),
            _ => Ok(signer.key),
        }
    }
}

/// Removes other signature lines from a note. The result has the text and the first signature line
/// by the newest signer in `key`'s lineage.
///
/// # Errors
/// Any error in the note, or in a signature that claims to be by the key.
pub fn strip_other_signatures(note: &str, key: &VerifyingKey) -> Result<String, LedgerError> {
    let note = Note::parse(note)?;
    let signer = note.verify_signer(key, None)?;
    let line = note
        .signatures_by(signer.name(), signer.id())
        .next()
        .map(|signature| signature_line(signer.name(), signer.id(), signature));
    Ok(format!("{}\n{}", note.text, line.unwrap_or_default()))
}

/// Formats a signature line: the key's name, and the base64 of its id and the bytes after the id.
pub(crate) fn signature_line(name: &str, id: [u8; 4], signature: &[u8]) -> String {
    let body = STANDARD.encode([&id, signature].concat());
    format!("{SIGNATURE_PREFIX}{name} {body}\n")
}

#[cfg(test)]
mod tests;
