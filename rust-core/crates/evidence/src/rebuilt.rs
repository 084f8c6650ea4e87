//! The nodes of a log's tree that its tree file lacks: hashed once from the records, and kept for whoever asks next.
//!
//! A worker that is killed leaves a tree file without its last nodes, and nobody writes them there: no file has two writers.
//! They follow from the records behind those that the file covers; if these lead from the stored peaks to the signed root, no
//! other record is hashed. If not, all are.
//!
//! Kept are the nodes over whole blocks of [`BLOCK`] records, about a byte for each record, and those of the last block, which
//! every proof needs. What lies below other blocks is hashed from their records when it is asked for.

use crate::layout::incarnation_of;
use crate::log_reader::{LogItem, LogReader};
use crate::removal::gone;
use crate::time_search::place_of_record;
use crate::{EvidenceError, NODE, ReadStorage, TreeFile};
use proofgate_ledger::{
    Checkpoint, Hash, LedgerError, Mmr, NodeReader, leaf_hash, leaf_position, node_count, node_position,
};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The height of a block: the lowest nodes that are kept.
const LEVEL: u32 = 6;
/// Records of a block.
const BLOCK: u64 = 1 << LEVEL;
/// Bytes of nodes that are kept of all logs together.
const MOST_KEPT: usize = 32 << 20;
/// Logs of which nodes are kept.
const MOST_LOGS: usize = 256;

/// Trees by the root that they lead to, the last that was made last. What a root stands for never changes, so it is the same
/// for every caller and in every copy of a ledger.
static KEPT: Mutex<VecDeque<Arc<Rebuilt>>> = Mutex::new(VecDeque::new());

/// The nodes over whole blocks of a tree, from its block `start` on.
#[derive(Debug)]
pub(crate) struct Rebuilt {
    size: u64,
    root: Hash,
    /// The first block that was hashed. Of the blocks before, the tree file has the nodes.
    start: u64,
    /// In flat post-order, with a block in the place of a leaf.
    nodes: Vec<Hash>,
    /// The nodes of the last block, if it is not whole, in flat post-order.
    last: Vec<Hash>,
}

impl Rebuilt {
    /// Whether no node of it is the tree file's.
    pub(crate) fn is_whole(&self) -> bool {
        self.start == 0
    }

    /// Hashes the records from a block on; `before` is the range in front of it.
    fn make(
        storage: &dyn ReadStorage,
        dir: &Path,
        start: u64,
        before: Vec<Hash>,
        size: u64,
    ) -> Result<Self, EvidenceError> {
        let mut blocks = Mmr::from_peaks(start, before)?;
        let mut block = Mmr::new();
        let (mut nodes, mut last) = (Vec::new(), Vec::new());
        leaves(storage, dir, start * BLOCK, size, |leaf| {
            block.push(leaf, &mut |node| last.push(node));
            if block.size() == BLOCK {
                blocks.push(block.root(), &mut |node| nodes.push(node));
                block = Mmr::new();
                last.clear();
            }
        })?;
        let peaks = [blocks.peaks(), block.peaks()].concat();
        Ok(Self {
            size,
            root: Mmr::from_peaks(size, peaks)?.root(),
            start,
            nodes,
            last,
        })
    }

    /// What the tree file lacks; `None` when it holds no whole block, or what it holds does not lead to the root.
    fn behind(
        storage: &dyn ReadStorage,
        dir: &Path,
        tree: &TreeFile,
        signed: &Checkpoint,
    ) -> Result<Option<Self>, EvidenceError> {
        let start = covered(tree.nodes()?).min(signed.size) / BLOCK;
        if start == 0 {
            return Ok(None);
        }
        let mut peaks = Vec::new();
        let mut at = 0;
        for level in (0..u64::BITS).rev().filter(|level| start >> level & 1 == 1) {
            peaks.push(tree.node(node_position(level + LEVEL, at >> level))?);
            at += 1 << level;
        }
        let made = Self::make(storage, dir, start, peaks, signed.size)?;
        Ok((made.root == signed.root).then_some(made))
    }
}

/// The nodes of the tree that a checkpoint of the log in `dir` signs, from its records: of all of them if `whole`, otherwise
/// of those alone that the tree file does not cover, if it is right. What is returned may lead to another root: who asks
/// verifies what is made of it.
///
/// # Errors
/// [`EvidenceError::Corruption`], [`EvidenceError::NoSuchRecord`] or [`EvidenceError::Removed`] when not all records are there;
/// [`EvidenceError::Io`].
pub(crate) fn rebuilt(
    storage: &dyn ReadStorage,
    dir: &Path,
    signed: &Checkpoint,
    whole: bool,
) -> Result<Arc<Rebuilt>, EvidenceError> {
    if let Some(kept) = kept(signed, whole) {
        return Ok(kept);
    }
    // Whatever is wrong with the tree file, or misleads on the way to a record, the records themselves decide.
    let behind = match TreeFile::open(storage, dir) {
        Ok(tree) if !whole => Rebuilt::behind(storage, dir, &tree, signed).ok().flatten(),
        _ => None,
    };
    let made = match behind {
        Some(made) => made,
        None => Rebuilt::make(storage, dir, 0, Vec::new(), signed.size)?,
    };
    let made = Arc::new(made);
    if made.root == signed.root {
        keep(&made);
    }
    Ok(made)
}

