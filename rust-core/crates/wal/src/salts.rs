//! Generates salts and writes them in blocks of 1024 before use, so that a record needs no second
//! write. If a block cannot be written, the log continues: the exchange is refused, and the same
//! block is written again later.

use crate::storage::{StoredFile, is_out_of_space, write_full};
use crate::{WalError, Watermark};
use proofgate_evidence::salts::SALT_LEN;
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use std::path::PathBuf;
use std::sync::Arc;

/// Number of salts that are written together.
pub(crate) const BLOCK_SALTS: u64 = 1024;

pub(crate) struct Salts {
    file: Arc<dyn StoredFile>,
    path: PathBuf,
    random: StdRng,
    /// Number of the written block that is in memory; `None` at the start.
    block: Option<u64>,
    salts: Vec<u8>,
}

impl Salts {
    pub(crate) fn new(file: Arc<dyn StoredFile>, path: PathBuf) -> Result<Self, WalError> {
        let random = StdRng::try_from_os_rng().map_err(|error| {
            WalError::InvalidOptions(format!("the system provides no randomness: {error}"))
        })?;
        Ok(Self {
            file,
            path,
            random,
            block: None,
            salts: vec![0; BLOCK_SALTS as usize * SALT_LEN],
        })
    }

    /// Returns the salt of record `seq`, which must not be before the newest block.
    pub(crate) fn salt(&mut self, seq: u64, watermark: &Watermark) -> Result<[u8; SALT_LEN], WalError> {
        let block = seq / BLOCK_SALTS;
        if self.block != Some(block) {
            if self.block.is_some_and(|current| block < current) {
                return Err(WalError::SaltUnavailable { seq });
            }
            self.write_block(block, watermark)?;
        }
        let at = (seq % BLOCK_SALTS) as usize * SALT_LEN;
        let mut salt = [0; SALT_LEN];
        salt.copy_from_slice(&self.salts[at..at + SALT_LEN]);
        Ok(salt)
    }

    fn write_block(&mut self, block: u64, watermark: &Watermark) -> Result<(), WalError> {
        self.block = None;
        self.random.fill_bytes(&mut self.salts);
        let bytes = self.salts.len() as u64;
        write_full(&*self.file, &self.salts, block * bytes).map_err(|error| {
            if is_out_of_space(&error) {
                WalError::OutOfSpace { bytes }
            } else {
                WalError::io("write", &self.path)(error)
            }
        })?;
        self.block = Some(block);
        watermark.set_salt_blocks(block + 1);
        Ok(())
    }
}
