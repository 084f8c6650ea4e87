//! What a witness cosigns, what it refuses, and what its state holds after any failure.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_ledger::{
    AddCheckpoint, Checkpoint, Cosignature, CosigningKey, Hash, Mmr, SignedCheckpoint, SigningKey,
    consistency_proof, leaf_hash,
};
use proofgate_state::memory::{Fault, MemoryStorage};
use proofgate_state::{StateDirectory, StateStorage};
use proofgate_witness::{CosignError, ListedLog, Witness, WitnessError};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Barrier};

const NOW: u64 = 1_764_086_400;

fn key() -> CosigningKey {
    CosigningKey::generate("witness.example", [3; 32]).unwrap()
}

fn log_key(name: &str) -> SigningKey {
    SigningKey::generate(name, [7; 32]).unwrap()
}

fn listed(name: &str) -> ListedLog {
    ListedLog {
        origin: name.to_owned(),
        key: log_key(name).verifying_key(),
    }
}

fn logs() -> Vec<ListedLog> {
    vec![listed("log.example/a"), listed("log.example/b")]
}

fn begun(state: &MemoryStorage) -> Witness {
    Witness::create(Arc::new(state.clone()), key(), logs()).unwrap()
}

/// A log of 64 entries; histories differ from entry `fork` on.
struct History {
    name: &'static str,
    nodes: Vec<Hash>,
    roots: Vec<Hash>,
}

impl History {
    fn new(name: &'static str, fork: u64, history: u8) -> Self {
        let (mut mmr, mut nodes, mut roots) = (Mmr::new(), Vec::new(), vec![Mmr::new().root()]);
        for number in 0..64u64 {
            let entry = [number as u8, if number < fork { 0 } else { history }];
            mmr.push(leaf_hash(&entry), &mut |node| nodes.push(node));
            roots.push(mmr.root());
        }
        Self { name, nodes, roots }
    }

    fn note(&self, size: u64) -> String {
        let checkpoint = Checkpoint {
            origin: self.name.to_owned(),
            size,
            root: self.roots[size as usize],
        };
        checkpoint.sign(&log_key(self.name)).unwrap()
    }

    fn ask(&self, old: u64, size: u64) -> String {
        let proof = match old {
            0 => Vec::new(),
            old if old > size => Vec::new(),
            old => consistency_proof(&self.nodes, old, size).unwrap(),
        };
        AddCheckpoint {
            old_size: old,
            proof,
            note: &self.note(size),
        }
        .encode()
    }
}

fn ask(witness: &Witness, body: &str) -> Result<String, (u16, CosignError)> {
    witness
        .add_checkpoint(body.as_bytes(), NOW)
        .map_err(|refused| (refused.status().0, refused))
}

fn status(witness: &Witness, body: &str) -> u16 {
    match ask(witness, body) {
        Ok(_) => 200,
        Err((status, _)) => status,
    }
}

#[test]
fn a_log_that_grows_is_cosigned_and_the_cosignature_verifies() {
    let (state, log) = (MemoryStorage::default(), History::new("log.example/a", 64, 0));
    let witness = begun(&state);
    for (old, size) in [(0, 0), (0, 5), (5, 5), (5, 8), (8, 33)] {
        let answer = ask(&witness, &log.ask(old, size)).unwrap();
        let note = log.note(size);
        let text = SignedCheckpoint::parse(&note).unwrap().text();
        let cosignature = Cosignature::from_response(text, &answer, &key().cosignature_key()).unwrap();
        assert_eq!(cosignature.time, NOW);
    }
    // A restarted witness continues from there, and returns what it cosigned.
    let witness = Witness::open(Arc::new(state), key(), logs()).unwrap();
    assert_eq!(witness.cosigned_sizes()[0].size, 33);
    assert_eq!(status(&witness, &log.ask(33, 34)), 200);
    let digest = "b2d3e0cf2e483fbc179ff15f4e95ebef4f0ad5565d228215674c9ee83f0faf1d";
    let held = witness.checkpoint(digest).unwrap();
    let held = SignedCheckpoint::parse(&held).unwrap();
    assert_eq!(held.checkpoint().size, 34);
    held.verify(&log_key("log.example/a").verifying_key()).unwrap();
    assert!(held.cosignature(&key().cosignature_key()).unwrap().is_some());
    assert_eq!(witness.checkpoint(&digest.replace('0', "1")), None);
}

