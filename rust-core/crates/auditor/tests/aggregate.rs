//! Tests of the aggregate log: its tiles compared with a plain tree, and its state after failures.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_auditor::{AggregateWriter, AuditorError, StateDirectory, StateStorage, Tile};
use proofgate_ledger::{
    Checkpoint, Hash, Mmr, SigningKey, TrustPolicy, leaf_hash, verify_consistency, verify_inclusion,
};
use proofgate_state::memory::{Fault, MemoryStorage};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

fn key() -> SigningKey {
    SigningKey::generate("ledger.example/audit", [9; 32]).unwrap()
}

fn unconditional() -> Arc<TrustPolicy> {
    Arc::new(TrustPolicy::unconditional())
}

fn entry(number: u64) -> Vec<u8> {
    format!("{{\"entry\":{number}}}").into_bytes()
}

fn entries(from: u64, count: u64) -> Vec<Vec<u8>> {
    (from..from + count).map(entry).collect()
}

/// Returns the roots of all sizes up to a size, and the leaves.
fn plain(size: u64) -> (Vec<Hash>, Vec<Hash>) {
    let (mut mmr, mut roots, mut leaves) = (Mmr::new(), vec![Mmr::new().root()], Vec::new());
    for number in 0..size {
        leaves.push(leaf_hash(&entry(number)));
        mmr.push(*leaves.last().unwrap(), &mut |_| {});
        roots.push(mmr.root());
    }
    (roots, leaves)
}

fn checkpoint(log: &AggregateWriter) -> Checkpoint {
    Checkpoint::verify(
        &log.published_log().checkpoint().unwrap().1,
        &key().verifying_key(),
    )
    .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn tiles_roots_and_proofs_are_those_of_a_plain_tree(batches in prop::collection::vec(0u64..300, 1..6), pick in any::<u64>()) {
        let state = MemoryStorage::default();
        let mut log = AggregateWriter::create(Arc::new(state.clone()), key(), unconditional()).unwrap();
        let (roots, leaves) = plain(batches.iter().sum());
        let mut size = 0;
        for batch in batches {
            log.append(&entries(size, batch)).unwrap();
            size += batch;
            let signed = checkpoint(&log);
            prop_assert_eq!((signed.size, signed.root), (size, roots[size as usize]));
            if pick % 2 == 0 {
                log = AggregateWriter::open(Arc::new(state.clone()), key(), unconditional()).unwrap();
            }
        }
        let published = log.published_log();
        prop_assert_eq!(log.read_entries(0).unwrap(), entries(0, size));
        if size > 0 {
            let (index, old) = (pick % size, 1 + pick / 7 % size);
            let at = index + 1 + pick / 3 % (size - index);
            let path = published.inclusion_proof(index, at).unwrap();
            verify_inclusion(&leaves[index as usize], index, at, &path, &roots[at as usize]).unwrap();
            let path = published.consistency_proof(old, size).unwrap();
            verify_consistency(old, &roots[old as usize], size, &roots[size as usize], &path).unwrap();
            for tile in 0..size.div_ceil(256) {
                let first = tile * 256;
                let width = (size - first).min(256);
                for width in [1, width] {
                    let path = Tile { level: Some(0), index: tile, width }.path();
                    let hashes = leaves[first as usize..(first + width) as usize].concat();
                    prop_assert_eq!(published.read(&path).unwrap(), Some(hashes));
                }
            }
        }
        // A partial file is removed once its tile is full.
        let partial = state.names().into_iter().filter(|name| name.contains(".p/")).count();
        prop_assert!(partial <= 3, "{:?}", state.names());
    }

    #[test]
    fn whatever_write_fails_no_size_gets_two_roots_and_nothing_published_is_lost(
        before in 0u64..520, first in 1u64..300, second in 1u64..300, write in 0u64..8, after in any::<bool>(), reopen in any::<bool>(),
    ) {
        let state = MemoryStorage::default();
        let mut log = AggregateWriter::create(Arc::new(state.clone()), key(), unconditional()).unwrap();
        log.append(&entries(0, before)).unwrap();
        state.fail_from(write, if after { Fault::AfterWrite } else { Fault::BeforeWrite });
        let failed = log.append(&entries(before, first)).is_err();
        state.heal();
        if reopen {
            log = AggregateWriter::open(Arc::new(state.clone()), key(), unconditional()).unwrap();
        } else {
            log.recover().unwrap();
        }
        let held = log.size();
        prop_assert!(held == before + first || failed && held == before);
        // These entries differ from the failed entries. If the failed entries were signed after
        // all, these entries follow them.
        let other: Vec<Vec<u8>> = (0..second).map(|number| format!("other {number}").into_bytes()).collect();
        log.append(&other).unwrap();
        let mut whole = entries(0, held);
        whole.extend(other);
        prop_assert_eq!(log.read_entries(0).unwrap(), whole);
        let mut roots: BTreeMap<u64, Hash> = BTreeMap::new();
        for name in ["signed", "checkpoint"] {
            for note in state.history(name) {
                let signed = Checkpoint::verify(&note, &key().verifying_key()).unwrap();
                prop_assert_eq!(*roots.entry(signed.size).or_insert(signed.root), signed.root, "two roots");
                if signed.size > 0 {
                    let (newest, path) = (checkpoint(&log), log.published_log().consistency_proof(signed.size, log.size()).unwrap());
                    verify_consistency(signed.size, &signed.root, newest.size, &newest.root, &path).unwrap();
                }
            }
        }
        AggregateWriter::open(Arc::new(state), key(), unconditional()).unwrap();
    }
}

