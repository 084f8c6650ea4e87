//! The aggregate log: an append-only tree of entries, stored as tiles (c2sp.org/tlog-tiles) and signed with the
//! auditor's own key.
//!
//! An append writes bundles and tiles, then `signed`, the note that covers them, then `checkpoint`,
//! the same note for readers. If the policy requires cosignatures, `checkpoint` is written after
//! the witnesses have cosigned ([`CosigningCoordinator`](crate::CosigningCoordinator)). With
//! `signed`, this auditor commits to a tree. After a crash or a failed call, `signed` defines the
//! log: any tiles after it were never signed and are written again. No size therefore ever has two
//! roots.

use crate::files::{CHECKPOINT_FILE, LENGTH_PREFIX_LEN, read, write};
use crate::published_log::{PublishedLog, tile_hashes};
use crate::tile::{LEVELS, Tile, WIDTH, subtree_root};
use crate::{AuditorError, StateStorage};
use proofgate_ledger::{Checkpoint, Hash, Mmr, SigningKey, TrustPolicy, leaf_hash};
use std::sync::Arc;

/// Name of the file with the note to which the auditor has committed. It is never older than
/// [`CHECKPOINT_FILE`]. Witnesses are asked to cosign this note.
const SIGNED_FILE: &str = "signed";
/// The writer of an aggregate log.
pub struct AggregateWriter {
    state: Arc<dyn StateStorage>,
    key: SigningKey,
    edge: Edge,
    published: Arc<PublishedLog>,
    /// Whether an append failed, so that the log must be recovered from the state.
    needs_recovery: bool,
}

/// The state from which an append starts: the tiles at the right edge of the tree.
#[derive(Clone, Default)]
struct Edge {
    size: u64,
    /// Hashes of the last tile of each level, if it is not full.
    levels: Vec<Vec<Hash>>,
    /// The last bundle, if it is not full.
    bundle: Vec<u8>,
}

impl Edge {
    fn push(
        &mut self,
        entry: &[u8],
        full: &mut impl FnMut(Tile, &[u8]) -> Result<(), AuditorError>,
    ) -> Result<(), AuditorError> {
        let length = u16::try_from(entry.len()).map_err(|_| AuditorError::EntryTooLarge(entry.len()))?;
        let index = self.size / WIDTH;
        self.bundle.extend_from_slice(&length.to_be_bytes());
        self.bundle.extend_from_slice(entry);
        self.size += 1;
        if self.size.is_multiple_of(WIDTH) {
            let bundle = Tile {
                level: None,
                index,
                width: WIDTH,
            };
            full(bundle, &std::mem::take(&mut self.bundle))?;
        }
        let (mut hash, mut number) = (leaf_hash(entry), self.size);
        for level in 0..LEVELS {
            if self.levels.len() == level as usize {
                self.levels.push(Vec::new());
            }
            let tile = &mut self.levels[level as usize];
            tile.push(hash);
            if (tile.len() as u64) < WIDTH {
                break;
            }
            let hashes = std::mem::take(tile);
            number /= WIDTH;
            let tile = Tile {
                level: Some(level),
                index: number - 1,
                width: WIDTH,
            };
            full(tile, &hashes.concat())?;
            hash = subtree_root(&hashes);
        }
        Ok(())
    }

    fn root(&self) -> Result<Hash, AuditorError> {
        let mut peaks = Vec::new();
        for hashes in self.levels.iter().rev() {
            let mut rest = hashes.as_slice();
            while !rest.is_empty() {
                let (peak, others) = rest.split_at(1 << rest.len().ilog2());
                peaks.push(subtree_root(peak));
                rest = others;
            }
        }
        Ok(Mmr::from_peaks(self.size, peaks)?.root())
    }

    /// Returns the bundle and the tiles that are not full, with their bytes.
    fn partial_tiles(&self) -> Vec<(Tile, Vec<u8>)> {
        let levels = std::iter::once(None).chain((0..LEVELS).map(Some));
        let edges = levels.filter_map(|level| Tile::partial(level, self.size));
        edges
            .map(|tile| match tile.level {
                None => (tile, self.bundle.clone()),
                Some(level) => (tile, self.levels[level as usize].concat()),
            })
            .collect()
    }
}

