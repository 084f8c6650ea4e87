use super::*;
use crate::{Mmr, leaf_hash, leaf_position, node_count};
use proptest::prelude::*;
use std::fmt::Write;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn sha256_hex(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Computes the root literally as in RFC 6962 section 2.1.
fn literal_root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => Sha256::digest([]).into(),
        [leaf] => *leaf,
        _ => {
            let mut k = 1;
            while 2 * k < leaves.len() {
                k *= 2;
            }
            node_hash(&literal_root(&leaves[..k]), &literal_root(&leaves[k..]))
        }
    }
}

/// Computes the inclusion path literally as in RFC 6962 section 2.1.1.
fn literal_path(index: usize, leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let mut k = 1;
    while 2 * k < leaves.len() {
        k *= 2;
    }
    let mut path;
    if index < k {
        path = literal_path(index, &leaves[..k]);
        path.push(literal_root(&leaves[k..]));
    } else {
        path = literal_path(index - k, &leaves[k..]);
        path.push(literal_root(&leaves[..k]));
    }
    path
}

/// Computes the consistency proof literally as in RFC 6962 section 2.1.2.
fn literal_subproof(old: usize, leaves: &[Hash], whole: bool) -> Vec<Hash> {
    if old == leaves.len() {
        return if whole {
            Vec::new()
        } else {
            vec![literal_root(leaves)]
        };
    }
    let mut k = 1;
    while 2 * k < leaves.len() {
        k *= 2;
    }
    let mut path;
    if old <= k {
        path = literal_subproof(old, &leaves[..k], whole);
        path.push(literal_root(&leaves[k..]));
    } else {
        path = literal_subproof(old - k, &leaves[k..], false);
        path.push(literal_root(&leaves[..k]));
    }
    path
}

struct Tree {
    leaves: Vec<Hash>,
    nodes: Vec<Hash>,
    /// Root at each size.
    roots: Vec<Hash>,
}

fn tree(size: usize) -> Tree {
    let mut mmr = Mmr::new();
    let mut tree = Tree {
        leaves: Vec::new(),
        nodes: Vec::new(),
        roots: vec![mmr.root()],
    };
    for leaf in 0..size {
        let leaf = leaf_hash(&[leaf as u8]);
        tree.leaves.push(leaf);
        mmr.push(leaf, &mut |node| tree.nodes.push(node));
        tree.roots.push(mmr.root());
    }
    tree
}

fn is_valid_subtree(start: u64, end: u64) -> bool {
    start == 0 || start == end || start.is_multiple_of((end - start).next_power_of_two())
}

fn line(text: &mut String, start: &str, hashes: &[Hash]) {
    text.push_str(start);
    for hash in hashes {
        text.push(' ');
        text.push_str(&hex(hash));
    }
    text.push('\n');
}

#[test]
fn the_subtree_hashes_of_the_merkle_tree_certificates_draft_are_reproduced() {
    let tree = tree(130);
    let mut text = String::new();
    for end in 0..=130 {
        for start in 0..=end {
            if is_valid_subtree(start, end) {
                line(
                    &mut text,
                    &format!("[{start}, {end})"),
                    &[subtree_root(&tree.nodes, start, end).unwrap()],
                );
            }
        }
    }
    assert_eq!(text.lines().count(), 712);
    assert_eq!(
        sha256_hex(&text),
        "b82806ad4265bb151c1119c0f4db437bb4d1a1f887b3a7fba1cd4ebf552e3e81"
    );
}

#[test]
fn the_inclusion_proofs_of_the_merkle_tree_certificates_draft_are_reproduced() {
    let tree = tree(130);
    let mut text = String::new();
    for end in 0..=130 {
        for start in 0..end {
            if is_valid_subtree(start, end) {
                for index in start..end {
                    let proof = subtree_inclusion(&tree.nodes, index, start, end).unwrap();
                    line(&mut text, &format!("{index} [{start}, {end})"), &proof);
                }
            }
        }
    }
    assert_eq!(text.lines().count(), 12_807);
    assert_eq!(
        sha256_hex(&text),
        "ac2a8f989e44d99e399db448050ff5f19757df53cfb716aa81015d3955d8163f"
    );
}

