//! Shred keys: per-tenant keys stored outside the ledger's volume. The salt of each of a tenant's
//! exchanges is derived with such a key. Destroying the key makes it impossible to open these
//! commitments, in every copy of the volume (crypto-shredding).
//!
//! The volume holds a random half of each salt. The salt is `HMAC-SHA256(key,
//! "proofgate/v1/split-salt" ‖ 0x00 ‖ half)`: neither key nor half alone reveals anything about the
//! salt. See `docs/reference/ledger-format.md`, section 5.

use crate::LedgerError;
use crate::checkpoint::parse_hash;
use crate::record::ShredKeyId;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Maximum number of lines in a tenant's key file.
pub const MAX_SHRED_KEYS: usize = 64;
const ID_DOMAIN: &[u8] = b"proofgate/v1/shred-key-id\0";
const SALT_DOMAIN: &[u8] = b"proofgate/v1/split-salt\0";
const PAYLOAD_DOMAIN: &[u8] = b"proofgate/v1/payload-key\0";

/// A tenant's secret of 32 bytes that is stored outside the ledger's volume. Its memory is zeroed when it is dropped,
/// and `Debug` shows only its id.
pub struct ShredKey {
    id: ShredKeyId,
    /// The keyed HMAC state, prepared once because every exchange needs it.
    mac: Hmac<Sha256>,
}

impl ShredKey {
    /// Creates the key from the secret.
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
            mac: keyed,
        }
    }

    /// Parses a tenant's key file: one key per line, 32 bytes in base64, newest first. The first
    /// key is used for new exchanges. The other keys open older exchanges.
    ///
    /// # Errors
    /// [`LedgerError::ShredKeysMalformed`], whose message contains no part of the text.
    pub fn parse_file(text: &str) -> Result<Vec<Arc<Self>>, LedgerError> {
        let malformed = |reason| Err(LedgerError::ShredKeysMalformed(reason));
        if text.is_empty() {
            return malformed("it contains no key");
        }
        // Each key is in an `Arc`, because a growing list moves its contents and does not overwrite
        // the old memory.
        let mut keys: Vec<Arc<Self>> = Vec::new();
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            let Some(key) = parse_hash(line).filter(|key| *key != [0; 32]) else {
                return malformed("a line is not 32 bytes of strict base64");
            };
            let key = Arc::new(Self::new(key));
            if keys.iter().any(|known| known.id == key.id) {
                return malformed("it contains a key twice");
            }
            keys.push(key);
            if keys.len() > MAX_SHRED_KEYS {
                return malformed("it contains more than 64 keys");
            }
        }
        Ok(keys)
    }

    /// Returns the id by which admissions name the key: the first 8 bytes of
    /// `SHA-256("proofgate/v1/shred-key-id" ‖ 0x00 ‖ key)`.
    #[must_use]
    pub fn id(&self) -> ShredKeyId {
        self.id
    }

    /// Derives the salt of an exchange from the half on the volume: `HMAC-SHA256(key, "proofgate/v1/split-salt" ‖ 0x00
    /// ‖ half)`.
    #[must_use]
    pub fn derive_salt(&self, half: &[u8; 32]) -> [u8; 32] {
        self.derive(SALT_DOMAIN, half)
    }

    /// Derives the key to the stored payloads of an exchange from its salt: `HMAC-SHA256(key,
    /// "proofgate/v1/payload-key" ‖ 0x00 ‖ salt)`. Someone who receives the salt to open commitments cannot open
    /// payloads with it.
    #[must_use]
    pub fn derive_payload_key(&self, salt: &[u8; 32]) -> [u8; 32] {
        self.derive(PAYLOAD_DOMAIN, salt)
    }

    pub(crate) fn derive(&self, domain: &[u8], input: &[u8]) -> [u8; 32] {
        let mut mac = self.mac.clone();
        mac.update(domain);
        mac.update(input);
        mac.finalize().into_bytes().into()
    }
}

/// The HMAC state zeroes itself when it is dropped.
impl ZeroizeOnDrop for ShredKey {}

