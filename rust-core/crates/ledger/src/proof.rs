//! Inclusion and consistency proofs: computes them from stored nodes, and verifies them for a third
//! party.
//!
//! Verification follows RFC 9162 sections 2.1.3.2 and 2.1.4.2 exactly and depends on every input:
//! index, size, root and each hash of the proof.

use crate::{Hash, LedgerError, node_hash, tree::node_position};
use sha2::{Digest, Sha256};

/// A reader of the stored nodes of a tree.
pub trait NodeReader {
    /// Error of a failed read, or an error of this crate.
    type Error: From<LedgerError>;

    /// Returns the node at a flat post-order position.
    ///
    /// # Errors
    /// An error when the node is not stored or cannot be read.
    fn node(&self, position: u64) -> Result<Hash, Self::Error>;
}

impl NodeReader for [Hash] {
    type Error = LedgerError;

    fn node(&self, position: u64) -> Result<Hash, LedgerError> {
        usize::try_from(position)
            .ok()
            .and_then(|at| self.get(at))
            .copied()
            .ok_or(LedgerError::MissingNode { position })
    }
}

impl NodeReader for Vec<Hash> {
    type Error = LedgerError;

    fn node(&self, position: u64) -> Result<Hash, LedgerError> {
        self.as_slice().node(position)
    }
}

/// Computes the inclusion proof of leaf `index` in the tree of `size` leaves, leaf upward (RFC 9162 section 2.1.3.1).
///
/// # Errors
/// [`LedgerError::IndexOutOfRange`] unless `index < size`; any error of `nodes`.
pub fn inclusion_proof<N: NodeReader + ?Sized>(
    nodes: &N,
    index: u64,
    size: u64,
) -> Result<Vec<Hash>, N::Error> {
    subtree_inclusion(nodes, index, 0, size)
}

/// Computes the proof that the tree of `old` leaves is a prefix of the tree of `new` leaves (RFC 9162 section 2.1.4.1).
/// Empty when the sizes are equal.
///
/// # Errors
/// [`LedgerError::EmptyTree`] for `old == 0`, [`LedgerError::SizesReversed`] for `old > new`; any error of `nodes`.
pub fn consistency_proof<N: NodeReader + ?Sized>(
    nodes: &N,
    old: u64,
    new: u64,
) -> Result<Vec<Hash>, N::Error> {
    if old == 0 {
        return Err(LedgerError::EmptyTree.into());
    }
    if old > new {
        return Err(LedgerError::SizesReversed { old, new }.into());
    }
    subtree_consistency(nodes, 0, old, new)
}

/// Computes the root of the tree of `size` leaves (RFC 9162 section 2.1.1).
///
/// # Errors
/// Any error of `nodes`.
pub fn tree_root<N: NodeReader + ?Sized>(nodes: &N, size: u64) -> Result<Hash, N::Error> {
    subtree_root(nodes, 0, size)
}

/// Returns the split of RFC 6962: the largest power of two below `count`. `count` must exceed 1.
fn split_point(count: u64) -> u64 {
    1 << (63 - (count - 1).leading_zeros())
}

/// Computes `MTH(D[start:end])`, where `start` is a multiple of the smallest power of two that is at least `end -
/// start`.
fn subtree_root<N: NodeReader + ?Sized>(nodes: &N, start: u64, end: u64) -> Result<Hash, N::Error> {
    let mut bag = None;
    let mut rest = end - start;
    let mut at = end;
    // The lowest set bit of the count is the newest peak. Bag from the newest peak to the oldest.
    while rest != 0 {
        let level = rest.trailing_zeros();
        at -= 1 << level;
        let peak = nodes.node(node_position(level, at >> level))?;
        bag = Some(match bag {
            None => peak,
            Some(bag) => node_hash(&peak, &bag),
        });
        rest &= rest - 1;
    }
    Ok(bag.unwrap_or_else(|| Sha256::digest([]).into()))
}

fn subtree_inclusion<N: NodeReader + ?Sized>(
    nodes: &N,
    index: u64,
    start: u64,
    end: u64,
) -> Result<Vec<Hash>, N::Error> {
    if index < start || index >= end {
        return Err(LedgerError::IndexOutOfRange { index, size: end }.into());
    }
    let (mut low, mut high) = (start, end);
    let mut siblings = Vec::new();
    while high - low > 1 {
        let middle = low + split_point(high - low);
        if index < middle {
            siblings.push((middle, high));
            high = middle;
        } else {
            siblings.push((low, middle));
            low = middle;
        }
    }
    siblings
        .into_iter()
        .rev()
        .map(|(low, high)| subtree_root(nodes, low, high))
        .collect()
}