#[test]
fn the_consistency_proofs_of_the_merkle_tree_certificates_draft_are_reproduced() {
    let tree = tree(130);
    let mut text = String::new();
    for size in 0..=130 {
        for end in 0..=size {
            for start in 0..=end {
                if is_valid_subtree(start, end) {
                    let proof = match end - start {
                        0 => Vec::new(),
                        _ => subtree_consistency(&tree.nodes, start, end, size).unwrap(),
                    };
                    line(&mut text, &format!("[{start}, {end}) {size}"), &proof);
                }
            }
        }
    }
    assert_eq!(text.lines().count(), 42_893);
    assert_eq!(
        sha256_hex(&text),
        "10fa99b37bf9bf9ffa26b412fbd98bd75363256d0b75d61bc4538b9c9c5a0a74"
    );
}

#[test]
fn leaves_and_parents_stand_where_the_file_format_says() {
    let tree = tree(700);
    for (index, leaf) in tree.leaves.iter().enumerate() {
        assert_eq!(tree.nodes[leaf_position(index as u64) as usize], *leaf);
    }
    assert_eq!(tree.nodes.len() as u64, node_count(700));
    // A perfect tree of eight leaves: its root follows the last leaf and the two parents below it.
    assert_eq!(node_position(3, 0), 14);
    assert_eq!(tree.nodes[14], tree.roots[8]);
}

#[test]
fn every_leaf_of_every_small_tree_is_proved_and_nothing_else_is() {
    let tree = tree(130);
    for size in 1..=130_u64 {
        let root = tree.roots[size as usize];
        for index in 0..size {
            let leaf = tree.leaves[index as usize];
            let proof = inclusion_proof(&tree.nodes, index, size).unwrap();
            verify_inclusion(&leaf, index, size, &proof, &root).unwrap();
            for other in [index + 1, index.wrapping_sub(1), size, u64::MAX] {
                assert!(
                    verify_inclusion(&leaf, other, size, &proof, &root).is_err(),
                    "{index} as {other}"
                );
            }
            let parent = node_hash(&leaf, proof.first().unwrap_or(&leaf));
            assert!(verify_inclusion(&parent, index, size, &proof, &root).is_err());
            assert!(verify_inclusion(&leaf, index, size, &proof, &leaf_hash(b"")).is_err());
            if let Some((_, shorter)) = proof.split_last() {
                assert!(verify_inclusion(&leaf, index, size, shorter, &root).is_err());
            }
            let longer: Vec<Hash> = proof.iter().copied().chain([root]).collect();
            assert!(verify_inclusion(&leaf, index, size, &longer, &root).is_err());
        }
    }
}

#[test]
fn every_pair_of_small_trees_is_proved_consistent_and_nothing_else_is() {
    let tree = tree(130);
    for new in 1..=130_u64 {
        let new_root = tree.roots[new as usize];
        for old in 1..=new {
            let old_root = tree.roots[old as usize];
            let proof = consistency_proof(&tree.nodes, old, new).unwrap();
            verify_consistency(old, &old_root, new, &new_root, &proof).unwrap();
            if old != new {
                assert!(
                    verify_consistency(old, &new_root, new, &old_root, &proof).is_err(),
                    "swapped roots"
                );
                let (_, shorter) = proof.split_last().unwrap();
                assert!(verify_consistency(old, &old_root, new, &new_root, shorter).is_err());
                assert!(verify_consistency(new, &new_root, old, &old_root, &proof).is_err());
                assert!(verify_consistency(old, &old_root, new, &new_root, &[]).is_err());
            }
            let longer: Vec<Hash> = proof.iter().copied().chain([old_root]).collect();
            assert!(verify_consistency(old, &old_root, new, &new_root, &longer).is_err());
            let mut wrong = old_root;
            wrong[0] ^= 1;
            assert!(verify_consistency(old, &wrong, new, &new_root, &proof).is_err());
            let mut wrong = new_root;
            wrong[31] ^= 0x80;
            assert!(verify_consistency(old, &old_root, new, &wrong, &proof).is_err());
        }
    }
}

