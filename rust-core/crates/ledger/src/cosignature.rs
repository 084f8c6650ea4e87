//! Cosignatures (c2sp.org/tlog-cosignature, with Ed25519 and ML-DSA-44). A witness adds a
//! cosignature to a checkpoint after it has verified that the log only grew.
//!
//! A cosignature signs the checkpoint together with a time, and states that the witness had seen no
//! larger checkpoint of that log at that time. An Ed25519 cosignature signs the checkpoint's text.
//! An ML-DSA-44 cosignature signs origin, size, root and the cosigner's name, but not the extension
//! lines.

use crate::cosignature_key::WitnessPublicKey;
use crate::note::signature_line;
use crate::{Checkpoint, CosignatureKey, CosigningKey, LedgerError, SignedCheckpoint};

impl CosigningKey {
    /// Cosigns a checkpoint's text at a time in unix seconds.
    ///
    /// # Errors
    /// [`LedgerError::SignerFailed`].
    pub fn cosign(&self, checkpoint: &SignedCheckpoint<'_>, time: u64) -> Result<Cosignature, LedgerError> {
        let signature = self.sign_bytes(ed25519_message(checkpoint.text(), time).as_bytes())?;
        Ok(self.cosignature_key().cosignature(time, &signature.to_bytes()))
    }
}

impl CosignatureKey {
    /// Parses the bytes after the key id in a signature line, and verifies that they sign a
    /// checkpoint.
    fn verify(&self, signed: &SignedCheckpoint<'_>, signature: &[u8]) -> Result<Cosignature, LedgerError> {
        let bad = || LedgerError::BadSignature(self.name().to_owned());
        let (time, signature) = signature.split_first_chunk::<8>().ok_or_else(bad)?;
        let time = u64::from_be_bytes(*time);
        if i64::try_from(time).is_err() {
            return Err(bad());
        }
        match self.public_key() {
            WitnessPublicKey::Ed25519(key) => {
                key.verify_bytes(ed25519_message(signed.text(), time).as_bytes(), signature)?;
            }
            WitnessPublicKey::MlDsa44(key) => {
                let message = ml_dsa_message(self.name(), time, signed.checkpoint()).ok_or_else(bad)?;
                if !key.verifies(&message, signature) {
                    return Err(bad());
                }
            }
        }
        Ok(self.cosignature(time, signature))
    }

    fn cosignature(&self, time: u64, signature: &[u8]) -> Cosignature {
        let body = [&time.to_be_bytes()[..], signature].concat();
        Cosignature {
            time,
            line: signature_line(self.name(), self.id(), &body),
        }
    }
}

impl SignedCheckpoint<'_> {
    /// Returns the newest cosignature by a witness; `None` when the witness has not cosigned. An
    /// ML-DSA-44 cosignature without a time does not count, because it does not state that the
    /// witness had seen no larger checkpoint (c2sp.org/tlog-witness).
    ///
    /// # Errors
    /// [`LedgerError::BadSignature`] when a line claims to be by this key but does not verify.
    pub fn cosignature(&self, key: &CosignatureKey) -> Result<Option<Cosignature>, LedgerError> {
        let mut newest: Option<Cosignature> = None;
        for signature in self.note.signatures_by(key.name(), key.id()) {
            let found = key.verify(self, signature)?;
            if found.time == 0 && matches!(key.public_key(), WitnessPublicKey::MlDsa44(_)) {
                continue;
            }
            if newest.as_ref().is_none_or(|newest| newest.time < found.time) {
                newest = Some(found);
            }
        }
        Ok(newest)
    }
}

/// A witness's cosignature of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cosignature {
    /// Time of the cosignature, in unix seconds by the witness's clock.
    pub time: u64,
    /// The signature line, with its newline, as in a note.
    pub line: String,
}

impl Cosignature {
    /// Parses a witness's response to a checkpoint with this `text`, and returns the newest
    /// cosignature in it. Lines by other keys are ignored.
    ///
    /// # Errors
    /// [`LedgerError::NoteMalformed`] when the response contains anything except signature lines;
    /// [`LedgerError::NoteUnsigned`] when no line is by this key; [`LedgerError::BadSignature`]
    /// when a line claims to be by this key but does not verify over this text.
    pub fn from_response(text: &str, answer: &str, key: &CosignatureKey) -> Result<Self, LedgerError> {
        let note = format!("{text}\n{answer}");
        let signed = SignedCheckpoint::parse(&note)?;
        if signed.text() != text {
            return Err(LedgerError::NoteMalformed(
                "the answer contains lines that are not signature lines",
            ));
        }
        signed
            .cosignature(key)?
            .ok_or_else(|| LedgerError::NoteUnsigned(key.name().to_owned()))
    }
}

/// Returns the message that an Ed25519 cosignature signs.
fn ed25519_message(text: &str, time: u64) -> String {
    format!("cosignature/v1\ntime {time}\n{text}")
}

/// Returns the message that an ML-DSA-44 cosignature signs: `cosigned_message` for the whole tree. `None` when a name
/// is too long.
fn ml_dsa_message(cosigner: &str, time: u64, checkpoint: &Checkpoint) -> Option<Vec<u8>> {
    let mut message = b"subtree/v1\n\0".to_vec();
    let name = |message: &mut Vec<u8>, name: &str| {
        message.push(u8::try_from(name.len()).ok()?);
        message.extend_from_slice(name.as_bytes());
        Some(())
    };
    name(&mut message, cosigner)?;
    message.extend_from_slice(&time.to_be_bytes());
    name(&mut message, &checkpoint.origin)?;
    message.extend_from_slice(&0u64.to_be_bytes());
    message.extend_from_slice(&checkpoint.size.to_be_bytes());
    message.extend_from_slice(&checkpoint.root);
    Some(message)
}
