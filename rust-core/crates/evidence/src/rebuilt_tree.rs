//! The nodes that are missing in a log's tree file. They are hashed once from the records, then
//! cached.
//!
//! A killed worker leaves a tree file without its last nodes. They are never added, because no file
//! has two writers. They can be computed from the records that the file does not cover. If these
//! records lead from the stored peaks to the signed root, no other record is hashed. Otherwise all
//! records are hashed.
//!
//! The cache holds the nodes over whole blocks of [`BLOCK_RECORDS`] records (about one byte per
//! record), and the nodes of the last block, which every proof needs. Nodes inside other blocks are
//! hashed from their records on request.

use crate::layout::incarnation_of;
use crate::log_reader::{LogItem, LogReader};
use crate::removal::missing_record_error;
use crate::time_search::find_record_position;
use crate::{EvidenceError, NODE_LEN, ReadStorage, TreeFile};
use proofgate_ledger::{
    Checkpoint, Hash, LedgerError, Mmr, NodeReader, leaf_hash, leaf_position, node_count, node_position,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Height of a block: the level of the lowest cached nodes.
const BLOCK_LEVEL: u32 = 6;
/// Number of records in a block.
const BLOCK_RECORDS: u64 = 1 << BLOCK_LEVEL;
/// Maximum total size of cached nodes for all logs, in bytes.
const MAX_CACHED_BYTES: usize = 32 << 20;
/// Maximum number of logs whose nodes are cached.
const MAX_CACHED_LOGS: usize = 256;

/// Rebuilt trees, the most recently built tree last. The tree of a root never changes, so it is the
/// same for every caller and in every copy of a ledger.
static CACHE: Mutex<VecDeque<Arc<RebuiltTree>>> = Mutex::new(VecDeque::new());

/// The nodes over whole blocks of a tree, from its block `start` on.
#[derive(Debug)]
pub(crate) struct RebuiltTree {
    size: u64,
    root: Hash,
    /// The first block that was hashed. The tree file holds the nodes of earlier blocks.
    first_block: u64,
    /// Nodes in flat post-order, with blocks as leaves.
    nodes: Vec<Hash>,
    /// The nodes of the last block in flat post-order, if this block is not whole.
    last_block: Vec<Hash>,
}

impl RebuiltTree {
    /// Returns whether none of its nodes come from the tree file.
    pub(crate) fn is_complete(&self) -> bool {
        self.first_block == 0
    }

    /// Hashes the records from a block on. `before` is the range before this block.
    fn build(
        storage: &dyn ReadStorage,
        dir: &Path,
        start: u64,
        before: Vec<Hash>,
        size: u64,
    ) -> Result<Self, EvidenceError> {
        let mut blocks = Mmr::from_peaks(start, before)?;
        let mut block = Mmr::new();
        let (mut nodes, mut last) = (Vec::new(), Vec::new());
        read_leaves(storage, dir, start * BLOCK_RECORDS, size, |leaf| {
            block.push(leaf, &mut |node| last.push(node));
            if block.size() == BLOCK_RECORDS {
                blocks.push(block.root(), &mut |node| nodes.push(node));
                block = Mmr::new();
                last.clear();
            }
        })?;
        let peaks = [blocks.peaks(), block.peaks()].concat();
        Ok(Self {
            size,
            root: Mmr::from_peaks(size, peaks)?.root(),
            first_block: start,
            nodes,
            last_block: last,
        })
    }

    /// Builds the nodes that are missing in the tree file; `None` when the file holds no whole
    /// block, or does not lead to the root.
    fn build_after_tree_file(
        storage: &dyn ReadStorage,
        dir: &Path,
        tree: &TreeFile,
        signed: &Checkpoint,
    ) -> Result<Option<Self>, EvidenceError> {
        let start = complete_leaves(tree.node_count()?).min(signed.size) / BLOCK_RECORDS;
        if start == 0 {
            return Ok(None);
        }
        let mut peaks = Vec::new();
        let mut at = 0;
        for level in (0..u64::BITS).rev().filter(|level| start >> level & 1 == 1) {
            peaks.push(tree.node(node_position(level + BLOCK_LEVEL, at >> level))?);
            at += 1 << level;
        }
        let made = Self::build(storage, dir, start, peaks, signed.size)?;
        Ok((made.root == signed.root).then_some(made))
    }
}

/// Returns the nodes of the tree that a checkpoint of the log in `dir` signs, built from the
/// records. If `whole` is true or the tree file is wrong, all records are hashed, otherwise only
/// the records that the tree file does not cover. The result may lead to another root, so the
/// caller must verify the proofs that it builds.
///
/// # Errors
/// [`EvidenceError::Corruption`], [`EvidenceError::NoSuchRecord`] or [`EvidenceError::Removed`]
/// when records are missing; [`EvidenceError::Io`].
pub(crate) fn rebuild_tree(
    storage: &dyn ReadStorage,
    dir: &Path,
    checkpoint: &Checkpoint,
    complete: bool,
) -> Result<Arc<RebuiltTree>, EvidenceError> {
    if let Some(kept) = cached_tree(checkpoint, complete) {
        return Ok(kept);
    }
    // If the tree file or the search for a record fails in any way, hash all records.
    let behind = match TreeFile::open(storage, dir) {
        Ok(tree) if !complete => RebuiltTree::build_after_tree_file(storage, dir, &tree, checkpoint)
            .ok()
            .flatten(),
        _ => None,
    };
    let made = match behind {
        Some(made) => made,
        None => RebuiltTree::build(storage, dir, 0, Vec::new(), checkpoint.size)?,
    };
    let made = Arc::new(made);
    if made.root == checkpoint.root {
        cache_tree(&made);
    }
    Ok(made)
}

fn cached_tree(signed: &Checkpoint, whole: bool) -> Option<Arc<RebuiltTree>> {
    let kept = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |tree: &&Arc<RebuiltTree>| tree.root == signed.root && tree.size == signed.size;
    kept.iter()
        .filter(same)
        .find(|tree| tree.is_complete() || !whole)
        .cloned()
}

fn cache_tree(made: &Arc<RebuiltTree>) {
    let bytes = |tree: &Arc<RebuiltTree>| tree.nodes.len() * NODE_LEN;
    let mut kept = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    kept.retain(|tree| tree.root != made.root);
    kept.push_back(Arc::clone(made));
    while kept.iter().map(bytes).sum::<usize>() > MAX_CACHED_BYTES || kept.len() > MAX_CACHED_LOGS {
        kept.pop_front();
    }
}

/// A reader of the nodes of a rebuilt tree. Nodes inside its blocks are hashed from the records.
pub(crate) struct RebuiltNodeReader<'r> {
    storage: &'r dyn ReadStorage,
    dir: &'r Path,
    rebuilt: &'r RebuiltTree,
    tree: Option<TreeFile>,
    /// The number and the nodes of the last requested block.
    cached_block: RefCell<Option<(u64, Vec<Hash>)>>,
}