#[test]
fn consistency_from_the_empty_tree_is_refused() {
    let tree = tree(3);
    let (empty, root) = (&tree.roots[0], &tree.roots[3]);
    assert_eq!(
        verify_consistency(0, empty, 3, root, &[]),
        Err(LedgerError::EmptyTree)
    );
    assert_eq!(
        verify_consistency(0, empty, 0, empty, &[]),
        Err(LedgerError::EmptyTree)
    );
    assert_eq!(consistency_proof(&tree.nodes, 0, 3), Err(LedgerError::EmptyTree));
}

#[test]
fn every_flipped_bit_of_a_proof_is_noticed() {
    let tree = tree(23);
    for bit in 0..256 {
        let flip = |mut proof: Vec<Hash>, at: usize| {
            proof[at][bit / 8] ^= 1 << (bit % 8);
            proof
        };
        let inclusion = inclusion_proof(&tree.nodes, 17, 23).unwrap();
        for at in 0..inclusion.len() {
            let proof = flip(inclusion.clone(), at);
            let verified = verify_inclusion(&tree.leaves[17], 17, 23, &proof, &tree.roots[23]);
            assert_eq!(verified, Err(LedgerError::RootMismatch));
        }
        let consistency = consistency_proof(&tree.nodes, 13, 23).unwrap();
        for at in 0..consistency.len() {
            let proof = flip(consistency.clone(), at);
            let verified = verify_consistency(13, &tree.roots[13], 23, &tree.roots[23], &proof);
            assert_eq!(verified, Err(LedgerError::RootMismatch));
        }
    }
}

#[test]
fn a_missing_node_is_an_error_and_not_a_proof() {
    let tree = tree(23);
    let short = &tree.nodes[..tree.nodes.len() - 3];
    assert!(matches!(
        inclusion_proof(short, 22, 23),
        Err(LedgerError::MissingNode { .. })
    ));
    assert!(inclusion_proof(&tree.nodes, 23, 23).is_err());
}

proptest! {
    #[test]
    fn the_range_is_the_literal_recursion_of_rfc_6962(
        leaves in proptest::collection::vec(any::<Hash>(), 1..400),
        index in any::<prop::sample::Index>(),
        old in any::<prop::sample::Index>(),
    ) {
        let mut mmr = Mmr::new();
        let mut nodes = Vec::new();
        for leaf in &leaves {
            mmr.push(*leaf, &mut |node| nodes.push(node));
        }
        prop_assert_eq!(mmr.root(), literal_root(&leaves));
        prop_assert_eq!(Mmr::from_peaks(mmr.size(), mmr.peaks().to_vec()).unwrap(), mmr);

        let index = index.index(leaves.len());
        let proof = inclusion_proof(&nodes, index as u64, leaves.len() as u64).unwrap();
        prop_assert_eq!(proof, literal_path(index, &leaves));

        let old = 1 + old.index(leaves.len());
        let proof = consistency_proof(&nodes, old as u64, leaves.len() as u64).unwrap();
        prop_assert_eq!(proof, literal_subproof(old, &leaves, true));
    }

    #[test]
    fn garbage_is_never_a_proof(
        proof in proptest::collection::vec(any::<Hash>(), 0..70),
        leaf in any::<Hash>(),
        root in any::<Hash>(),
        index in any::<u64>(),
        size in any::<u64>(),
    ) {
        prop_assume!(leaf != root);
        prop_assert!(verify_inclusion(&leaf, index, size, &proof, &root).is_err());
        prop_assert!(verify_consistency(index, &leaf, size, &root, &proof).is_err());
    }
}

#[test]
fn peaks_must_be_as_many_as_the_size_says() {
    assert_eq!(
        Mmr::from_peaks(6, vec![[0; 32]]),
        Err(LedgerError::PeakCount { size: 6, peaks: 1 })
    );
}