#[test]
fn each_refusal_has_the_status_that_the_protocol_gives_it() {
    let log = History::new("log.example/a", 64, 0);
    let fork = History::new("log.example/a", 3, 1);
    let unknown = History::new("log.example/c", 64, 0);
    let witness = begun(&MemoryStorage::default());
    assert_eq!(status(&witness, &log.ask(0, 5)), 200);
    let other_key = log.ask(5, 8).replace("log.example/a ", "log.example/b ");
    let no_base64 = log.ask(5, 8).replacen('\n', "\nAAAA\n", 1);
    let one_hash_more = log
        .ask(5, 5)
        .replacen('\n', &format!("\n{}=\n", "A".repeat(43)), 1);
    for (body, wanted) in [
        (log.ask(0, 8), 409),
        (log.ask(4, 8), 409),
        (log.ask(6, 8), 409),
        (log.ask(6, 5), 400),
        (log.ask(5, 8).replacen("old 5", "old 05", 1), 400),
        (no_base64, 400),
        (String::new(), 400),
        (other_key, 403),
        (unknown.ask(0, 5), 404),
        (fork.ask(5, 8), 422),
        (fork.ask(5, 5), 409),
        (one_hash_more, 422),
        (log.ask(5, 5), 200),
        (log.ask(5, 8), 200),
    ] {
        assert_eq!(status(&witness, &body), wanted, "{body}");
    }
    match ask(&witness, &log.ask(5, 8)) {
        Err((409, CosignError::Conflict(size))) => assert_eq!(size, 8),
        other => panic!("{other:?}"),
    }
    assert_eq!(witness.add_checkpoint(&[0xff], NOW).unwrap_err().status().0, 400);
}

#[test]
fn a_changed_byte_of_a_signed_checkpoint_is_not_cosigned() {
    let log = History::new("log.example/a", 64, 0);
    let body = log.ask(0, 5);
    for at in 0..body.len() {
        let mut changed = body.clone().into_bytes();
        changed[at] ^= 1;
        let witness = begun(&MemoryStorage::default());
        assert!(witness.add_checkpoint(&changed, NOW).is_err(), "at {at}");
        assert_eq!(witness.cosigned_sizes()[0].size, 0);
    }
}

#[test]
fn of_two_histories_that_come_at_once_one_is_cosigned() {
    for _ in 0..50 {
        let witness = Arc::new(begun(&MemoryStorage::default()));
        let start = Arc::new(Barrier::new(4));
        let asking: Vec<_> = (0..4)
            .map(|number| {
                let (witness, start) = (Arc::clone(&witness), Arc::clone(&start));
                std::thread::spawn(move || {
                    let log = History::new("log.example/a", 0, number);
                    start.wait();
                    status(&witness, &log.ask(0, 9))
                })
            })
            .collect();
        let mut answers: Vec<u16> = asking.into_iter().map(|thread| thread.join().unwrap()).collect();
        answers.sort_unstable();
        assert_eq!(answers, [200, 409, 409, 409]);
    }
}

#[test]
fn a_state_that_is_lost_locked_or_anothers_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let directory = StateDirectory::open(folder.path()).unwrap().unwrap();
    assert!(StateDirectory::open(folder.path()).unwrap().is_none());
    let state: Arc<dyn StateStorage> = Arc::new(directory);
    let opened = |key| Witness::open(Arc::clone(&state), key, logs()).map(|_| ());
    assert!(matches!(opened(key()), Err(WitnessError::NoState)));
    let witness = Witness::create(Arc::clone(&state), key(), logs()).unwrap();
    let again = Witness::create(Arc::clone(&state), key(), logs()).map(|_| ());
    assert!(matches!(again, Err(WitnessError::StateExists)));
    assert_eq!(
        status(&witness, &History::new("log.example/a", 64, 0).ask(0, 5)),
        200
    );
    opened(key()).unwrap();
    let stranger = CosigningKey::generate("witness.example", [4; 32]).unwrap();
    assert!(matches!(opened(stranger), Err(WitnessError::StateCorrupt { .. })));
    for name in state.list("logs").unwrap() {
        state.remove(&format!("logs/{name}")).unwrap();
    }
    // A new start does not forget what was cosigned.
    assert!(matches!(opened(key()), Err(WitnessError::StateCorrupt { .. })));
}

