//! ML-DSA-44 cosignatures made by another implementation: `vectors/ml_dsa_44_cosignatures.py`.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

use base64::{Engine, engine::general_purpose::STANDARD};
use proofgate_ledger::{
    Cosignature, CosignatureKey, CosigningKey, LedgerError, SignedCheckpoint, SigningKey, TrustPolicy,
    VerifyingKey,
};

const VECTORS: &str = include_str!("vectors/ml-dsa-44-cosignatures.txt");
const TIME: u64 = 1_764_086_400;

fn vkey() -> &'static str {
    VECTORS.lines().next().unwrap()
}

fn key() -> CosignatureKey {
    CosignatureKey::from_text(vkey()).unwrap()
}

fn note(name: &str) -> &'static str {
    let after = VECTORS.split_once(&format!("= {name}\n")).unwrap().1;
    after.split("= ").next().unwrap()
}

fn cosignature(note: &str) -> Result<Option<Cosignature>, LedgerError> {
    SignedCheckpoint::parse(note).unwrap().cosignature(&key())
}

/// Returns the note with a change in its signature after the key id.
fn with_signature(change: impl Fn(&mut Vec<u8>)) -> String {
    let (before, signature) = note("timed").trim_end().rsplit_once(' ').unwrap();
    let mut signature = STANDARD.decode(signature).unwrap();
    change(&mut signature);
    format!("{before} {}\n", STANDARD.encode(signature))
}

#[test]
fn a_key_is_read_again_from_its_text_and_passes_for_no_other() {
    assert_eq!(key().to_text(), vkey());
    assert_eq!(key().name(), "pq.example/w1");
    assert!(VerifyingKey::from_text(vkey()).is_err());
    assert!(SigningKey::from_text(&format!("PRIVATE+KEY+{}", vkey())).is_err());
    assert!(CosigningKey::from_text(&format!("PRIVATE+KEY+{}", vkey())).is_err());
    let renamed = vkey().replacen("w1", "w2", 1);
    assert_eq!(
        CosignatureKey::from_text(&renamed),
        Err(LedgerError::KeyMalformed("the key id does not match the key"))
    );
    for cut in [vkey().len() - 1, vkey().len() - 4, 40] {
        assert!(CosignatureKey::from_text(&vkey()[..cut]).is_err());
    }
}

#[test]
fn a_cosignature_of_another_implementation_is_found_and_tells_its_time() {
    let found = cosignature(note("timed")).unwrap().unwrap();
    assert_eq!(found.time, TIME);
    assert!(note("timed").ends_with(&found.line));
    let signed = SignedCheckpoint::parse(note("timed")).unwrap();
    assert_eq!(
        Cosignature::from_response(signed.text(), &found.line, &key()),
        Ok(found)
    );
}

#[test]
fn a_changed_checkpoint_time_or_signature_is_refused() {
    let bad = Err(LedgerError::BadSignature("pq.example/w1".to_owned()));
    for (old, new) in [
        ("log.example", "log.exampl3"),
        ("\n7\n", "\n8\n"),
        ("BwcHBwcH", "CAcHBwcH"),
    ] {
        assert_eq!(cosignature(&note("timed").replacen(old, new, 1)), bad, "{new}");
    }
    for at in [4, 11, 12, 1200, 2431] {
        assert_eq!(
            cosignature(&with_signature(|signature| signature[at] ^= 1)),
            bad,
            "{at}"
        );
    }
    for length in [5, 12, 76, 2431] {
        assert_eq!(
            cosignature(&with_signature(|signature| signature.truncate(length))),
            bad,
            "{length}"
        );
    }
    assert_eq!(cosignature(&with_signature(|signature| signature.push(0))), bad);
}

#[test]
fn one_without_a_time_does_not_say_that_nothing_larger_was_seen() {
    assert_eq!(cosignature(note("untimed")), Ok(None));
    let later = note("timed").split_once("\n\n").unwrap().1;
    assert_eq!(
        cosignature(&format!("{}{later}", note("untimed")))
            .unwrap()
            .unwrap()
            .time,
        TIME
    );
}

#[test]
fn extension_lines_are_not_part_of_what_is_signed() {
    let extended = note("timed").replacen("\n\n", "\nan extension\n\n", 1);
    assert_eq!(cosignature(&extended).unwrap().unwrap().time, TIME);
}

#[test]
fn a_policy_asks_for_keys_of_both_kinds() {
    let classic = CosigningKey::generate("w2.example", [9; 32]).unwrap();
    let policy = |lines: &str| TrustPolicy::parse(lines.as_bytes());
    let both = format!(
        "witness pq {} https://pq.example\nwitness classic {}\ngroup g all pq classic\nquorum g\n",
        vkey(),
        classic.cosignature_key().to_text()
    );
    let policy_of_both = policy(&both).unwrap();
    let signed = SignedCheckpoint::parse(note("timed")).unwrap();
    assert_eq!(policy_of_both.is_cosigned(&signed), Ok(false));
    let line = classic.cosign(&signed, TIME).unwrap().line;
    let cosigned = format!("{}{line}", note("timed"));
    let signed = SignedCheckpoint::parse(&cosigned).unwrap();
    assert_eq!(policy_of_both.is_cosigned(&signed), Ok(true));
    let twice = format!("witness a {0}\nwitness b {0}\nquorum none\n", vkey());
    assert!(policy(&twice).is_err());
    assert!(policy(&format!("log {}\nquorum none\n", vkey())).is_err());
}
