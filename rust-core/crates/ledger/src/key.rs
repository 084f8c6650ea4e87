//! Ed25519 keys of signed notes, in the text forms of Go's `golang.org/x/mod/sumdb/note` (c2sp.org/signed-note).
//!
//! Log keys and witness keys use different algorithm bytes, so that no key can be used as both by mistake.
//!
//! One ledger key signs every log of a gateway: [`SigningKey::for_origin`] and [`VerifyingKey::for_origin`] return the
//! same key under the name of one log's origin, as the checkpoint format requires.

use crate::key_text::{
    LOG_ALGORITHM, WITNESS_ALGORITHM, check_name, check_origin, key_id, key_text, split_key_text,
};
use crate::{LedgerError, Signer as SignerElsewhere};
use ed25519_dalek::{Signature, Signer};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

/// Message whose signature replaces the seed for deriving secrets when a signer holds the key. The
/// message cannot be a note, because it contains no newline.
const DERIVATION_DOMAIN: &[u8] = b"proofgate/v1/derivation\0";

/// The secret half of the key of a ledger or a log.
pub type SigningKey = PrivateKey<LOG_ALGORITHM>;
/// The public half of the key of a ledger or a log, which auditors receive.
pub type VerifyingKey = PublicKey<LOG_ALGORITHM>;
/// The secret half of a witness's key.
pub type CosigningKey = PrivateKey<WITNESS_ALGORITHM>;

/// The secret half of a key. Its memory is overwritten when it is dropped, and `Debug` does not print it.
#[derive(Clone)]
pub struct PrivateKey<const ALGORITHM: u8> {
    name: String,
    secret: Secret,
    /// Same as in [`PublicKey`].
    lineage: Option<Arc<[LineageMember]>>,
}

/// The secret half, or the signer that holds it.
#[derive(Clone)]
enum Secret {
    Local(ed25519_dalek::SigningKey),
    Remote {
        public: ed25519_dalek::VerifyingKey,
        signer: Arc<dyn SignerElsewhere>,
        /// Input from which secrets are derived, instead of the seed.
        derived: [u8; 32],
    },
}

impl<const ALGORITHM: u8> fmt::Debug for PrivateKey<ALGORITHM> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("PrivateKey")
            .field("name", &self.name)
            .field("key", &"[redacted]")
            .finish()
    }
}

impl<const ALGORITHM: u8> PrivateKey<ALGORITHM> {
    /// Creates a key with this name from 32 bytes of randomness, which the caller must take from the operating system
    /// and then discard.
    ///
    /// # Errors
    /// [`LedgerError::KeyMalformed`] when the name is empty or contains white space, a control character or `+`.
    pub fn generate(name: &str, seed: [u8; 32]) -> Result<Self, LedgerError> {
        check_name(name)?;
        Ok(Self {
            name: name.to_owned(),
            secret: Secret::Local(ed25519_dalek::SigningKey::from_bytes(&seed)),
            lineage: None,
        })
    }

    /// Reads `PRIVATE+KEY+<name>+<hash8>+<base64(algorithm ‖ seed)>`.
    ///
    /// # Errors
    /// [`LedgerError::KeyMalformed`] when the text has another form, or its key id does not match the key.
    pub fn from_text(text: &str) -> Result<Self, LedgerError> {
        let rest = text
            .strip_prefix("PRIVATE+KEY+")
            .ok_or(LedgerError::KeyMalformed("not a private note key"))?;
        let (name, id, mut seed) = split_key_text(rest, ALGORITHM)?;
        let key = Self::generate(&name, seed);
        seed.fill(0);
        let key = key?;
        match key.verifying_key().id == id {
            true => Ok(key),
            false => Err(LedgerError::KeyMalformed("the key id does not match the key")),
        }
    }

    /// Returns the private key text that [`Self::from_text`] reads. The text is a secret. For a key
    /// held by a signer, returns the vkey.
    #[must_use]
    pub fn to_text(&self) -> String {
        let public = self.verifying_key();
        match &self.secret {
            Secret::Local(key) => format!(
                "PRIVATE+KEY+{}",
                key_text(&self.name, public.id, ALGORITHM, key.as_bytes())
            ),
            Secret::Remote { .. } => public.to_text(),
        }
    }

    /// Returns the name of the key: the name of a ledger, an origin or a witness.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the public half, with the known keys of its lineage.
    #[must_use]
    pub fn verifying_key(&self) -> PublicKey<ALGORITHM> {
        let public = match &self.secret {
            Secret::Local(key) => key.verifying_key(),
            Secret::Remote { public, .. } => *public,
        };
        PublicKey {
            lineage: self.lineage.clone(),
            ..PublicKey::new(&self.name, public)
        }
    }