impl std::fmt::Debug for ShredKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "ShredKey({})", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_SHRED_KEYS, ShredKey};
    use base64::{Engine, engine::general_purpose::STANDARD};
    use proptest::prelude::*;
    use sha2::Sha256;

    fn counted(from: u8) -> [u8; 32] {
        std::array::from_fn(|at| from + u8::try_from(at).unwrap())
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn the_vectors_that_others_must_reach_hold() {
        // Computed with Python's hashlib and hmac.
        let key = ShredKey::new(counted(0));
        assert_eq!(key.id().to_string(), "a3231e094fea5a0d");
        let salt = key.derive_salt(&counted(32));
        assert_eq!(
            hex(&salt),
            "21fee6e9cb30190ba226bf0c28c667da0fe66be9623ce37858a209568382c66c"
        );
        assert_eq!(
            hex(&key.derive_payload_key(&salt)),
            "712f54eb9d704d370f1e824ed262e2ea170a40f4b6981045ea2d748e8d5472c1"
        );
    }

    #[test]
    fn another_key_or_half_leads_to_another_salt_and_payload_keys_are_no_salts() {
        let (key, other) = (ShredKey::new(counted(0)), ShredKey::new(counted(1)));
        assert_ne!(key.id(), other.id());
        assert_ne!(key.derive_salt(&counted(32)), other.derive_salt(&counted(32)));
        assert_ne!(key.derive_salt(&counted(32)), key.derive_salt(&counted(33)));
        assert_ne!(
            key.derive_salt(&counted(32)),
            key.derive_payload_key(&counted(32))
        );
    }

    #[test]
    fn it_shows_nothing_of_itself_and_its_state_is_zeroed() {
        let key = ShredKey::new(counted(0));
        assert_eq!(format!("{key:?}"), format!("ShredKey({})", key.id()));
        fn zeroes<T: zeroize::ZeroizeOnDrop>() {}
        zeroes::<Sha256>();
        zeroes::<ShredKey>();
    }
    fn file(keys: &[[u8; 32]]) -> String {
        keys.iter()
            .map(|key| format!("{}\n", STANDARD.encode(key)))
            .collect()
    }

    #[test]
    fn a_file_is_one_key_in_each_line_and_nothing_else() {
        let whole = file(&[counted(1), counted(2)]);
        assert_eq!(ShredKey::parse_file(&whole).unwrap().len(), 2);
        assert_eq!(ShredKey::parse_file(whole.trim_end()).unwrap().len(), 2);
        let bad = [
            String::new(),
            "\n".to_owned(),
            format!("{whole}\n"),
            format!("\n{whole}"),
            whole.replace('\n', "\r\n"),
            format!(" {whole}"),
            format!("{whole}{whole}"),
            format!("{}\n", STANDARD.encode([1; 31])),
            format!("{}\n", STANDARD.encode([1; 33])),
            whole.replace('=', ""),
            file(&[[0; 32]]),
            file(&std::array::from_fn::<_, { MAX_SHRED_KEYS + 1 }, _>(|at| {
                [u8::try_from(at + 1).unwrap(); 32]
            })),
        ];
        for text in bad {
            assert!(ShredKey::parse_file(&text).is_err(), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn keys_are_read_in_their_order(keys in prop::collection::hash_set(any::<[u8; 32]>(), 1..6)) {
            let keys: Vec<[u8; 32]> = keys.into_iter().filter(|key| *key != [0; 32]).collect();
            prop_assume!(!keys.is_empty());
            let read = ShredKey::parse_file(&file(&keys)).unwrap();
            let ids: Vec<_> = read.iter().map(|key| key.id()).collect();
            let expected: Vec<_> = keys.into_iter().map(|key| ShredKey::new(key).id()).collect();
            prop_assert_eq!(ids, expected);
        }

        #[test]
        fn text_from_outside_is_read_or_refused_and_no_refusal_repeats_it(text in "[A-Za-z0-9+/=\n]{0,200}|\\PC{0,60}") {
            if let Err(refused) = ShredKey::parse_file(&text) {
                let said = refused.to_string();
                prop_assert!(text.len() < 12 || !said.contains(&text));
            }
        }
    }
}
