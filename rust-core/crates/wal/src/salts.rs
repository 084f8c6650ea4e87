//! The `salts` file: 32 random bytes for each record number, at `32 × seq`.
//!
//! Salts are written in blocks of 1024 before any of them is used, so that a record pays no second write. A block that
//! could not be written is no failure of the log: the exchange is refused and the same block is written again later.

use crate::storage::{StoredFile, is_no_space, write_full};
use crate::{WalError, Watermark};
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file.
pub(crate) const SALTS: &str = "salts";
/// Bytes of a salt.
pub(crate) const SALT: usize = 32;
/// Salts written at once.
pub(crate) const BLOCK: u64 = 1024;

pub(crate) struct Salts {
    file: Arc<dyn StoredFile>,
    path: PathBuf,
    random: StdRng,
    /// Number of the block in memory, which has been written; none at the start.
    block: Option<u64>,
    salts: Vec<u8>,
}

impl Salts {
    pub(crate) fn new(file: Arc<dyn StoredFile>, path: PathBuf) -> Result<Self, WalError> {
        let random = StdRng::try_from_os_rng()
            .map_err(|error| WalError::Options(format!("the system gives no randomness: {error}")))?;
        Ok(Self {
            file,
            path,
            random,
            block: None,
            salts: vec![0; BLOCK as usize * SALT],
        })
    }

    /// The salt of record `seq`, which must not lie before the newest block.
    pub(crate) fn salt(&mut self, seq: u64, watermark: &Watermark) -> Result<[u8; SALT], WalError> {
        let block = seq / BLOCK;
        if self.block != Some(block) {
            if self.block.is_some_and(|current| block < current) {
                return Err(WalError::SaltNotAtHand { seq });
            }
            self.write_block(block, watermark)?;
        }
        let at = (seq % BLOCK) as usize * SALT;
        let mut salt = [0; SALT];
        salt.copy_from_slice(&self.salts[at..at + SALT]);
        Ok(salt)
    }

    fn write_block(&mut self, block: u64, watermark: &Watermark) -> Result<(), WalError> {
        self.block = None;
        self.random.fill_bytes(&mut self.salts);
        let bytes = self.salts.len() as u64;
        write_full(&*self.file, &self.salts, block * bytes).map_err(|error| {
            if is_no_space(&error) {
                WalError::Full { bytes }
            } else {
                WalError::io("write", &self.path)(error)
            }
        })?;
        self.block = Some(block);
        watermark.set_salt_blocks(block + 1);
        Ok(())
    }
}

/// The stored salt of record `seq` of an incarnation, to open its commitments; `None` when it was never written or has
/// been erased (all zeros).
///
/// # Errors
/// [`WalError::Io`] when the file cannot be read.
pub fn stored_salt(
    storage: &dyn crate::Storage,
    incarnation_dir: &Path,
    seq: u64,
) -> Result<Option<[u8; SALT]>, WalError> {
    let path = incarnation_dir.join(SALTS);
    let file = storage.open(&path).map_err(WalError::io("open", &path))?;
    let mut salt = [0; SALT];
    let Some(offset) = seq.checked_mul(SALT as u64) else {
        return Ok(None);
    };
    let read = crate::storage::read_full(&*file, &mut salt, offset).map_err(WalError::io("read", &path))?;
    Ok((read == SALT && salt != [0; SALT]).then_some(salt))
}