#[test]
fn a_log_that_joins_the_list_begins_and_one_that_left_it_is_remembered() {
    let (state, log) = (MemoryStorage::default(), History::new("log.example/a", 64, 0));
    let of = |logs| Witness::open(Arc::new(state.clone()), key(), logs).unwrap();
    drop(begun(&state));
    assert_eq!(status(&of(vec![listed("log.example/a")]), &log.ask(0, 5)), 200);
    let without = of(vec![listed("log.example/c")]);
    assert_eq!(status(&without, &log.ask(5, 6)), 404);
    assert_eq!(
        status(&without, &History::new("log.example/c", 64, 0).ask(0, 6)),
        200
    );
    assert_eq!(status(&of(logs()), &log.ask(0, 6)), 409);
}

#[test]
fn a_cosignature_does_not_leave_on_the_strength_of_a_write_that_failed() {
    for fault in [Fault::BeforeWrite, Fault::AfterWrite, Fault::Unsynced] {
        let state = MemoryStorage::default();
        let (one, other) = (
            History::new("log.example/a", 0, 1),
            History::new("log.example/a", 0, 2),
        );
        let mut witness = begun(&state);
        state.fail_from(0, fault);
        assert_eq!(status(&witness, &one.ask(0, 9)), 503);
        state.heal();
        // The witness continues from what it reads back, whether or not that is durable.
        let old = if fault == Fault::BeforeWrite { 0 } else { 9 };
        assert_eq!(status(&witness, &one.ask(old, 9)), 200, "{fault:?}");
        state.lose_power();
        witness = Witness::open(Arc::new(state.clone()), key(), logs()).unwrap();
        assert_eq!(status(&witness, &other.ask(0, 9)), 409, "{fault:?}");
        assert_eq!(status(&witness, &one.ask(9, 12)), 200, "{fault:?}");
    }
}

/// An event in the life of a witness.
#[derive(Clone, Debug)]
enum Step {
    /// A history requests a size, from the size that it believes was cosigned, or from another one.
    Ask(u8, u64, Option<u64>),
    /// All writes from this one on fail.
    Fail(u64, Fault),
    Heal,
    /// The process is killed and restarted, with or without a power loss.
    Restart(bool),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u8..3, 0u64..64, prop::option::weighted(0.2, 0u64..64)).prop_map(|(a, b, c)| Step::Ask(a, b, c)),
        2 => (0u64..2, prop::sample::select(vec![Fault::BeforeWrite, Fault::AfterWrite, Fault::Unsynced]))
            .prop_map(|(write, fault)| Step::Fail(write, fault)),
        2 => Just(Step::Heal),
        2 => any::<bool>().prop_map(Step::Restart),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    #[test]
    fn whatever_fails_all_that_was_cosigned_is_one_history(steps in steps(), fork in 0u64..40) {
        let state = MemoryStorage::default();
        let histories: Vec<_> = (0..3).map(|history| History::new("log.example/a", fork, history)).collect();
        let mut witness = begun(&state);
        let mut cosigned: BTreeMap<u64, Hash> = BTreeMap::new();
        let mut known = 0;
        for step in steps {
            match step {
                Step::Fail(write, fault) => state.fail_from(write, fault),
                Step::Heal => state.heal(),
                Step::Restart(power_lost) => {
                    state.heal();
                    if power_lost {
                        state.lose_power();
                    }
                    witness = Witness::open(Arc::new(state.clone()), key(), logs()).unwrap();
                }
                Step::Ask(history, size, old) => {
                    let history = &histories[history as usize];
                    match ask(&witness, &history.ask(old.unwrap_or(known).min(64), size)) {
                        Ok(_) => {
                            let root = history.roots[size as usize];
                            prop_assert_eq!(*cosigned.entry(size).or_insert(root), root, "two roots of one size");
                            prop_assert_eq!(cosigned.keys().max(), Some(&size), "a smaller tree after a larger one");
                            known = size;
                        }
                        Err((_, CosignError::Conflict(size))) => known = size,
                        Err(_) => {}
                    }
                }
            }
        }
        let one = histories.iter().any(|history| cosigned.iter().all(|(size, root)| history.roots[*size as usize] == *root));
        prop_assert!(one, "they are of two histories");
    }
}
