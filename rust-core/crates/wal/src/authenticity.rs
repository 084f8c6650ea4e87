//! Authenticity of a frame: a tag that only a holder of the signing key can make.
//!
//! A checksum detects accidents but not tampering, because anyone who can write to the volume can
//! compute it. Each frame therefore also carries an AES-256-GMAC (NIST SP 800-38D) tag, with the
//! record number as nonce. The key of the tags is derived from the signing key for one incarnation.
//! A record number is framed once per incarnation, so no nonce is used twice. The gateway checks
//! the tags before it signs anything; readers without the key skip them.

use crate::WalError;
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use proofgate_evidence::frame::FrameTag;
use proofgate_ledger::SigningKey;
use std::sync::Arc;
use ulid::Ulid;

const FRAMES_PURPOSE: &str = "proofgate/v1/frames";

/// The key that computes and verifies the frame tags of one incarnation. Clones share the key.
#[derive(Clone)]
pub(crate) struct FrameTags(Arc<LessSafeKey>);

impl FrameTags {
    /// # Errors
    /// [`WalError::InvalidOptions`] when the cryptographic library refuses the key.
    pub(crate) fn new(key: &SigningKey, incarnation: Ulid) -> Result<Self, WalError> {
        let mut secret = key.derive(FRAMES_PURPOSE, &incarnation.to_bytes());
        let unbound = UnboundKey::new(&AES_256_GCM, &secret);
        secret.fill(0);
        let unbound = unbound
            .map_err(|_| WalError::InvalidOptions("cannot create the key for frame tags".to_owned()))?;
        Ok(Self(Arc::new(LessSafeKey::new(unbound))))
    }

    /// Computes the tag of frame `seq`, whose bytes up to the tag are `frame`; `None` when the
    /// library cannot compute it.
    pub(crate) fn tag(&self, seq: u64, frame: &[u8]) -> Option<FrameTag> {
        let mut nonce = [0; NONCE_LEN];
        nonce[..8].copy_from_slice(&seq.to_le_bytes());
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self
            .0
            .seal_in_place_separate_tag(nonce, Aad::from(frame), &mut []);
        tag.ok()?.as_ref().try_into().ok()
    }

    /// Returns whether a holder of the signing key framed these bytes as record `seq` of this
    /// incarnation.
    pub(crate) fn verify(&self, seq: u64, frame: &[u8], tag: &[u8]) -> bool {
        self.tag(seq, frame)
            .is_some_and(|own| verify_slices_are_equal(&own, tag).is_ok())
    }
}