fn kept(signed: &Checkpoint, whole: bool) -> Option<Arc<Rebuilt>> {
    let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |tree: &&Arc<Rebuilt>| tree.root == signed.root && tree.size == signed.size;
    kept.iter()
        .filter(same)
        .find(|tree| tree.is_whole() || !whole)
        .cloned()
}

fn keep(made: &Arc<Rebuilt>) {
    let bytes = |tree: &Arc<Rebuilt>| tree.nodes.len() * NODE;
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.retain(|tree| tree.root != made.root);
    kept.push_back(Arc::clone(made));
    while kept.iter().map(bytes).sum::<usize>() > MOST_KEPT || kept.len() > MOST_LOGS {
        kept.pop_front();
    }
}

/// Reads nodes of a tree that was rebuilt, those below its blocks from the records.
pub(crate) struct Nodes<'r> {
    storage: &'r dyn ReadStorage,
    dir: &'r Path,
    rebuilt: &'r Rebuilt,
    tree: Option<TreeFile>,
    /// The number and the nodes of the block that was asked for last.
    block: RefCell<Option<(u64, Vec<Hash>)>>,
}

impl<'r> Nodes<'r> {
    pub(crate) fn new(storage: &'r dyn ReadStorage, dir: &'r Path, rebuilt: &'r Rebuilt) -> Self {
        let tree = (!rebuilt.is_whole()).then(|| TreeFile::open(storage, dir).ok());
        Self {
            storage,
            dir,
            rebuilt,
            tree: tree.flatten(),
            block: RefCell::default(),
        }
    }

    /// Node `at` below a block, in flat post-order.
    fn within(&self, block: u64, at: u64) -> Result<Option<Hash>, EvidenceError> {
        let find = |nodes: &[Hash]| usize::try_from(at).ok().and_then(|at| nodes.get(at)).copied();
        if block == self.rebuilt.size / BLOCK {
            return Ok(find(&self.rebuilt.last));
        }
        let mut held = self.block.borrow_mut();
        let nodes = match &mut *held {
            Some((number, nodes)) if *number == block => nodes,
            held => {
                let first = block * BLOCK;
                let (mut mmr, mut nodes) = (Mmr::new(), Vec::new());
                leaves(self.storage, self.dir, first, first + BLOCK, |leaf| {
                    mmr.push(leaf, &mut |node| nodes.push(node));
                })?;
                &mut held.insert((block, nodes)).1
            }
        };
        Ok(find(nodes))
    }
}

impl NodeReader for Nodes<'_> {
    type Error = EvidenceError;

    fn node(&self, position: u64) -> Result<Hash, EvidenceError> {
        let missing = || LedgerError::MissingNode { position }.into();
        // A node stands behind the last leaf that it covers.
        let leaf = covered(position);
        let level = position - leaf_position(leaf);
        let block = leaf / BLOCK;
        if block < self.rebuilt.start {
            return self.tree.as_ref().ok_or_else(missing)?.node(position);
        }
        let found = match level.checked_sub(u64::from(LEVEL)) {
            None => self.within(block, position - leaf_position(block * BLOCK))?,
            Some(above) => {
                let at = leaf_position(block) + above - node_count(self.rebuilt.start);
                usize::try_from(at)
                    .ok()
                    .and_then(|at| self.rebuilt.nodes.get(at))
                    .copied()
            }
        };
        found.ok_or_else(missing)
    }
}

/// How many leaves so many nodes hold whole.
fn covered(nodes: u64) -> u64 {
    let mut leaves = nodes / 2;
    while node_count(leaves + 1) <= nodes {
        leaves += 1;
    }
    leaves
}

/// Gives the leaf hashes of the records from `first` up to, not with, `behind` to `take`, in order.
fn leaves(
    storage: &dyn ReadStorage,
    dir: &Path,
    first: u64,
    behind: u64,
    mut take: impl FnMut(Hash),
) -> Result<(), EvidenceError> {
    let incarnation = incarnation_of(dir)?;
    let mut log = LogReader::open(storage, dir, incarnation)?;
    if first > 0
        && let Some(place) = place_of_record(storage, dir, incarnation, first)?
    {
        log.seek_to(place)?;
    }
    let mut next = first;
    while next < behind {
        match log.next()? {
            LogItem::Record(stored) if stored.seq < first => {}
            LogItem::Record(stored) if stored.seq == next => {
                take(leaf_hash(log.payload(&stored)));
                next += 1;
            }
            LogItem::Flaw(flaw) if flaw.residue || flaw.seq < first => {}
            LogItem::Flaw(flaw) => {
                return Err(EvidenceError::Corruption {
                    path: flaw.path,
                    offset: flaw.offset,
                    reason: flaw.reason,
                });
            }
            LogItem::Record(_) | LogItem::End => return Err(gone(storage, dir, next)?),
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
                assert_eq!(covered(nodes), leaves, "{nodes} nodes");
            }
        }
    }
}