#[test]
fn what_no_checkpoint_covers_is_not_handed_out() {
    let mut log =
        AggregateWriter::create(Arc::new(MemoryStorage::default()), key(), unconditional()).unwrap();
    log.append(&entries(0, 300)).unwrap();
    let published = log.published_log();
    for path in [
        "tile/0/001",
        "tile/0/001.p/45",
        "tile/0/002",
        "tile/1/000",
        "tile/entries/001",
        "signed",
        "../signed",
        "auditor",
    ] {
        assert_eq!(published.read(path).unwrap(), None, "{path}");
    }
    for path in [
        "tile/0/000",
        "tile/0/001.p/44",
        "tile/0/001.p/1",
        "tile/1/000.p/1",
        "tile/entries/001.p/44",
    ] {
        assert!(published.read(path).unwrap().is_some(), "{path}");
    }
    assert!(matches!(
        published.inclusion_proof(300, 300),
        Err(AuditorError::OutOfRange(_))
    ));
    assert!(matches!(
        published.inclusion_proof(0, 301),
        Err(AuditorError::OutOfRange(_))
    ));
    assert!(matches!(
        published.consistency_proof(0, 300),
        Err(AuditorError::OutOfRange(_))
    ));
    assert!(matches!(
        published.consistency_proof(3, 2),
        Err(AuditorError::OutOfRange(_))
    ));
}

#[test]
fn an_entry_that_no_bundle_holds_is_refused_and_changes_nothing() {
    let mut log =
        AggregateWriter::create(Arc::new(MemoryStorage::default()), key(), unconditional()).unwrap();
    let large = vec![vec![b'x'; 65_536]];
    assert!(matches!(
        log.append(&large),
        Err(AuditorError::EntryTooLarge(65_536))
    ));
    log.append(&[vec![b'x'; 65_535]]).unwrap();
    assert_eq!(log.size(), 1);
}

#[test]
fn a_state_that_does_not_lead_to_what_was_signed_is_refused() {
    let state = MemoryStorage::default();
    let mut log = AggregateWriter::create(Arc::new(state.clone()), key(), unconditional()).unwrap();
    log.append(&entries(0, 300)).unwrap();
    let open = || {
        AggregateWriter::open(Arc::new(state.clone()), key(), unconditional())
            .err()
            .map(|error| error.code())
    };
    for name in [
        "tile/0/001.p/44",
        "tile/1/000.p/1",
        "tile/entries/001.p/44",
        "signed",
    ] {
        let bytes = state.delete(name).unwrap();
        assert_eq!(open(), Some("auditor_state_corrupt"), "{name} gone");
        let mut wrong = bytes.clone();
        *wrong.last_mut().unwrap() ^= 1;
        state.insert(name, wrong);
        assert_eq!(open(), Some("auditor_state_corrupt"), "{name} changed");
        state.insert(name, bytes);
    }
    assert_eq!(open(), None);
    let other = SigningKey::generate("ledger.example/audit", [8; 32]).unwrap();
    assert!(AggregateWriter::open(Arc::new(state.clone()), other, unconditional()).is_err());
    let none = AggregateWriter::open(Arc::new(MemoryStorage::default()), key(), unconditional())
        .err()
        .unwrap();
    assert_eq!(none.code(), "auditor_state_missing");
}

#[test]
fn a_directory_is_locked_and_keeps_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let state = StateDirectory::open(&path).unwrap().unwrap();
    assert!(StateDirectory::open(&path).unwrap().is_none(), "two writers");
    state.write("a/b/c", b"one").unwrap();
    state.write("a/b/c", b"two").unwrap();
    drop(state);
    let state = StateDirectory::open(&path).unwrap().unwrap();
    assert_eq!(state.read("a/b/c").unwrap().as_deref(), Some(&b"two"[..]));
    assert_eq!(state.list("a/b").unwrap(), ["c"]);
    state.remove("a/b/c").unwrap();
    state.remove("a/b/c").unwrap();
    assert_eq!(state.read("a/b/c").unwrap(), None);
}
