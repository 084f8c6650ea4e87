//! C2SP signed notes with Ed25519 keys in the text forms of Go's `golang.org/x/mod/sumdb/note`
//! (c2sp.org/signed-note).
//!
//! One ledger key speaks for every log of a gateway: [`SigningKey::for_origin`] and [`VerifyingKey::for_origin`] give
//! the same key the name of one log's origin, as the checkpoint format asks for.

use crate::LedgerError;
use base64::{Engine, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signature, Signer};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt;

/// Largest note that is looked at, in bytes: sixteen ML-DSA-44 cosignatures fit.
pub const MAX_NOTE: usize = 64 * 1024;
/// Most signature lines that are looked at: a log's own, and one of each witness that a policy may name.
pub const MAX_SIGNATURES: usize = 64;

const ED25519: u8 = 0x01;
pub(crate) const SIGNATURE_LINE: &str = "\u{2014} ";

/// The secret half of a ledger key. Its memory is overwritten when it is dropped and it never prints itself.
#[derive(Clone)]
pub struct SigningKey {
    name: String,
    key: ed25519_dalek::SigningKey,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SigningKey")
            .field("name", &self.name)
            .field("key", &"[redacted]")
            .finish()
    }
}

impl SigningKey {
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

    /// Reads `PRIVATE+KEY+<name>+<hash8>+<base64(0x01 ‖ seed)>`.
    ///
    /// # Errors
    /// [`LedgerError::KeyText`] when the text has another form or its key id is not that of the key.
    pub fn from_text(text: &str) -> Result<Self, LedgerError> {
        let rest = text
            .strip_prefix("PRIVATE+KEY+")
            .ok_or(LedgerError::KeyText("not a private note key"))?;
        let (name, id, mut key) = split_key_text(rest, ED25519)?;
        let signing = Self::generate(&name, key);
        key.fill(0);
        let signing = signing?;
        if signing.verifying_key().id != id {
            return Err(LedgerError::KeyText("the key id does not match the key"));
        }
        Ok(signing)
    }

    /// The private key text that [`Self::from_text`] reads. It is a secret.
    #[must_use]
    pub fn to_text(&self) -> String {
        let id = self.verifying_key().id;
        format!(
            "PRIVATE+KEY+{}",
            key_text(&self.name, id, ED25519, self.key.as_bytes())
        )
    }

    /// Name of the key: a ledger name, or an origin.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The public half.
    #[must_use]
    pub fn verifying_key(&self) -> VerifyingKey {
        VerifyingKey::new(&self.name, self.key.verifying_key())
    }

    /// The same key under the name of `origin`, which must be the key's name or start with it and a slash.
    ///
    /// # Errors
    /// [`LedgerError::OriginNotBelowKey`] for any other origin, [`LedgerError::KeyText`] when it is no key name.
    pub fn for_origin(&self, origin: &str) -> Result<Self, LedgerError> {
        check_origin(&self.name, origin)?;
        Ok(Self {
            name: origin.to_owned(),
            key: self.key.clone(),
        })
    }

    /// A secret of 32 bytes that only a holder of this key can know, for what `purpose` and `context` name: the first
    /// block of HKDF-Expand with SHA-256 and the seed as its pseudorandom key (RFC 5869 section 2.3).
    ///
    /// `purpose` is a constant and holds no NUL. The name of the key does not matter, so that the ledger's key and an
    /// origin's derive the same.
    #[must_use]
    pub fn derive(&self, purpose: &str, context: &[u8]) -> [u8; 32] {
        debug_assert!(!purpose.contains('\0'));
        // A key of 32 bytes is shorter than the block, so it is padded and never hashed or refused.
        let mut block = [0u8; 64];
        block[..32].copy_from_slice(self.key.as_bytes());
        let mut mac: Hmac<Sha256> = Hmac::new(&block.into());
        block.fill(0);
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(context);
        mac.update(&[1]);
        mac.finalize().into_bytes().into()
    }