/// Computes the proof that the subtree `[start, end)` is part of the tree of `size` leaves; with `start == 0` it is the
/// RFC 9162 consistency proof (draft-ietf-plants-merkle-tree-certs, "Subtree Consistency Proofs").
fn subtree_consistency<N: NodeReader + ?Sized>(
    nodes: &N,
    start: u64,
    end: u64,
    size: u64,
) -> Result<Vec<Hash>, N::Error> {
    let (mut low, mut high, mut from) = (0, size, start);
    let mut known = true;
    let mut siblings = Vec::new();
    while (from, end) != (low, high) {
        let middle = low + split_point(high - low);
        if end <= middle {
            siblings.push((middle, high));
            high = middle;
        } else {
            siblings.push((low, middle));
            if from < middle {
                from = middle;
                known = false;
            }
            low = middle;
        }
    }
    if !known {
        siblings.push((low, high));
    }
    siblings
        .into_iter()
        .rev()
        .map(|(low, high)| subtree_root(nodes, low, high))
        .collect()
}

/// Verifies that `leaf` is leaf `index` of the tree of `size` leaves with this `root` (RFC 9162 section 2.1.3.2).
///
/// # Errors
/// [`LedgerError::IndexOutOfRange`], [`LedgerError::ProofLength`] or [`LedgerError::RootMismatch`].
pub fn verify_inclusion(
    leaf: &Hash,
    index: u64,
    size: u64,
    proof: &[Hash],
    root: &Hash,
) -> Result<(), LedgerError> {
    if index >= size {
        return Err(LedgerError::IndexOutOfRange { index, size });
    }
    let (mut at, mut last) = (index, size - 1);
    let mut hash = *leaf;
    for sibling in proof {
        if last == 0 {
            return Err(LedgerError::ProofLength);
        }
        if at & 1 == 1 || at == last {
            hash = node_hash(sibling, &hash);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            hash = node_hash(&hash, sibling);
        }
        at >>= 1;
        last >>= 1;
    }
    if last != 0 {
        return Err(LedgerError::ProofLength);
    }
    if hash == *root {
        Ok(())
    } else {
        Err(LedgerError::RootMismatch)
    }
}

/// Verifies that the tree of `old_size` leaves with `old_root` is a prefix of the tree of
/// `new_size` leaves with `new_root` (RFC 9162 section 2.1.4.2). An old size of 0 is refused: every
/// tree extends the empty tree, so a caller without an earlier tree has nothing to check.
///
/// # Errors
/// [`LedgerError::EmptyTree`], [`LedgerError::SizesReversed`], [`LedgerError::ProofLength`] or
/// [`LedgerError::RootMismatch`].
pub fn verify_consistency(
    old_size: u64,
    old_root: &Hash,
    new_size: u64,
    new_root: &Hash,
    proof: &[Hash],
) -> Result<(), LedgerError> {
    if old_size == 0 {
        return Err(LedgerError::EmptyTree);
    }
    if old_size > new_size {
        return Err(LedgerError::SizesReversed {
            old: old_size,
            new: new_size,
        });
    }
    if old_size == new_size {
        if !proof.is_empty() {
            return Err(LedgerError::ProofLength);
        }
        return if old_root == new_root {
            Ok(())
        } else {
            Err(LedgerError::RootMismatch)
        };
    }
    let (mut at, mut last) = (old_size - 1, new_size - 1);
    while at & 1 == 1 {
        at >>= 1;
        last >>= 1;
    }
    // When the old tree is perfect, the path starts with its root, which is not part of the proof.
    let (first, rest) = if old_size.is_power_of_two() {
        if proof.is_empty() {
            return Err(LedgerError::ProofLength);
        }
        (old_root, proof)
    } else {
        proof.split_first().ok_or(LedgerError::ProofLength)?
    };
    let (mut old_hash, mut new_hash) = (*first, *first);
    for sibling in rest {
        if last == 0 {
            return Err(LedgerError::ProofLength);
        }
        if at & 1 == 1 || at == last {
            old_hash = node_hash(sibling, &old_hash);
            new_hash = node_hash(sibling, &new_hash);
            while at & 1 == 0 && at != 0 {
                at >>= 1;
                last >>= 1;
            }
        } else {
            new_hash = node_hash(&new_hash, sibling);
        }
        at >>= 1;
        last >>= 1;
    }
    if last != 0 {
        return Err(LedgerError::ProofLength);
    }
    if old_hash == *old_root && new_hash == *new_root {
        Ok(())
    } else {
        Err(LedgerError::RootMismatch)
    }
}

#[cfg(test)]
mod tests;
