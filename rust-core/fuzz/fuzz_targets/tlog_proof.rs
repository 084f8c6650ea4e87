//! A proof file that is read is written again as it was.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_ledger::TlogProof;

fuzz_target!(|text: &str| {
    if let Ok(proof) = TlogProof::parse(text) {
        assert_eq!(proof.encode(), text);
        let _ = proof.salt();
    }
});