    /// # Errors
    /// [`LedgerError::SignerFailed`] when a signer holds the key and returns no signature, or one that does not verify.
    pub(crate) fn sign_bytes(&self, message: &[u8]) -> Result<Signature, LedgerError> {
        match &self.secret {
            Secret::Local(key) => Ok(key.sign(message)),
            Secret::Remote { signer, .. } => {
                let signature = signer
                    .sign(message)
                    .map_err(|error| LedgerError::SignerFailed(error.0))?;
                self.verifying_key()
                    .verify_bytes(message, &signature)
                    .map_err(|_| LedgerError::SignerFailed("its signature does not verify".to_owned()))
            }
        }
    }
}

impl SigningKey {
    /// Returns the same key under the name of `origin`, which must be the key's name or start with it and a slash.
    ///
    /// # Errors
    /// [`LedgerError::OriginNotBelowKey`] for any other origin, [`LedgerError::KeyMalformed`] when it is not a valid
    /// key name.
    pub fn for_origin(&self, origin: &str) -> Result<Self, LedgerError> {
        check_origin(&self.name, origin)?;
        Ok(Self {
            name: origin.to_owned(),
            ..self.clone()
        })
    }

    /// Creates a key that a signer holds. The signer must return the same signature twice.
    /// [`Self::derive`] derives secrets from this signature, so a signer must return it only to the
    /// ledger's own processes.
    ///
    /// # Errors
    /// [`LedgerError::SignerFailed`] when the signer does not respond, holds another key, or
    /// returns two different signatures for one message.
    pub fn from_signer(public: &VerifyingKey, signer: Arc<dyn SignerElsewhere>) -> Result<Self, LedgerError> {
        let refused = |why: &str| LedgerError::SignerFailed(why.to_owned());
        let asked = || {
            signer
                .sign(DERIVATION_DOMAIN)
                .map_err(|error| LedgerError::SignerFailed(error.0))
        };
        if signer.public_key() != public.point_bytes() {
            return Err(refused("it has a key other than the configured one"));
        }
        let (first, second) = (asked()?, asked()?);
        public
            .verify_bytes(DERIVATION_DOMAIN, &first)
            .map_err(|_| refused("its signature does not verify"))?;
        if first != second {
            return Err(refused(
                "it signs one message in two different ways: deterministic Ed25519 is required",
            ));
        }
        Ok(Self {
            name: public.name.clone(),
            secret: Secret::Remote {
                public: public.key,
                signer,
                derived: Sha256::digest(first).into(),
            },
            lineage: public.lineage.clone(),
        })
    }

    pub(crate) fn with_public_key(self, public: &VerifyingKey) -> Self {
        Self {
            lineage: public.lineage.clone(),
            ..self
        }
    }

    /// Derives a secret of 32 bytes that only a holder of this key can know, for a `purpose` and a
    /// `context`: the first block of HKDF-Expand with SHA-256 and the seed as its pseudorandom key
    /// (RFC 5869 section 2.3).
    ///
    /// `purpose` is a constant and contains no NUL. For a key held by a signer, the digest of one of its signatures
    /// replaces the seed. The name of the key has no effect, so the ledger's key and an origin's key derive the same
    /// secrets.
    #[must_use]
    pub fn derive(&self, purpose: &str, context: &[u8]) -> [u8; 32] {
        debug_assert!(!purpose.contains('\0'));
        // A key of 32 bytes is shorter than the block, so it is padded and never hashed or refused.
        let mut block = [0u8; 64];
        match &self.secret {
            Secret::Local(key) => block[..32].copy_from_slice(key.as_bytes()),
            Secret::Remote { derived, .. } => block[..32].copy_from_slice(derived),
        }
        let mut mac: Hmac<Sha256> = Hmac::new(&block.into());
        block.fill(0);
        mac.update(purpose.as_bytes());
        mac.update(&[0]);
        mac.update(context);
        mac.update(&[1]);
        mac.finalize().into_bytes().into()
    }
}

/// The public half of a key. A log's key also contains the known keys before and after it.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey<const ALGORITHM: u8> {
    name: String,
    id: [u8; 4],
    key: ed25519_dalek::VerifyingKey,
    /// All keys of the lineage, oldest first, including this one; `None` if no other key is known.
    lineage: Option<Arc<[LineageMember]>>,
}

/// A key of a lineage, and the last moment of its validity in unix microseconds (`None` for the
/// newest key).
type LineageMember = (ed25519_dalek::VerifyingKey, Option<u64>);

impl<const ALGORITHM: u8> fmt::Debug for PublicKey<ALGORITHM> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PublicKey({})", self.to_text())
    }
}

impl<const ALGORITHM: u8> PublicKey<ALGORITHM> {
    fn new(name: &str, key: ed25519_dalek::VerifyingKey) -> Self {
        Self {
            name: name.to_owned(),
            id: key_id(name, ALGORITHM, key.as_bytes()),
            key,
            lineage: None,
        }
    }

