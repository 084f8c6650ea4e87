//! Sealing of bodies: AES-256-GCM (NIST SP 800-38D) with a key that is unique to the exchange.
//!
//! A key seals at most two bodies, the request and the response, so each has a fixed nonce: eleven
//! zeros and the field's number. A sealed body is bound to its slot: the additional data are
//! `origin ‖ 0x00 ‖ seq ‖ field`, with little-endian numbers of 64 and 32 bits.

use crate::PayloadError;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use proofgate_evidence::payloads::{PayloadField, SEAL_OVERHEAD};
use proofgate_ledger::ShredKey;
use zeroize::Zeroizing;

/// The key that seals and opens the stored bodies of one exchange. Its memory is zeroed when it is dropped.
#[derive(Clone)]
pub struct PayloadKey(Zeroizing<[u8; 32]>);

impl std::fmt::Debug for PayloadKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("PayloadKey([redacted])")
    }
}

/// The slot of a sealed body, which identifies the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodySlot<'p> {
    /// Origin of the log that holds the admission.
    pub origin: &'p str,
    /// Number of the admission in that log.
    pub seq: u64,
    /// Whether the body is the request or the response.
    pub field: PayloadField,
}

impl BodySlot<'_> {
    fn associated_data(&self) -> Vec<u8> {
        let mut data = Vec::with_capacity(self.origin.len() + 13);
        data.extend_from_slice(self.origin.as_bytes());
        data.push(0);
        data.extend_from_slice(&self.seq.to_le_bytes());
        data.extend_from_slice(&self.field.number().to_le_bytes());
        data
    }

    fn nonce(&self) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - 1] = match self.field {
            PayloadField::Request => 1,
            PayloadField::Response => 2,
        };
        Nonce::assume_unique_for_key(nonce)
    }
}

impl PayloadKey {
    /// Derives the key of an exchange from the tenant's shred key and the exchange's salt.
    #[must_use]
    pub fn new(shred_key: &ShredKey, salt: &[u8; 32]) -> Self {
        Self(Zeroizing::new(shred_key.derive_payload_key(salt)))
    }

    /// Seals a body for its slot and appends the tag. Never call this twice with one key for the
    /// same field.
    ///
    /// # Errors
    /// [`PayloadError::Refused`] when the body is too long for the cipher.
    pub fn seal(&self, place: &BodySlot<'_>, body: &mut Vec<u8>) -> Result<(), PayloadError> {
        let aad = Aad::from(place.associated_data());
        body.reserve_exact(SEAL_OVERHEAD);
        self.cipher()?
            .seal_in_place_append_tag(place.nonce(), aad, body)
            .map_err(|_| PayloadError::Refused)
    }

    /// Opens a sealed body.
    ///
    /// # Errors
    /// [`PayloadError::Refused`] unless [`Self::seal`] made `sealed` with this key for this slot.
    pub fn open(&self, place: &BodySlot<'_>, mut sealed: Vec<u8>) -> Result<Vec<u8>, PayloadError> {
        let aad = Aad::from(place.associated_data());
        let opened = self.cipher()?.open_in_place(place.nonce(), aad, &mut sealed);
        let length = opened.map_err(|_| PayloadError::Refused)?.len();
        sealed.truncate(length);
        Ok(sealed)
    }

    fn cipher(&self) -> Result<LessSafeKey, PayloadError> {
        let key = UnboundKey::new(&AES_256_GCM, &*self.0).map_err(|_| PayloadError::Refused)?;
        Ok(LessSafeKey::new(key))
    }
}
