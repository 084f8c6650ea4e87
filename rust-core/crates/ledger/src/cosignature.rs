//! Cosignatures: what a witness adds to a checkpoint once it has seen that the log only grew
//! (c2sp.org/tlog-cosignature, the type `cosignature/v1` with Ed25519).
//!
//! A cosignature signs the checkpoint's text together with a time: as of then, nothing larger was seen of that log. Its
//! keys have a type of their own, so that no key is a log's and a witness's by mistake.

use crate::note::{check_name, key_id, key_text, read_point, signature_line, split_key_text};
use crate::{LedgerError, SignedCheckpoint};
use ed25519_dalek::{Signature, Signer};
use std::fmt;

const COSIGNATURE_V1: u8 = 0x04;

/// The secret half of a witness's key. Its memory is overwritten when it is dropped and it never prints itself.
#[derive(Clone)]
pub struct CosigningKey {
    name: String,
    key: ed25519_dalek::SigningKey,
}

impl fmt::Debug for CosigningKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("CosigningKey")
            .field("name", &self.name)
            .field("key", &"[redacted]")
            .finish()
    }
}

impl CosigningKey {
    /// A key with this name from 32 bytes of randomness, which the caller must take from the operating system and
    /// forget.
    ///
    /// # Errors
    /// [`LedgerError::KeyText`] when the name is empty or holds white space, a control character or `+`.
    pub fn generate(name: &str, seed: [u8; 32]) -> Result<Self, LedgerError> {
        check_name(name)?;
        Ok(Self {
            name: name.to_owned(),
            key: ed25519_dalek::SigningKey::from_bytes(&seed),
        })
    }

    /// Reads `PRIVATE+KEY+<name>+<hash8>+<base64(0x04 ‖ seed)>`.
    ///
    /// # Errors
    /// [`LedgerError::KeyText`] when the text has another form or its key id is not that of the key.
    pub fn from_text(text: &str) -> Result<Self, LedgerError> {
        let rest = text
            .strip_prefix("PRIVATE+KEY+")
            .ok_or(LedgerError::KeyText("not a private note key"))?;
        let (name, id, mut seed) = split_key_text(rest, COSIGNATURE_V1)?;
        let key = Self::generate(&name, seed);
        seed.fill(0);
        let key = key?;
        match key.verifying_key().id == id {
            true => Ok(key),
            false => Err(LedgerError::KeyText("the key id does not match the key")),
        }
    }

    /// The private key text that [`Self::from_text`] reads. It is a secret.
    #[must_use]
    pub fn to_text(&self) -> String {
        let id = self.verifying_key().id;
        format!(
            "PRIVATE+KEY+{}",
            key_text(&self.name, id, COSIGNATURE_V1, self.key.as_bytes())
        )
    }

    /// The public half.
    #[must_use]
    pub fn verifying_key(&self) -> CosignatureKey {
        CosignatureKey::new(&self.name, self.key.verifying_key())
    }

    /// Cosigns a checkpoint's text as of a time in unix seconds.
    #[must_use]
    pub fn cosign(&self, checkpoint: &SignedCheckpoint<'_>, time: u64) -> Cosignature {
        let signature = self.key.sign(message(checkpoint.text(), time).as_bytes());
        self.verifying_key().cosignature(time, &signature)
    }
}

/// The public half of a witness's key.
#[derive(Clone, PartialEq, Eq)]
pub struct CosignatureKey {
    name: String,
    id: [u8; 4],
    key: ed25519_dalek::VerifyingKey,
}

impl fmt::Debug for CosignatureKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CosignatureKey({})", self.to_text())
    }
}

impl CosignatureKey {
    fn new(name: &str, key: ed25519_dalek::VerifyingKey) -> Self {
        Self {
            name: name.to_owned(),
            id: key_id(name, COSIGNATURE_V1, key.as_bytes()),
            key,
        }
    }

    /// Reads a vkey, `<name>+<hash8>+<base64(0x04 ‖ public key)>`.
    ///
    /// # Errors
    /// [`LedgerError::KeyText`] when the text has another form, its key id is not that of the key, or the key is not a
    /// point of the curve or a weak one.
    pub fn from_text(text: &str) -> Result<Self, LedgerError> {
        let (name, id, key) = split_key_text(text, COSIGNATURE_V1)?;
        check_name(&name)?;
        let key = Self::new(&name, read_point(&key)?);
        match key.id == id {
            true => Ok(key),
            false => Err(LedgerError::KeyText("the key id does not match the key")),
        }
    }

    /// The vkey text.
    #[must_use]
    pub fn to_text(&self) -> String {
        key_text(&self.name, self.id, COSIGNATURE_V1, self.key.as_bytes())
    }

    /// Name of the key: that of the witness.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is the same point of the curve, under whatever name.
    #[must_use]
    pub fn is_same_point(&self, other: &Self) -> bool {
        self.key == other.key
    }

    pub(crate) fn id(&self) -> [u8; 4] {
        self.id
    }

    /// Reads what follows the key id in a signature line, and checks it over a checkpoint's text.
    pub(crate) fn check(&self, text: &str, signature: &[u8]) -> Result<Cosignature, LedgerError> {
        let bad = || LedgerError::BadSignature(self.name.clone());
        let (time, signature) = signature.split_first_chunk::<8>().ok_or_else(bad)?;
        let signature = Signature::from_slice(signature).map_err(|_| bad())?;
        let time = u64::from_be_bytes(*time);
        if i64::try_from(time).is_err() {
            return Err(bad());
        }
        self.key
            .verify_strict(message(text, time).as_bytes(), &signature)
            .map_err(|_| bad())?;
        Ok(self.cosignature(time, &signature))
    }

    fn cosignature(&self, time: u64, signature: &Signature) -> Cosignature {
        let body = [&time.to_be_bytes()[..], &signature.to_bytes()].concat();
        Cosignature {
            time,
            line: signature_line(&self.name, self.id, &body),
        }
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
            return Err(LedgerError::NoteMalformed("more than signature lines"));
        }
        signed
            .cosignature(key)?
            .ok_or_else(|| LedgerError::NoteUnsigned(key.name.clone()))
    }
}

fn message(text: &str, time: u64) -> String {
    format!("cosignature/v1\ntime {time}\n{text}")
}
