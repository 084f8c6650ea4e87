//! Hashes and the Merkle Mountain Range: RFC 6962 section 2.1 hashing, with peaks bagged right to left.
//!
//! Nodes are numbered in flat post-order: leaf n is at position `2n - popcount(n)`, and a parent
//! follows its right child. Go's `tlog.StoredHashIndex` uses the same numbers.

use crate::LedgerError;
use sha2::{Digest, Sha256};

/// A SHA-256 digest.
pub type Hash = [u8; 32];

/// Computes the leaf hash of a record: `SHA-256(0x00 ‖ record)` (RFC 6962 section 2.1).
#[must_use]
pub fn leaf_hash(record: &[u8]) -> Hash {
    let mut sha = Sha256::new();
    sha.update([0x00]);
    sha.update(record);
    sha.finalize().into()
}

/// Computes the hash of an inner node: `SHA-256(0x01 ‖ left ‖ right)` (RFC 6962 section 2.1).
#[must_use]
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let mut block = [0u8; 65];
    block[0] = 0x01;
    block[1..33].copy_from_slice(left);
    block[33..].copy_from_slice(right);
    Sha256::digest(block).into()
}

/// Returns the flat post-order position of leaf `index`.
///
/// Defined for `index < 2^62`; larger values saturate.
#[must_use]
pub fn leaf_position(index: u64) -> u64 {
    node_count(index)
}

/// Returns the number of stored nodes of a tree of `size` leaves: `2 size - popcount(size)`.
#[must_use]
pub fn node_count(size: u64) -> u64 {
    size.saturating_mul(2) - u64::from(size.count_ones())
}

/// Returns the flat post-order position of the node at `level` (0 = leaves) that covers leaves `[index << level, (index
/// + 1) << level)`.
#[must_use]
pub fn node_position(level: u32, index: u64) -> u64 {
    let last_leaf = (index.saturating_add(1) << level).saturating_sub(1);
    leaf_position(last_leaf).saturating_add(u64::from(level))
}

/// The peaks of an append-only tree. They suffice to append a leaf and to compute the root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mmr {
    size: u64,
    /// Roots of the perfect subtrees, oldest and largest first.
    peaks: Vec<Hash>,
}

impl Mmr {
    /// Creates an empty range.
    #[must_use]
    pub fn new() -> Self {
        Self {
            size: 0,
            peaks: Vec::with_capacity(64),
        }
    }

    /// Creates a range of `size` leaves from its peaks, oldest first.
    ///
    /// # Errors
    /// [`LedgerError::PeakCount`] unless there is one peak for each one bit of `size`.
    pub fn from_peaks(size: u64, peaks: Vec<Hash>) -> Result<Self, LedgerError> {
        if peaks.len() != size.count_ones() as usize {
            return Err(LedgerError::PeakCount {
                size,
                peaks: peaks.len(),
            });
        }
        Ok(Self { size, peaks })
    }

    /// Appends a leaf hash. `node` is called with every new node in flat post-order: the leaf, then
    /// the parents that it completes.
    pub fn push(&mut self, leaf: Hash, node: &mut impl FnMut(Hash)) {
        node(leaf);
        let mut carry = leaf;
        let mut complete = self.size;
        while complete & 1 == 1 {
            let Some(left) = self.peaks.pop() else { break };
            carry = node_hash(&left, &carry);
            node(carry);
            complete >>= 1;
        }
        self.peaks.push(carry);
        self.size += 1;
    }

    /// Returns the number of leaves.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Computes the RFC 6962 tree head: peaks bagged right to left, `SHA-256("")` for the empty tree.
    #[must_use]
    pub fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev();
        match peaks.next() {
            None => Sha256::digest([]).into(),
            Some(last) => peaks.fold(*last, |bag, peak| node_hash(peak, &bag)),
        }
    }

    /// Returns the peaks, oldest (largest) first.
    #[must_use]
    pub fn peaks(&self) -> &[Hash] {
        &self.peaks
    }
}