impl AggregateWriter {
    /// Creates a log and signs a checkpoint of its empty tree. `policy` defines the cosignatures
    /// that a checkpoint needs before publication.
    ///
    /// # Errors
    /// [`AuditorError::StateExists`]; [`AuditorError::State`].
    pub fn create(
        state: Arc<dyn StateStorage>,
        key: SigningKey,
        policy: Arc<TrustPolicy>,
    ) -> Result<Self, AuditorError> {
        if read(&*state, SIGNED_FILE)?.is_some() || read(&*state, CHECKPOINT_FILE)?.is_some() {
            return Err(AuditorError::StateExists);
        }
        let edge = Edge::default();
        let note = sign_checkpoint(&key, &edge)?;
        write(&*state, SIGNED_FILE, note.as_bytes())?;
        let published = Arc::new(PublishedLog::new(Arc::clone(&state), policy));
        published.set_signed_checkpoint(0, note)?;
        Ok(Self {
            state,
            key,
            edge,
            published,
            needs_recovery: false,
        })
    }

    /// Opens an existing log.
    ///
    /// # Errors
    /// [`AuditorError::NoState`]; [`AuditorError::StateCorrupt`] when the tiles do not lead to the
    /// signed root; [`AuditorError::State`].
    pub fn open(
        state: Arc<dyn StateStorage>,
        key: SigningKey,
        policy: Arc<TrustPolicy>,
    ) -> Result<Self, AuditorError> {
        let published = Arc::new(PublishedLog::new(Arc::clone(&state), policy));
        let edge = recover(&*state, &key, &published)?;
        Ok(Self {
            state,
            key,
            edge,
            published,
            needs_recovery: false,
        })
    }

    /// Returns the published part of the log. Its readers never wait for the writer.
    #[must_use]
    pub fn published_log(&self) -> Arc<PublishedLog> {
        Arc::clone(&self.published)
    }

    /// Returns the log's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.key.name()
    }

    /// Signs a checkpoint of a log whose name is below the name of this log.
    pub(crate) fn sign_for_sublog(&self, checkpoint: &Checkpoint) -> Result<String, AuditorError> {
        Ok(checkpoint.sign(&self.key)?)
    }

    /// Returns the number of entries.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.edge.size
    }

    /// Appends entries durably and signs a checkpoint that covers them. If no cosignature is
    /// needed, the checkpoint is also published.
    ///
    /// After an error it is unknown whether the entries were appended, until [`Self::recover`]
    /// returns.
    ///
    /// # Errors
    /// [`AuditorError::EntryTooLarge`], in which case nothing was appended;
    /// [`AuditorError::State`]; [`AuditorError::StateCorrupt`].
    pub fn append(&mut self, entries: &[Vec<u8>]) -> Result<(), AuditorError> {
        self.recover()?;
        if let Some(large) = entries.iter().find(|entry| entry.len() > usize::from(u16::MAX)) {
            return Err(AuditorError::EntryTooLarge(large.len()));
        }
        if entries.is_empty() {
            return Ok(());
        }
        self.needs_recovery = true;
        let before = self.edge.partial_tiles();
        let mut edge = self.edge.clone();
        for entry in entries {
            edge.push(entry, &mut |tile, bytes| write(&*self.state, &tile.path(), bytes))?;
        }
        let partial = edge.partial_tiles();
        for (tile, bytes) in partial.iter().filter(|tile| !before.contains(tile)) {
            write(&*self.state, &tile.path(), bytes)?;
        }
        let note = sign_checkpoint(&self.key, &edge)?;
        write(&*self.state, SIGNED_FILE, note.as_bytes())?;
        self.published.set_signed_checkpoint(edge.size, note)?;
        self.edge = edge;
        self.needs_recovery = false;
        for (tile, _) in before.iter().filter(|tile| !partial.contains(tile)) {
            // Ignore a failure: a remaining file only takes space.
            let _ = self.state.remove(&tile.path());
        }
        Ok(())
    }

    /// Restores the log from the state after a failed append.
    ///
    /// # Errors
    /// Same as [`Self::open`].
    pub fn recover(&mut self) -> Result<(), AuditorError> {
        if self.needs_recovery {
            self.edge = recover(&*self.state, &self.key, &self.published)?;
            self.needs_recovery = false;
        }
        Ok(())
    }

    /// Returns the entries from `from` on.
    ///
    /// # Errors
    /// [`AuditorError::StateCorrupt`]; [`AuditorError::State`].
    pub fn read_entries(&self, from: u64) -> Result<Vec<Vec<u8>>, AuditorError> {
        let mut entries = Vec::new();
        let mut index = from / WIDTH;
        while let Some(tile) = Tile::at(None, index, self.edge.size) {
            let bundle = self.published.tile(tile)?;
            let skipped = from.saturating_sub(index * WIDTH) as usize;
            entries.extend(
                split_bundle(&tile.path(), &bundle)?
                    .into_iter()
                    .skip(skipped)
                    .map(<[u8]>::to_vec),
            );
            index += 1;
        }
        Ok(entries)
    }
}

