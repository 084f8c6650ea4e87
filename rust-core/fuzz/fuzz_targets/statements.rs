//! What the retention job, or two keys of one line, signed is read as exactly one text, or refused: a text that anybody
//! with a key may write, and that decides what counts as removed, erased, held or believed.
#![no_main]

use std::sync::LazyLock;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signer, SigningKey};
use libfuzzer_sys::fuzz_target;
use proofgate_evidence::erasures;
use proofgate_ledger::{Erasure, HoldStatement, KeyDestruction, KeySuccession, Tombstone, VerifyingKey};
use sha2::{Digest, Sha256};

const NAME: &str = "fuzz.example/keeping";
/// Those of `KEYS` in `seed_corpus.py`.
static KEYS: LazyLock<[SigningKey; 2]> =
    LazyLock::new(|| [[3; 32], [4; 32]].map(|seed| SigningKey::from_bytes(&seed)));
static VERIFYING: LazyLock<Option<VerifyingKey>> =
    LazyLock::new(|| VerifyingKey::from_text(&vkey(&KEYS[0])).ok());

fn id(key: &SigningKey) -> [u8; 4] {
    let digest = Sha256::new()
        .chain_update(NAME)
        .chain_update(b"\n\x01")
        .chain_update(key.verifying_key().as_bytes())
        .finalize();
    [digest[0], digest[1], digest[2], digest[3]]
}

/// As golang.org/x/mod/sumdb/note writes it.
fn vkey(key: &SigningKey) -> String {
    let public = [&[1][..], key.verifying_key().as_bytes()].concat();
    let id = u32::from_be_bytes(id(key));
    format!("{NAME}+{id:08x}+{}", STANDARD.encode(public))
}

fn signature(key: &SigningKey, text: &str) -> String {
    let signed = [&id(key)[..], &key.sign(text.as_bytes()).to_bytes()].concat();
    format!("\u{2014} {NAME} {}\n", STANDARD.encode(signed))
}

fuzz_target!(|text: &str| {
    let Some(verifying) = &*VERIFYING else { return };
    let [first, second] = &*KEYS;
    let note = format!("{text}\n{}", signature(first, text));
    if let Ok(tombstone) = Tombstone::verify(&note, verifying) {
        assert_eq!(tombstone.body(), text);
    }
    if let Ok(erasure) = Erasure::verify(&note, verifying) {
        assert_eq!(erasure.body(), text);
        let twice = format!("{note}{note}");
        let read = erasures::read(&twice, &erasure.origin, erasure.size, verifying);
        assert_eq!(read.len(), 2);
    }
    if let Ok(destruction) = KeyDestruction::verify(&note, verifying) {
        assert_eq!(destruction.body(), text);
    }
    if let Ok(statement) = HoldStatement::verify(&note, verifying) {
        assert_eq!(statement.body(), text);
    }
    assert!(KeySuccession::verify(&note).is_err(), "one signature is none");
    let note = format!("{note}{}", signature(second, text));
    if let Ok(succession) = KeySuccession::verify(&note) {
        assert_eq!(succession.body(), text);
    }
    for part in KeySuccession::split_notes(text) {
        assert!(part.ends_with('\n'));
    }
});
