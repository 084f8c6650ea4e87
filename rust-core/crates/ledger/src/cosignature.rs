//! Cosignatures: what a witness adds to a checkpoint once it has seen that the log only grew
//! (c2sp.org/tlog-cosignature, the type `cosignature/v1` with Ed25519).
//!
//! A cosignature signs the checkpoint's text together with a time: as of then, nothing larger was seen of that log.

use crate::note::signature_line;
use crate::{CosignatureKey, CosigningKey, LedgerError, SignedCheckpoint};
use ed25519_dalek::Signature;

impl CosigningKey {
    /// Cosigns a checkpoint's text as of a time in unix seconds.
    ///
    /// # Errors
    /// [`LedgerError::Signer`].
    pub fn cosign(&self, checkpoint: &SignedCheckpoint<'_>, time: u64) -> Result<Cosignature, LedgerError> {
        let signature = self.sign_bytes(message(checkpoint.text(), time).as_bytes())?;
        Ok(self.verifying_key().cosignature(time, &signature))
    }
}

impl CosignatureKey {
    /// Reads what follows the key id in a signature line, and checks it over a checkpoint's text.
    pub(crate) fn check(&self, text: &str, signature: &[u8]) -> Result<Cosignature, LedgerError> {
        let bad = || LedgerError::BadSignature(self.name().to_owned());
        let (time, signature) = signature.split_first_chunk::<8>().ok_or_else(bad)?;
        let time = u64::from_be_bytes(*time);
        if i64::try_from(time).is_err() {
            return Err(bad());
        }
        let signature = self.check_bytes(message(text, time).as_bytes(), signature)?;
        Ok(self.cosignature(time, &signature))
    }

    fn cosignature(&self, time: u64, signature: &Signature) -> Cosignature {
        let body = [&time.to_be_bytes()[..], &signature.to_bytes()].concat();
        Cosignature {
            time,
            line: signature_line(self.name(), self.id(), &body),
        }
    }
}

impl SignedCheckpoint<'_> {
    /// The newest cosignature by a witness; `None` when it has not cosigned.
    ///
    /// # Errors
    /// [`LedgerError::BadSignature`] when a line claims to be by this key and does not verify.
    pub fn cosignature(&self, key: &CosignatureKey) -> Result<Option<Cosignature>, LedgerError> {
        let mut newest: Option<Cosignature> = None;
        for signature in self.note.signatures_of(key.name(), key.id()) {
            let found = key.check(self.note.text, signature)?;
            if newest.as_ref().is_none_or(|newest| newest.time < found.time) {
                newest = Some(found);
            }
        }
        Ok(newest)
    }
}

/// What a witness says of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cosignature {
    /// When it said so, in unix seconds by its clock.
    pub time: u64,
    /// The signature line, with its newline, as it stands in a note.
    pub line: String,
}

impl Cosignature {
    /// Reads what a witness has answered for a checkpoint: its cosignature of this text, the newest if there are several.
    /// Lines by others are ignored.
    ///
    /// # Errors
    /// [`LedgerError::NoteMalformed`] when the answer is not only signature lines; [`LedgerError::NoteUnsigned`] when none
    /// is by this key; [`LedgerError::BadSignature`] when one is and does not verify over this text.
    pub fn from_answer(text: &str, answer: &str, key: &CosignatureKey) -> Result<Self, LedgerError> {
        let note = format!("{text}\n{answer}");
        let signed = SignedCheckpoint::parse(&note)?;
        if signed.text() != text {
            return Err(LedgerError::NoteMalformed(
                "the answer contains more than signature lines",
            ));
        }
        signed
            .cosignature(key)?
            .ok_or_else(|| LedgerError::NoteUnsigned(key.name().to_owned()))
    }
}

fn message(text: &str, time: u64) -> String {
    format!("cosignature/v1\ntime {time}\n{text}")
}