/// Reads the committed note, compares the edge of the tree with it, makes it durable and, if no
/// cosignature is needed, publishes it.
fn recover(
    state: &dyn StateStorage,
    key: &SigningKey,
    published: &PublishedLog,
) -> Result<Edge, AuditorError> {
    let _writing = published.lock_publication();
    let checkpoint = read_note(state, CHECKPOINT_FILE, key)?;
    let Some((note, signed)) = read_note(state, SIGNED_FILE, key)? else {
        return Err(match checkpoint {
            None => AuditorError::NoState,
            Some(_) => {
                AuditorError::corrupt(SIGNED_FILE, "it is missing, although the state has a checkpoint")
            }
        });
    };
    if let Some((_, public)) = &checkpoint
        && public.size > signed.size
    {
        let reason = format!(
            "it states {} entries, but only {} were signed",
            public.size, signed.size
        );
        return Err(AuditorError::corrupt(CHECKPOINT_FILE, reason));
    }
    let edge = read_edge(state, signed.size)?;
    if edge.root()? != signed.root {
        return Err(AuditorError::corrupt(
            SIGNED_FILE,
            "the tiles do not hash to the signed root",
        ));
    }
    if checkpoint.as_ref().is_none_or(|(_, public)| *public != signed) {
        // The file may have been renamed but not synced, so write it again.
        write(state, SIGNED_FILE, note.as_bytes())?;
    }
    published.restore((edge.size, note), checkpoint)?;
    Ok(edge)
}

fn read_edge(state: &dyn StateStorage, size: u64) -> Result<Edge, AuditorError> {
    let mut edge = Edge {
        size,
        ..Edge::default()
    };
    for level in 0..LEVELS {
        edge.levels.push(match Tile::partial(Some(level), size) {
            Some(tile) => tile_hashes(state, tile)?,
            None => Vec::new(),
        });
    }
    if let Some(tile) = Tile::partial(None, size) {
        let name = tile.path();
        edge.bundle = read(state, &name)?.ok_or_else(|| AuditorError::corrupt(&name, "it is missing"))?;
        let leaves: Vec<Hash> = split_bundle(&name, &edge.bundle)?
            .into_iter()
            .map(leaf_hash)
            .collect();
        if edge.levels.first() != Some(&leaves) {
            return Err(AuditorError::corrupt(
                &name,
                "its entries do not match the tile above them",
            ));
        }
    }
    while edge.levels.last().is_some_and(Vec::is_empty) {
        edge.levels.pop();
    }
    Ok(edge)
}

fn read_note(
    state: &dyn StateStorage,
    name: &str,
    key: &SigningKey,
) -> Result<Option<(String, Checkpoint)>, AuditorError> {
    let Some(bytes) = read(state, name)? else {
        return Ok(None);
    };
    let note = String::from_utf8(bytes).map_err(|_| AuditorError::corrupt(name, "it is not UTF-8"))?;
    let checkpoint = Checkpoint::verify(&note, &key.verifying_key())
        .map_err(|error| AuditorError::corrupt(name, format!("{error}: was it signed by another key?")))?;
    if checkpoint.origin != key.name() {
        return Err(AuditorError::corrupt(
            name,
            format!("it belongs to the log {}", checkpoint.origin),
        ));
    }
    Ok(Some((note, checkpoint)))
}

fn sign_checkpoint(key: &SigningKey, edge: &Edge) -> Result<String, AuditorError> {
    let checkpoint = Checkpoint {
        origin: key.name().to_owned(),
        size: edge.size,
        root: edge.root()?,
    };
    Ok(checkpoint.sign(key)?)
}

/// Splits a bundle into its entries.
fn split_bundle<'b>(name: &str, bundle: &'b [u8]) -> Result<Vec<&'b [u8]>, AuditorError> {
    let mut entries = Vec::new();
    let mut rest = bundle;
    while let Some((length, behind)) = rest.split_first_chunk::<LENGTH_PREFIX_LEN>() {
        let length = usize::from(u16::from_be_bytes(*length));
        let (entry, behind) = behind
            .split_at_checked(length)
            .ok_or_else(|| AuditorError::corrupt(name, "an entry extends past its end"))?;
        entries.push(entry);
        rest = behind;
    }
    match rest {
        [] => Ok(entries),
        _ => Err(AuditorError::corrupt(name, "an entry extends past its end")),
    }
}
