//! What a stranger asks a witness is read or refused, and what is read has one text; a list of logs and a witness's answer
//! are read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_ledger::{AddCheckpoint, Cosignature, CosigningKey, SignedCheckpoint};
use proofgate_witness::parse_log_list;

fuzz_target!(|text: &str| {
    let _ = parse_log_list(text);
    let Ok(asked) = AddCheckpoint::parse(text) else {
        return;
    };
    assert_eq!(asked.encode(), text);
    let (Ok(signed), Ok(key)) = (
        SignedCheckpoint::parse(asked.note),
        CosigningKey::generate("fuzz", [7; 32]),
    ) else {
        return;
    };
    // No input here is cosigned by this key, and what it cosigns verifies.
    let public = key.cosignature_key();
    assert!(Cosignature::from_response(signed.text(), text, &public).is_err());
    let Ok(answer) = key.cosign(&signed, 9).map(|cosignature| cosignature.line) else {
        return;
    };
    assert!(Cosignature::from_response(signed.text(), &answer, &public).is_ok());
});