    /// Signs a note text, which must end in a newline, and returns the whole signed note.
    pub(crate) fn sign_note(&self, text: &str) -> String {
        let signature = self.key.sign(text.as_bytes()).to_bytes();
        let line = signature_line(&self.name, self.verifying_key().id, &signature);
        format!("{text}\n{line}")
    }
}

/// The public half of a ledger key, as it is handed to auditors.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey {
    name: String,
    id: [u8; 4],
    key: ed25519_dalek::VerifyingKey,
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "VerifyingKey({})", self.to_text())
    }
}

impl VerifyingKey {
    fn new(name: &str, key: ed25519_dalek::VerifyingKey) -> Self {
        Self {
            name: name.to_owned(),
            id: key_id(name, ED25519, key.as_bytes()),
            key,
        }
    }

    /// Reads a vkey, `<name>+<hash8>+<base64(0x01 ‖ public key)>`.
    ///
    /// # Errors
    /// [`LedgerError::KeyText`] when the text has another form, its key id is not that of the key, or the key is not a
    /// point of the curve or a weak one.
    pub fn from_text(text: &str) -> Result<Self, LedgerError> {
        let (name, id, key) = split_key_text(text, ED25519)?;
        check_name(&name)?;
        let verifying = Self::new(&name, read_point(&key)?);
        if verifying.id != id {
            return Err(LedgerError::KeyText("the key id does not match the key"));
        }
        Ok(verifying)
    }

    /// The vkey text.
    #[must_use]
    pub fn to_text(&self) -> String {
        key_text(&self.name, self.id, ED25519, self.key.as_bytes())
    }

    /// Name of the key: a ledger name, or an origin.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same key under the name of `origin`, which must be the key's name or start with it and a slash.
    ///
    /// # Errors
    /// [`LedgerError::OriginNotBelowKey`] for any other origin, [`LedgerError::KeyText`] when it is no key name.
    pub fn for_origin(&self, origin: &str) -> Result<Self, LedgerError> {
        check_origin(&self.name, origin)?;
        Ok(Self::new(origin, self.key))
    }

    pub(crate) fn id(&self) -> [u8; 4] {
        self.id
    }

