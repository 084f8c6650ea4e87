//! Keys that verify cosignatures: Ed25519 (type 0x04) and ML-DSA-44 (type 0x06, FIPS 204).

use crate::key_text::{
    WITNESS_ALGORITHM, WITNESS_ML_DSA_ALGORITHM, check_name, key_id, key_text, split_key_text,
};
use crate::{CosigningKey, LedgerError, PublicKey};
use ml_dsa::signature::Verifier;
use ml_dsa::{EncodedSignature, EncodedVerifyingKey, MlDsa44, Signature, VerifyingKey};
use std::fmt;

const ML_DSA_BYTES: usize = 1312;

/// The public half of a witness's key.
#[derive(Clone, PartialEq, Eq)]
pub struct CosignatureKey {
    name: String,
    id: [u8; 4],
    public_key: WitnessPublicKey,
}

/// A public key of either algorithm.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum WitnessPublicKey {
    Ed25519(Box<PublicKey<WITNESS_ALGORITHM>>),
    MlDsa44(MlDsaKey),
}

/// An encoded ML-DSA-44 public key: any bytes of this length are a valid key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct MlDsaKey(Box<[u8; ML_DSA_BYTES]>);

impl MlDsaKey {
    /// Returns whether a signature over a message, with an empty context, verifies.
    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let Ok(encoded) = EncodedSignature::<MlDsa44>::try_from(signature) else {
            return false;
        };
        let key = VerifyingKey::<MlDsa44>::decode(&EncodedVerifyingKey::<MlDsa44>::from(*self.0));
        Signature::<MlDsa44>::decode(&encoded)
            .is_some_and(|signature| key.verify(message, &signature).is_ok())
    }
}

impl CosigningKey {
    /// Returns the public half, which verifies its cosignatures.
    #[must_use]
    pub fn cosignature_key(&self) -> CosignatureKey {
        CosignatureKey::from_ed25519(self.verifying_key())
    }
}

impl CosignatureKey {
    fn from_ed25519(key: PublicKey<WITNESS_ALGORITHM>) -> Self {
        Self {
            name: key.name().to_owned(),
            id: key.id(),
            public_key: WitnessPublicKey::Ed25519(Box::new(key)),
        }
    }

    /// Reads a vkey, `<name>+<hash8>+<base64(algorithm ‖ public key)>`.
    ///
    /// # Errors
    /// [`LedgerError::KeyMalformed`] when the text has another form or algorithm, its key id does not match the key, or
    /// an Ed25519 key is weak or not a point of the curve.
    pub fn from_text(text: &str) -> Result<Self, LedgerError> {
        let Ok((name, id, key)) = split_key_text::<ML_DSA_BYTES>(text, WITNESS_ML_DSA_ALGORITHM) else {
            return PublicKey::<WITNESS_ALGORITHM>::from_text(text).map(Self::from_ed25519);
        };
        check_name(&name)?;
        match key_id(&name, WITNESS_ML_DSA_ALGORITHM, &key) == id {
            true => Ok(Self {
                name,
                id,
                public_key: WitnessPublicKey::MlDsa44(MlDsaKey(Box::new(key))),
            }),
            false => Err(LedgerError::KeyMalformed("the key id does not match the key")),
        }
    }

    /// Returns the vkey text.
    #[must_use]
    pub fn to_text(&self) -> String {
        match &self.public_key {
            WitnessPublicKey::Ed25519(key) => key.to_text(),
            WitnessPublicKey::MlDsa44(key) => {
                key_text(&self.name, self.id, WITNESS_ML_DSA_ALGORITHM, &key.0[..])
            }
        }
    }

    /// Returns the witness's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns whether both have the same public key, even under different names.
    #[must_use]
    pub fn is_same_key(&self, other: &Self) -> bool {
        match (&self.public_key, &other.public_key) {
            (WitnessPublicKey::Ed25519(key), WitnessPublicKey::Ed25519(other)) => key.is_same_key(other),
            (WitnessPublicKey::MlDsa44(key), WitnessPublicKey::MlDsa44(other)) => key == other,
            _ => false,
        }
    }

    pub(crate) fn id(&self) -> [u8; 4] {
        self.id
    }

    pub(crate) fn public_key(&self) -> &WitnessPublicKey {
        &self.public_key
    }
}

impl fmt::Debug for CosignatureKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CosignatureKey({})", self.to_text())
    }
}
