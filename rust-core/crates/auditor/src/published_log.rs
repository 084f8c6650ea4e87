//! The published part of the aggregate log: the newest checkpoint that a quorum of witnesses has cosigned, and the tiles
//! and proofs under it.

use crate::files::{CHECKPOINT_FILE, first_entries, read, write};
use crate::tile::{Tile, node_at, source_tile, subtree_root};
use crate::{AuditorError, StateStorage};
use proofgate_ledger::{
    Checkpoint, Hash, LedgerError, NodeReader, SignedCheckpoint, TlogProof, TrustPolicy, consistency_proof,
    inclusion_proof, tree_root,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// Bytes of a hash.
const HASH_LEN: usize = 32;

/// The published part of an aggregate log. Its readers never wait for the writer.
pub struct PublishedLog {
    state: Arc<dyn StateStorage>,
    policy: Arc<TrustPolicy>,
    heads: RwLock<Heads>,
    /// A lock that is held while the published checkpoint is replaced, so that an older checkpoint
    /// never replaces a newer one.
    publish_lock: Mutex<()>,
}

/// The sizes and signed notes of the signed and the published head.
#[derive(Default)]
struct Heads {
    /// The newest head that the auditor has signed.
    signed: (u64, String),
    /// The newest head that readers may receive; never newer than `signed`.
    published: Option<(u64, String)>,
}

impl PublishedLog {
    pub(crate) fn new(state: Arc<dyn StateStorage>, policy: Arc<TrustPolicy>) -> Self {
        Self {
            state,
            policy,
            heads: RwLock::default(),
            publish_lock: Mutex::default(),
        }
    }

    /// Returns the newest published checkpoint: its size and the signed note. `None` until a quorum
    /// of witnesses has cosigned a checkpoint.
    #[must_use]
    pub fn checkpoint(&self) -> Option<(u64, String)> {
        self.with_heads(|heads| heads.published.clone())
    }

    /// Returns the checkpoint that the auditor has signed last, which witnesses are asked to
    /// cosign.
    pub(crate) fn signed_checkpoint(&self) -> (u64, String) {
        self.with_heads(|heads| heads.signed.clone())
    }

    fn published_size(&self) -> Option<u64> {
        self.with_heads(|heads| heads.published.as_ref().map(|(size, _)| *size))
    }

    fn signed_size(&self) -> u64 {
        self.with_heads(|heads| heads.signed.0)
    }

    fn with_heads<T>(&self, see: impl FnOnce(&Heads) -> T) -> T {
        see(&self.heads.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn update_heads(&self, change: impl FnOnce(&mut Heads)) {
        change(&mut self.heads.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Locks the published checkpoint against replacement by others.
    pub(crate) fn lock_publication(&self) -> MutexGuard<'_, ()> {
        self.publish_lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the signed checkpoint, which is already durable. If no cosignature is needed, it is
    /// published immediately.
    pub(crate) fn set_signed_checkpoint(&self, size: u64, note: String) -> Result<(), AuditorError> {
        let _writing = self.lock_publication();
        if self.policy.is_quorum(&|_| false) {
            write(&*self.state, CHECKPOINT_FILE, note.as_bytes())?;
            self.update_heads(|heads| heads.published = Some((size, note.clone())));
        }
        self.update_heads(|heads| heads.signed = (size, note));
        Ok(())
    }

    /// Publishes a checkpoint durably. The note has the cosignatures of a quorum, or more
    /// cosignatures than the published note.
    pub(crate) fn publish(&self, size: u64, note: String) -> Result<(), AuditorError> {
        let _writing = self.lock_publication();
        if self.published_size().is_some_and(|newest| newest > size) {
            return Ok(());
        }
        write(&*self.state, CHECKPOINT_FILE, note.as_bytes())?;
        self.update_heads(|heads| heads.published = Some((size, note)));
        Ok(())
    }

    /// Restores the signed and the published checkpoint from the state. Both must belong to the
    /// same tree. The caller holds [`Self::publish_lock`].
    pub(crate) fn restore(
        &self,
        signed: (u64, String),
        published: Option<(String, Checkpoint)>,
    ) -> Result<(), AuditorError> {
        let corrupt = |reason: String| AuditorError::corrupt(CHECKPOINT_FILE, reason);
        self.update_heads(|heads| heads.signed = signed.clone());
        let mut public = None;
        if let Some((note, checkpoint)) = published {
            if checkpoint.size > 0 && tree_root(self, checkpoint.size)? != checkpoint.root {
                return Err(corrupt(
                    "it is a checkpoint of a tree that differs from the signed tree".to_owned(),
                ));
            }
            let cosigned = SignedCheckpoint::parse(&note)
                .and_then(|note| self.policy.is_cosigned(&note))
                .map_err(|error| corrupt(error.to_string()))?;
            public = cosigned.then_some((checkpoint.size, note));
        }
        if self.policy.is_quorum(&|_| false) {
            if public.as_ref().is_none_or(|(size, _)| *size < signed.0) {
                write(&*self.state, CHECKPOINT_FILE, signed.1.as_bytes())?;
                public = Some(signed);
            }
        } else if let Some((_, note)) = public
            .as_ref()
            .filter(|public| self.checkpoint().as_ref() != Some(*public))
        {
            // The file may have been renamed but not synced. Write it again, so that a reader that
            // has seen this checkpoint never finds an older one.
            write(&*self.state, CHECKPOINT_FILE, note.as_bytes())?;
        }
        self.update_heads(|heads| heads.published = public);
        Ok(())
    }

    /// Returns the consistency proof from an older size to a signed size, for a witness.
    pub(crate) fn proof_for_witness(&self, old: u64, new: u64) -> Result<Vec<Hash>, AuditorError> {
        match old {
            0 => Ok(Vec::new()),
            old => consistency_proof(self, old, new),
        }
    }

    /// Returns the contents of a path of c2sp.org/tlog-tiles, except `checkpoint`; `None` when the
    /// newest published checkpoint covers no such tile.
    ///
    /// # Errors
    /// [`AuditorError::State`], [`AuditorError::StateCorrupt`].
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, AuditorError> {
        let Some(tile) = Tile::parse(path) else {
            return Ok(None);
        };
        let Some(size) = self.published_size() else {
            return Ok(None);
        };
        match Tile::at(tile.level, tile.index, size).filter(|whole| tile.width <= whole.width) {
            Some(_) => self.tile(tile).map(Some),
            None => Ok(None),
        }
    }

    /// Returns a signed tile. A partial tile may be requested although only the full tile is
    /// stored.
    pub(crate) fn tile(&self, tile: Tile) -> Result<Vec<u8>, AuditorError> {
        let name = tile.path();
        // The writer may replace the stored tile by a wider tile during this search.
        for _ in 0..8 {
            let Some(whole) = Tile::at(tile.level, tile.index, self.signed_size()) else {
                break;
            };
            let Some(mut bytes) = read(&*self.state, &whole.path())? else {
                continue;
            };
            let wanted = match tile.level {
                Some(_) => Some(tile.width as usize * HASH_LEN).filter(|wanted| *wanted <= bytes.len()),
                None => first_entries(&bytes, tile.width).map(<[u8]>::len),
            };
            let wanted = wanted.ok_or_else(|| AuditorError::corrupt(&name, "it is too short"))?;
            bytes.truncate(wanted);
            return Ok(bytes);
        }
        Err(AuditorError::corrupt(&name, "it is missing"))
    }

    /// Returns the proof that entry `index` is in the log of `size` entries (RFC 9162 section 2.1.3.1).
    ///
    /// # Errors
    /// [`AuditorError::OutOfRange`]; same as [`Self::read`].
    pub fn inclusion_proof(&self, index: u64, size: u64) -> Result<Vec<Hash>, AuditorError> {
        self.check_covered(size)?;
        if index >= size {
            return Err(AuditorError::OutOfRange(format!(
                "entry {index} does not exist: there are {size} entries"
            )));
        }
        inclusion_proof(self, index, size)
    }

    /// Returns the proof that the log of `old` entries is a prefix of the log of `new` entries (RFC
    /// 9162 section 2.1.4.1).
    ///
    /// # Errors
    /// [`AuditorError::OutOfRange`]; same as [`Self::read`].
    pub fn consistency_proof(&self, old: u64, new: u64) -> Result<Vec<Hash>, AuditorError> {
        self.check_covered(new)?;
        if old == 0 || old > new {
            return Err(AuditorError::OutOfRange(format!(
                "there is no consistency proof from {old} entries to {new}"
            )));
        }
        consistency_proof(self, old, new)
    }

    /// Returns the proof that entry `index` is under the newest published checkpoint, together with
    /// that checkpoint, as a file of c2sp.org/tlog-proof; `None` until a checkpoint is published.
    ///
    /// # Errors
    /// [`AuditorError::OutOfRange`]; same as [`Self::read`].
    pub fn tlog_proof(&self, index: u64) -> Result<Option<String>, AuditorError> {
        let Some((size, checkpoint)) = self.checkpoint() else {
            return Ok(None);
        };
        let proof = TlogProof {
            extra: None,
            index,
            hashes: self.inclusion_proof(index, size)?,
            checkpoint,
        };
        Ok(Some(proof.encode()))
    }

    fn check_covered(&self, size: u64) -> Result<(), AuditorError> {
        match self.published_size().unwrap_or(0) {
            newest if size <= newest => Ok(()),
            newest => Err(AuditorError::OutOfRange(format!(
                "the newest checkpoint covers {newest} entries, not {size}"
            ))),
        }
    }
}

impl NodeReader for PublishedLog {
    type Error = AuditorError;

    fn node(&self, position: u64) -> Result<Hash, AuditorError> {
        let (level, index) = node_at(position);
        let (level, number, first, count) = source_tile(level, index);
        let size = self.signed_size();
        let missing = || AuditorError::from(LedgerError::MissingNode { position });
        let tile = Tile::at(Some(level), number, size).ok_or_else(missing)?;
        let hashes = parse_hashes(&tile.path(), &self.tile(tile)?)?;
        Ok(subtree_root(
            hashes.get(first..first + count).ok_or_else(missing)?,
        ))
    }
}

/// Returns the hashes of a tile, which must exist.
pub(crate) fn tile_hashes(state: &dyn StateStorage, tile: Tile) -> Result<Vec<Hash>, AuditorError> {
    let name = tile.path();
    let bytes = read(state, &name)?.ok_or_else(|| AuditorError::corrupt(&name, "it is missing"))?;
    let hashes = parse_hashes(&name, &bytes)?;
    match hashes.len() as u64 == tile.width {
        true => Ok(hashes),
        false => Err(AuditorError::corrupt(
            &name,
            "its width differs from the width in its name",
        )),
    }
}

fn parse_hashes(name: &str, bytes: &[u8]) -> Result<Vec<Hash>, AuditorError> {
    match bytes.as_chunks::<HASH_LEN>() {
        (hashes, []) => Ok(hashes.to_vec()),
        _ => Err(AuditorError::corrupt(
            name,
            "its length is not a multiple of 32 bytes",
        )),
    }
}
