//! A signed note is read or refused, and a checkpoint that is read has one text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_ledger::{Checkpoint, SigningKey};

fuzz_target!(|text: &str| {
    let Ok(checkpoint) = Checkpoint::parse_unverified(text) else {
        return;
    };
    assert!(text.starts_with(&checkpoint.body()));
    let Ok(key) = SigningKey::generate("fuzz", [7; 32]) else {
        return;
    };
    // No input here is signed by this key.
    assert!(Checkpoint::verify(text, &key.verifying_key()).is_err());
});
