//! Keys of tenants that lie off the ledger's volume: each salt of an exchange needs one, so destroying a key makes all
//! that was said under it unopenable, in every copy of the volume (crypto-shredding).
//!
//! The volume holds a random half of each salt. The salt is `HMAC-SHA256(key, "proofgate/v1/split-salt" ‖ 0x00 ‖ half)`:
//! neither key nor half alone tells anything of it. `docs/ledger.md`, section 5.

use crate::record::ShredKeyId;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop};

const ID_DOMAIN: &[u8] = b"proofgate/v1/shred-key-id\0";
const SALT_DOMAIN: &[u8] = b"proofgate/v1/split-salt\0";
const PAYLOAD_DOMAIN: &[u8] = b"proofgate/v1/payload-key\0";

/// A tenant's secret of 32 bytes that lies off the ledger's volume. Its memory is zeroed when it is dropped, and `Debug`
/// shows its id alone.
pub struct ShredKey {
    id: ShredKeyId,
    /// Made ready once, for every exchange needs it.
    keyed: Hmac<Sha256>,
}

impl ShredKey {
    /// Takes the secret.
    #[must_use]
    pub fn new(mut key: [u8; 32]) -> Self {
        let digest = Sha256::new_with_prefix(ID_DOMAIN).chain_update(key).finalize();
        let mut id = [0; 8];
        id.copy_from_slice(&digest[..8]);
        // A key of 32 bytes is shorter than the block, so it is padded and never hashed or refused.
        let mut block = [0u8; 64];
        block[..32].copy_from_slice(&key);
        let mut block = block.into();
        let keyed = Hmac::new(&block);
        key.zeroize();
        block.zeroize();
        Self {
            id: ShredKeyId(id),
            keyed,
        }
    }

    /// What admissions name it by: the first 8 bytes of `SHA-256("proofgate/v1/shred-key-id" ‖ 0x00 ‖ key)`.
    #[must_use]
    pub fn id(&self) -> ShredKeyId {
        self.id
    }

    /// The salt of an exchange, from the half that the volume holds: `HMAC-SHA256(key, "proofgate/v1/split-salt" ‖ 0x00 ‖ half)`.
    #[must_use]
    pub fn salt(&self, half: &[u8; 32]) -> [u8; 32] {
        self.derive(SALT_DOMAIN, half)
    }

    /// The key to the stored payloads of an exchange, from its salt: `HMAC-SHA256(key, "proofgate/v1/payload-key" ‖ 0x00 ‖
    /// salt)`. Whoever is given the salt to open commitments cannot open payloads with it.
    #[must_use]
    pub fn payload_key(&self, salt: &[u8; 32]) -> [u8; 32] {
        self.derive(PAYLOAD_DOMAIN, salt)
    }

    fn derive(&self, domain: &[u8], input: &[u8; 32]) -> [u8; 32] {
        let mut mac = self.keyed.clone();
        mac.update(domain);
        mac.update(input);
        mac.finalize().into_bytes().into()
    }
}

/// The HMAC's states zero themselves.
impl ZeroizeOnDrop for ShredKey {}

impl std::fmt::Debug for ShredKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "ShredKey({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::ShredKey;
    use sha2::Sha256;

    fn counted(from: u8) -> [u8; 32] {
        std::array::from_fn(|at| from + u8::try_from(at).unwrap())
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_vectors_that_others_must_reach_hold() {
        // Of Python's hashlib and hmac.
        let key = ShredKey::new(counted(0));
        assert_eq!(key.id().to_string(), "a3231e094fea5a0d");
        let salt = key.salt(&counted(32));
        assert_eq!(
            hex(&salt),
            "21fee6e9cb30190ba226bf0c28c667da0fe66be9623ce37858a209568382c66c"
        );
        assert_eq!(
            hex(&key.payload_key(&salt)),
            "712f54eb9d704d370f1e824ed262e2ea170a40f4b6981045ea2d748e8d5472c1"
        );
    }

    #[test]
    fn another_key_or_half_leads_to_another_salt_and_payload_keys_are_no_salts() {
        let (key, other) = (ShredKey::new(counted(0)), ShredKey::new(counted(1)));
        assert_ne!(key.id(), other.id());
        assert_ne!(key.salt(&counted(32)), other.salt(&counted(32)));
        assert_ne!(key.salt(&counted(32)), key.salt(&counted(33)));
        assert_ne!(key.salt(&counted(32)), key.payload_key(&counted(32)));
    }

    #[test]
    fn it_shows_nothing_of_itself_and_its_state_is_zeroed() {
        let key = ShredKey::new(counted(0));
        assert_eq!(format!("{key:?}"), format!("ShredKey({})", key.id()));
        fn zeroes<T: zeroize::ZeroizeOnDrop>() {}
        zeroes::<Sha256>();
        zeroes::<ShredKey>();
    }
}