impl<'r> RebuiltNodeReader<'r> {
    pub(crate) fn new(storage: &'r dyn ReadStorage, dir: &'r Path, rebuilt: &'r RebuiltTree) -> Self {
        let tree = (!rebuilt.is_complete()).then(|| TreeFile::open(storage, dir).ok());
        Self {
            storage,
            dir,
            rebuilt,
            tree: tree.flatten(),
            cached_block: RefCell::default(),
        }
    }

    /// Returns node `at` inside a block, in flat post-order.
    fn node_in_block(&self, block: u64, at: u64) -> Result<Option<Hash>, EvidenceError> {
        let find = |nodes: &[Hash]| usize::try_from(at).ok().and_then(|at| nodes.get(at)).copied();
        if block == self.rebuilt.size / BLOCK_RECORDS {
            return Ok(find(&self.rebuilt.last_block));
        }
        let mut held = self.cached_block.borrow_mut();
        let nodes = match &mut *held {
            Some((number, nodes)) if *number == block => nodes,
            held => {
                let first = block * BLOCK_RECORDS;
                let (mut mmr, mut nodes) = (Mmr::new(), Vec::new());
                read_leaves(self.storage, self.dir, first, first + BLOCK_RECORDS, |leaf| {
                    mmr.push(leaf, &mut |node| nodes.push(node));
                })?;
                &mut held.insert((block, nodes)).1
            }
        };
        Ok(find(nodes))
    }
}

impl NodeReader for RebuiltNodeReader<'_> {
    type Error = EvidenceError;

    fn node(&self, position: u64) -> Result<Hash, EvidenceError> {
        let missing = || LedgerError::MissingNode { position }.into();
        // A node is stored after the last leaf that it covers.
        let leaf = complete_leaves(position);
        let level = position - leaf_position(leaf);
        let block = leaf / BLOCK_RECORDS;
        if block < self.rebuilt.first_block {
            return self.tree.as_ref().ok_or_else(missing)?.node(position);
        }
        let found = match level.checked_sub(u64::from(BLOCK_LEVEL)) {
            None => self.node_in_block(block, position - leaf_position(block * BLOCK_RECORDS))?,
            Some(above) => {
                let at = leaf_position(block) + above - node_count(self.rebuilt.first_block);
                usize::try_from(at)
                    .ok()
                    .and_then(|at| self.rebuilt.nodes.get(at))
                    .copied()
            }
        };
        found.ok_or_else(missing)
    }
}

/// Returns the number of complete leaves in a tree of `nodes` nodes.
fn complete_leaves(nodes: u64) -> u64 {
    let mut leaves = nodes / 2;
    while node_count(leaves + 1) <= nodes {
        leaves += 1;
    }
    leaves
}

/// Calls `take` with the leaf hashes of the records in `first..behind`, in order.
fn read_leaves(
    storage: &dyn ReadStorage,
    dir: &Path,
    first: u64,
    end: u64,
    mut take: impl FnMut(Hash),
) -> Result<(), EvidenceError> {
    let incarnation = incarnation_of(dir)?;
    let mut log = LogReader::open(storage, dir, incarnation)?;
    if first > 0
        && let Some(place) = find_record_position(storage, dir, incarnation, first)?
    {
        log.seek_to(place)?;
    }
    let mut next = first;
    while next < end {
        match log.next()? {
            LogItem::Record(stored) if stored.seq < first => {}
            LogItem::Record(stored) if stored.seq == next => {
                take(leaf_hash(log.payload(&stored)));
                next += 1;
            }
            LogItem::Flaw(flaw) if flaw.is_trailing_data || flaw.seq < first => {}
            LogItem::Flaw(flaw) => {
                return Err(EvidenceError::Corruption {
                    path: flaw.path,
                    offset: flaw.offset,
                    reason: flaw.reason,
                });
            }
            LogItem::Record(_) | LogItem::End => return Err(missing_record_error(storage, dir, next)?),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_leaves_are_counted_by_their_nodes() {
        for leaves in 0..1000_u64 {
            for nodes in node_count(leaves)..node_count(leaves + 1) {
                assert_eq!(complete_leaves(nodes), leaves, "{nodes} nodes");
            }
        }
    }
}
