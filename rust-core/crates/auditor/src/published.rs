//! What readers have of the aggregate log: the newest checkpoint, and the tiles and proofs under it.

use crate::aggregate::{first_entries, read};
use crate::tile::{Tile, hashes_of, node_at, root_of};
use crate::{AuditorError, StateStorage};
use proofgate_ledger::{Hash, LedgerError, NodeReader, consistency_proof, inclusion_proof};
use std::sync::{Arc, PoisonError, RwLock};

/// Bytes of a hash.
const HASH: usize = 32;

/// The published part of an aggregate log. It never waits for whoever writes that.
pub struct Published {
    state: Arc<dyn StateStorage>,
    newest: RwLock<(u64, String)>,
}

impl Published {
    pub(crate) fn new(state: Arc<dyn StateStorage>, size: u64, note: String) -> Self {
        Self {
            state,
            newest: RwLock::new((size, note)),
        }
    }

    pub(crate) fn set(&self, size: u64, note: String) {
        *self.newest.write().unwrap_or_else(PoisonError::into_inner) = (size, note);
    }

    /// The newest checkpoint: its size and the signed note.
    #[must_use]
    pub fn checkpoint(&self) -> (u64, String) {
        self.newest.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What stands at a path of c2sp.org/tlog-tiles, other than `checkpoint`; `None` when the newest checkpoint covers no
    /// such tile.
    ///
    /// # Errors
    /// [`AuditorError::State`], [`AuditorError::StateCorrupt`].
    pub fn read(&self, path: &str) -> Result<Option<Vec<u8>>, AuditorError> {
        let Some(tile) = Tile::parse(path) else {
            return Ok(None);
        };
        let (size, _) = self.checkpoint();
        match Tile::at(tile.level, tile.index, size).filter(|whole| tile.width <= whole.width) {
            Some(_) => self.tile(tile).map(Some),
            None => Ok(None),
        }
    }

    /// A tile that the newest checkpoint covers, whose part may be asked for although only the whole is kept.
    pub(crate) fn tile(&self, tile: Tile) -> Result<Vec<u8>, AuditorError> {
        let name = tile.path();
        // The writer may put a wider one in the place of the one that is kept while this looks for it.
        for _ in 0..8 {
            let (size, _) = self.checkpoint();
            let Some(whole) = Tile::at(tile.level, tile.index, size) else {
                break;
            };
            let Some(mut bytes) = read(&*self.state, &whole.path())? else {
                continue;
            };
            let wanted = match tile.level {
                Some(_) => Some(tile.width as usize * HASH).filter(|wanted| *wanted <= bytes.len()),
                None => first_entries(&bytes, tile.width).map(<[u8]>::len),
            };
            let wanted = wanted.ok_or_else(|| AuditorError::corrupt(&name, "it is too short"))?;
            bytes.truncate(wanted);
            return Ok(bytes);
        }
        Err(AuditorError::corrupt(&name, "it is gone"))
    }

    /// The proof that entry `index` is in the log of `size` entries (RFC 9162 section 2.1.3.1).
    ///
    /// # Errors
    /// [`AuditorError::Range`]; as [`Self::read`].
    pub fn inclusion(&self, index: u64, size: u64) -> Result<Vec<Hash>, AuditorError> {
        self.covered(size)?;
        if index >= size {
            return Err(AuditorError::Range(format!("entry {index} is not among {size}")));
        }
        inclusion_proof(self, index, size)
    }

    /// The proof that the log of `old` entries is the beginning of the log of `new` ones (RFC 9162 section 2.1.4.1).
    ///
    /// # Errors
    /// [`AuditorError::Range`]; as [`Self::read`].
    pub fn consistency(&self, old: u64, new: u64) -> Result<Vec<Hash>, AuditorError> {
        self.covered(new)?;
        if old == 0 || old > new {
            return Err(AuditorError::Range(format!(
                "no log of {old} entries is the beginning of one of {new}"
            )));
        }
        consistency_proof(self, old, new)
    }

    fn covered(&self, size: u64) -> Result<(), AuditorError> {
        match self.checkpoint().0 {
            newest if size <= newest => Ok(()),
            newest => Err(AuditorError::Range(format!(
                "the newest checkpoint covers {newest} entries, not {size}"
            ))),
        }
    }
}

impl NodeReader for Published {
    type Error = AuditorError;

    fn node(&self, position: u64) -> Result<Hash, AuditorError> {
        let (level, index) = node_at(position);
        let (level, number, first, count) = hashes_of(level, index);
        let (size, _) = self.checkpoint();
        let missing = || AuditorError::from(LedgerError::MissingNode { position });
        let tile = Tile::at(Some(level), number, size).ok_or_else(missing)?;
        let hashes = parse(&tile.path(), &self.tile(tile)?)?;
        Ok(root_of(hashes.get(first..first + count).ok_or_else(missing)?))
    }
}

/// The hashes of a tile, which must be there.
pub(crate) fn tile_hashes(state: &dyn StateStorage, tile: Tile) -> Result<Vec<Hash>, AuditorError> {
    let name = tile.path();
    let bytes = read(state, &name)?.ok_or_else(|| AuditorError::corrupt(&name, "it is gone"))?;
    let hashes = parse(&name, &bytes)?;
    match hashes.len() as u64 == tile.width {
        true => Ok(hashes),
        false => Err(AuditorError::corrupt(&name, "it is not as wide as its name says")),
    }
}

fn parse(name: &str, bytes: &[u8]) -> Result<Vec<Hash>, AuditorError> {
    match bytes.as_chunks::<HASH>() {
        (hashes, []) => Ok(hashes.to_vec()),
        _ => Err(AuditorError::corrupt(name, "it does not consist of hashes")),
    }
}