    /// Whether it is the same point of the curve, under whatever name.
    #[must_use]
    pub fn is_same_point(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

/// A note, taken apart and not yet believed.
pub(crate) struct Note<'a> {
    /// The signed text, with its last newline.
    pub(crate) text: &'a str,
    signatures: Vec<(&'a str, Vec<u8>)>,
}

impl<'a> Note<'a> {
    /// Takes a note apart without checking a signature.
    pub(crate) fn parse(note: &'a str) -> Result<Self, LedgerError> {
        let malformed = LedgerError::NoteMalformed;
        if note.len() > MAX_NOTE {
            return Err(malformed("larger than 64 KiB"));
        }
        if note.chars().any(|c| c.is_control() && c != '\n') {
            return Err(malformed("holds a control character"));
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
                .strip_prefix(SIGNATURE_LINE)
                .and_then(|line| line.split_once(' '))
                .ok_or(malformed("a signature line has another form"))?;
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

    /// What follows the key id in each signature line that claims to be by a key of this name and id.
    pub(crate) fn signatures_of(&self, name: &str, id: [u8; 4]) -> impl Iterator<Item = &[u8]> {
        self.signatures
            .iter()
            .filter_map(move |(signer, body)| body.strip_prefix(&id).filter(|_| *signer == name))
    }

    /// Checks every signature line that claims to be by `key`; there must be at least one. Lines of other keys are
    /// ignored: rotation and witnesses add lines.
    pub(crate) fn verify(&self, key: &VerifyingKey) -> Result<(), LedgerError> {
        let mut signed = false;
        for signature in self.signatures_of(&key.name, key.id) {
            let signature =
                Signature::from_slice(signature).map_err(|_| LedgerError::BadSignature(key.name.clone()))?;
            key.key
                .verify_strict(self.text.as_bytes(), &signature)
                .map_err(|_| LedgerError::BadSignature(key.name.clone()))?;
            signed = true;
        }
        if signed {
            Ok(())
        } else {
            Err(LedgerError::NoteUnsigned(key.name.clone()))
        }
    }
}

/// A signature line: the key's name, and the base64 of its id and what follows that.
pub(crate) fn signature_line(name: &str, id: [u8; 4], signature: &[u8]) -> String {
    let body = STANDARD.encode([&id, signature].concat());
    format!("{SIGNATURE_LINE}{name} {body}\n")
}

/// The first bytes of SHA-256 over a key's name, a newline, its algorithm and the public key.
pub(crate) fn key_id(name: &str, algorithm: u8, public: &[u8; 32]) -> [u8; 4] {
    let mut sha = Sha256::new();
    sha.update(name.as_bytes());
    sha.update([b'\n', algorithm]);
    sha.update(public);
    let digest = sha.finalize();
    [digest[0], digest[1], digest[2], digest[3]]
}

/// `<name>+<hash8>+<base64(algorithm ‖ key)>`.
pub(crate) fn key_text(name: &str, id: [u8; 4], algorithm: u8, key: &[u8; 32]) -> String {
    let mut body = [0u8; 33];
    body[0] = algorithm;
    body[1..].copy_from_slice(key);
    let text = format!("{name}+{:08x}+{}", u32::from_be_bytes(id), STANDARD.encode(body));
    body.fill(0);
    text
}

pub(crate) fn read_point(key: &[u8; 32]) -> Result<ed25519_dalek::VerifyingKey, LedgerError> {
    let key = ed25519_dalek::VerifyingKey::from_bytes(key)
        .map_err(|_| LedgerError::KeyText("not an Ed25519 public key"))?;
    match key.is_weak() {
        true => Err(LedgerError::KeyText("a weak Ed25519 public key")),
        false => Ok(key),
    }
}

pub(crate) fn check_name(name: &str) -> Result<(), LedgerError> {
    if name.is_empty()
        || name
            .chars()
            .any(|c| c.is_whitespace() || c.is_control() || c == '+')
    {
        return Err(LedgerError::KeyText(
            "a key name holds no white space, control character or '+'",
        ));
    }
    Ok(())
}

fn check_origin(name: &str, origin: &str) -> Result<(), LedgerError> {
    let below = origin
        .strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if !below {
        return Err(LedgerError::OriginNotBelowKey {
            key: name.to_owned(),
            origin: origin.to_owned(),
        });
    }
    check_name(origin)
}

/// Splits `<name>+<hash8>+<base64(algorithm ‖ 32 bytes)>`.
pub(crate) fn split_key_text(text: &str, algorithm: u8) -> Result<(String, [u8; 4], [u8; 32]), LedgerError> {
    let form = || LedgerError::KeyText("not of the form name+hash+base64");
    // The base64 alphabet has a '+', a name has none.
    let mut parts = text.splitn(3, '+');
    let (name, id, body) = match (parts.next(), parts.next(), parts.next()) {
        (Some(name), Some(id), Some(body)) => (name, id, body),
        _ => return Err(form()),
    };
    if id.len() != 8
        || !id
            .bytes()
            .all(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c))
    {
        return Err(form());
    }
    let id = u32::from_str_radix(id, 16).map_err(|_| form())?.to_be_bytes();
    let mut body = STANDARD.decode(body).map_err(|_| form())?;
    let key = match body.split_first() {
        Some((found, key)) if *found == algorithm => <[u8; 32]>::try_from(key).map_err(|_| form()),
        Some((&ED25519, _)) => Err(LedgerError::KeyText(
            "an Ed25519 key of a log, and no witness's (type 0x04)",
        )),
        Some((0x04, _)) => Err(LedgerError::KeyText("a witness's key (type 0x04), and no log's")),
        _ => Err(LedgerError::KeyText("not an Ed25519 key")),
    };
    body.fill(0);
    Ok((name.to_owned(), id, key?))
}

#[cfg(test)]
mod tests;