    /// Reads a vkey, `<name>+<hash8>+<base64(algorithm ‖ public key)>`.
    ///
    /// # Errors
    /// [`LedgerError::KeyMalformed`] when the text has another form, its key id does not match the key, or the key is
    /// weak or not a point of the curve.
    pub fn from_text(text: &str) -> Result<Self, LedgerError> {
        let (name, id, key) = split_key_text(text, ALGORITHM)?;
        check_name(&name)?;
        let key = Self::new(&name, parse_point(&key)?);
        match key.id == id {
            true => Ok(key),
            false => Err(LedgerError::KeyMalformed("the key id does not match the key")),
        }
    }

    /// Returns the vkey text.
    #[must_use]
    pub fn to_text(&self) -> String {
        key_text(&self.name, self.id, ALGORITHM, self.key.as_bytes())
    }

    /// Returns the name of the key: the name of a ledger, an origin or a witness.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether both are the same point of the curve, even under different names.
    #[must_use]
    pub fn is_same_key(&self, other: &Self) -> bool {
        self.key == other.key
    }

    /// Returns the point itself, as 32 bytes.
    #[must_use]
    pub fn point_bytes(&self) -> [u8; 32] {
        self.key.to_bytes()
    }

    pub(crate) fn id(&self) -> [u8; 4] {
        self.id
    }

    /// Verifies a signature of 64 bytes by RFC 8032 section 5.1.7, without the cofactor.
    ///
    /// # Errors
    /// [`LedgerError::BadSignature`].
    pub(crate) fn verify_bytes(&self, message: &[u8], signature: &[u8]) -> Result<Signature, LedgerError> {
        let bad = |_| LedgerError::BadSignature(self.name.clone());
        let signature = Signature::from_slice(signature).map_err(bad)?;
        self.key.verify_strict(message, &signature).map_err(bad)?;
        Ok(signature)
    }
}

/// A key of a lineage, and the last moment of its validity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineageKey {
    /// The key, without its lineage.
    pub key: VerifyingKey,
    /// The last moment at which the key may start a log, remove one or erase salts, in unix
    /// microseconds; `None` for the newest key.
    pub valid_until: Option<u64>,
}

impl VerifyingKey {
    /// Returns the same key under the name of `origin`, which must be the key's name or start with it and a slash.
    ///
    /// # Errors
    /// [`LedgerError::OriginNotBelowKey`] for any other origin, [`LedgerError::KeyMalformed`] when it is not a valid
    /// key name.
    pub fn for_origin(&self, origin: &str) -> Result<Self, LedgerError> {
        check_origin(&self.name, origin)?;
        Ok(Self {
            lineage: self.lineage.clone(),
            ..Self::new(origin, self.key)
        })
    }

    /// Returns all keys of the lineage, oldest first; only this one if no other is known.
    #[must_use]
    pub fn lineage(&self) -> Vec<LineageKey> {
        let alone = [(self.key, None)];
        let members = self.lineage.as_deref().unwrap_or(&alone);
        let key = |(key, until): &LineageMember| LineageKey {
            key: Self::new(&self.name, *key),
            valid_until: *until,
        };
        members.iter().map(key).collect()
    }

    /// Returns the same key without its lineage.
    #[must_use]
    pub fn without_lineage(&self) -> Self {
        Self {
            lineage: None,
            ..self.clone()
        }
    }

    pub(crate) fn with_lineage(&self, line: Vec<LineageKey>) -> Self {
        let members = line
            .into_iter()
            .map(|member| (member.key.key, member.valid_until));
        let line = Some(members.collect::<Arc<[LineageMember]>>());
        Self {
            lineage: line.filter(|line| line.len() > 1),
            ..self.clone()
        }
    }

    /// Returns whether the two lineages have a key in common, even under different names.
    #[must_use]
    pub fn shares_key_with(&self, other: &Self) -> bool {
        let others = other.lineage();
        let is_theirs = |own: &LineageKey| others.iter().any(|key| key.key.is_same_key(&own.key));
        self.lineage().iter().any(is_theirs)
    }

    /// Returns whether the two lineages have no key in common and neither key is valid for the
    /// other's name or a name below it. The key of an auditor and the retention key must be
    /// independent of the ledger's key.
    #[must_use]
    pub fn is_independent_of(&self, other: &Self) -> bool {
        !self.shares_key_with(other)
            && self.for_origin(&other.name).is_err()
            && other.for_origin(&self.name).is_err()
    }
}

fn parse_point(key: &[u8; 32]) -> Result<ed25519_dalek::VerifyingKey, LedgerError> {
    let key = ed25519_dalek::VerifyingKey::from_bytes(key)
        .map_err(|_| LedgerError::KeyMalformed("not an Ed25519 public key"))?;
    match key.is_weak() {
        true => Err(LedgerError::KeyMalformed("a weak Ed25519 public key")),
        false => Ok(key),
    }
}
