//! Keyed hashes that identify texts.
//!
//! A tag is the GHASH of a text under a secret random key (the authentication tag of AES-GCM with the text as associated
//! data and a fixed nonce, NIST SP 800-38D). GHASH is a universal hash: two different texts of `n` bytes, chosen without
//! knowledge of the key, have the same tag with a probability of at most `n / 16 + 1` in 2^128. Reusing a nonce would reveal
//! the key to anyone who sees tags, but tags never leave the memory of the process.

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

/// Bytes that are hashed together: some 10 µs. For a longer text, the tags of its blocks are hashed.
pub(crate) const BLOCK_BYTES: usize = 1 << 18;

/// The hash of a text or of the conditions of its scan.
pub(crate) type Tag = [u8; 16];

/// The kind of data that is hashed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TagKind {
    /// The conditions of a scan.
    Conditions = 0,
    /// A text, or a block of a longer one.
    Text = 1,
    /// The tags of the blocks of a text.
    Blocks = 2,
    /// The name of a tenant.
    Tenant = 3,
}

/// Computes tags with a secret key.
pub(crate) struct Tagger(LessSafeKey);

impl Tagger {
    /// Creates a tagger with a new key; `None` if the system has no random numbers.
    pub(crate) fn new() -> Option<Self> {
        let mut secret = [0; 16];
        aws_lc_rs::rand::fill(&mut secret).ok()?;
        let key = UnboundKey::new(&AES_128_GCM, &secret).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    pub(crate) fn tag(&self, kind: TagKind, bytes: &[u8]) -> Option<Tag> {
        let mut nonce = [0; NONCE_LEN];
        nonce[0] = kind as u8;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = self
            .0
            .seal_in_place_separate_tag(nonce, Aad::from(bytes), &mut [])
            .ok()?;
        sealed.as_ref().try_into().ok()
    }
}

/// The hash of one text, block by block.
#[derive(Debug, Default)]
pub(crate) struct TextHasher {
    /// The tags of the blocks, if there are several.
    blocks: Vec<u8>,
}

/// The progress of a hash.
pub(crate) enum HashProgress<T> {
    /// There are more blocks.
    Pending,
    /// The result.
    Done(T),
}

impl TextHasher {
    /// Hashes the next block of `text`, which must be the same in every step; `None` if that fails.
    pub(crate) fn step(&mut self, tagger: &Tagger, text: &[u8]) -> Option<HashProgress<Tag>> {
        if text.len() <= BLOCK_BYTES {
            return tagger.tag(TagKind::Text, text).map(HashProgress::Done);
        }
        let hashed = self.blocks.len() / size_of::<Tag>() * BLOCK_BYTES;
        let rest = text.get(hashed..).unwrap_or_default();
        let block = rest.get(..BLOCK_BYTES).unwrap_or(rest);
        self.blocks.extend_from_slice(&tagger.tag(TagKind::Text, block)?);
        if rest.len() > BLOCK_BYTES {
            return Some(HashProgress::Pending);
        }
        tagger.tag(TagKind::Blocks, &self.blocks).map(HashProgress::Done)
    }

    pub(crate) fn restart(&mut self) {
        self.blocks.clear();
    }
}
