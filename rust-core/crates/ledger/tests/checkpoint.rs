//! Checkpoints and proof files as a third party receives them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_ledger::{
    Checkpoint, Hash, LedgerError, Mmr, SigningKey, TlogProof, inclusion_proof, leaf_hash,
};

const ORIGIN: &str = "ledger.example/demo/3/01ARZ3NDEKTSV4RRFFQ69G5FAV";

fn key() -> SigningKey {
    SigningKey::generate("ledger.example/demo", [7; 32]).unwrap()
}

fn records() -> Vec<Vec<u8>> {
    (0..11)
        .map(|number| format!("{{\"record\":{number}}}").into_bytes())
        .collect()
}

fn log() -> (Checkpoint, Vec<Hash>) {
    let (mut mmr, mut nodes) = (Mmr::new(), Vec::new());
    for record in records() {
        mmr.push(leaf_hash(&record), &mut |node| nodes.push(node));
    }
    (
        Checkpoint {
            origin: ORIGIN.to_owned(),
            size: mmr.size(),
            root: mmr.root(),
        },
        nodes,
    )
}

fn proof(index: u64) -> TlogProof {
    let (checkpoint, nodes) = log();
    TlogProof {
        extra: None,
        index,
        hashes: inclusion_proof(&nodes, index, checkpoint.size).unwrap(),
        checkpoint: checkpoint.sign(&key()).unwrap(),
    }
}

#[test]
fn a_signed_checkpoint_comes_back_as_it_was() {
    let (checkpoint, _) = log();
    let note = checkpoint.sign(&key()).unwrap();
    assert!(
        note.starts_with(&format!("{ORIGIN}\n11\n")) && note.contains(&format!("\n\n\u{2014} {ORIGIN} "))
    );
    assert_eq!(
        Checkpoint::verify(&note, &key().verifying_key()),
        Ok(checkpoint.clone())
    );
    let of_origin = key().verifying_key().for_origin(ORIGIN).unwrap();
    assert_eq!(Checkpoint::verify(&note, &of_origin), Ok(checkpoint));
}

#[test]
fn a_checkpoint_of_another_ledger_or_by_another_key_is_refused() {
    let (checkpoint, _) = log();
    let note = checkpoint.sign(&key()).unwrap();
    let other = SigningKey::generate("ledger.example/demo", [8; 32]).unwrap();
    let refused = Checkpoint::verify(&note, &other.verifying_key());
    assert_eq!(refused, Err(LedgerError::NoteUnsigned(ORIGIN.to_owned())));
    let other = SigningKey::generate("ledger.example/else", [7; 32]).unwrap();
    assert!(matches!(
        Checkpoint::verify(&note, &other.verifying_key()),
        Err(LedgerError::OriginNotBelowKey { .. })
    ));
    assert!(checkpoint.sign(&other).is_err());
}

#[test]
fn what_another_key_signed_has_a_code_of_its_own_and_what_was_changed_has_not() {
    let (checkpoint, _) = log();
    let note = checkpoint.sign(&key()).unwrap();
    let code = |note: &str, name, seed| {
        let key = SigningKey::generate(name, [seed; 32]).unwrap().verifying_key();
        Checkpoint::verify(note, &key).map_err(|error| error.code())
    };
    assert_eq!(code(&note, "ledger.example/demo", 8), Err("another_key"));
    assert_eq!(code(&note, "ledger.example/else", 7), Err("another_key"));
    let changed = note.replacen(&checkpoint.size.to_string(), "7", 1);
    assert_eq!(code(&changed, "ledger.example/demo", 7), Err("ledger_refused"));
}

#[test]
fn any_changed_byte_of_a_checkpoint_is_noticed() {
    let note = log().0.sign(&key()).unwrap();
    for at in 0..note.len() {
        let mut changed = note.clone().into_bytes();
        changed[at] ^= 1;
        if let Ok(changed) = String::from_utf8(changed) {
            assert!(
                Checkpoint::verify(&changed, &key().verifying_key()).is_err(),
                "byte {at}"
            );
        }
    }
}

#[test]
fn malformed_checkpoint_texts_are_refused() {
    let body = log().0.body();
    for text in [
        body.replace("\n11\n", "\n011\n"),
        body.replace("\n11\n", "\n+11\n"),
        body.replace("\n11\n", "\n\n"),
        body.replace("\n11\n", "\n18446744073709551616\n"),
        body.replace("=\n", "\n"),
        format!("{body}extension\n"),
        body.replace(ORIGIN, ""),
    ] {
        let note = format!("{text}\n\u{2014} somebody AAAAAAAAAAAA\n");
        assert!(matches!(
            Checkpoint::parse_unverified(&note),
            Err(LedgerError::CheckpointMalformed(_) | LedgerError::NoteMalformed(_))
        ));
    }
}

#[test]
fn every_record_of_a_log_is_proved_by_its_file() {
    for (index, record) in records().iter().enumerate() {
        let file = proof(index as u64).encode();
        let parsed = TlogProof::parse(&file).unwrap();
        assert_eq!(parsed.encode(), file);
        assert_eq!(parsed.verify(record, &key().verifying_key()).unwrap().size, 11);
        assert!(parsed.verify(b"another record", &key().verifying_key()).is_err());
    }
}

#[test]
fn extra_data_is_carried_and_not_authenticated() {
    let with_extra = TlogProof {
        extra: Some(b"note to self".to_vec()),
        ..proof(4)
    };
    let parsed = TlogProof::parse(&with_extra.encode()).unwrap();
    assert_eq!(parsed, with_extra);
    parsed.verify(&records()[4], &key().verifying_key()).unwrap();
}

#[test]
fn malformed_proof_files_are_refused() {
    let file = TlogProof {
        extra: Some(b"x".to_vec()),
        ..proof(4)
    }
    .encode();
    let hash = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n";
    for changed in [
        String::new(),
        file.replace("@v1", "@v2"),
        file.replace("index 4", "index 04"),
        file.replace("index 4", "index -4"),
        file.replace("index 4\n", ""),
        file.replace("extra eA==", "extra eA="),
        file.replace("extra eA==", "extra eB=="),
        file.replace("index 4\n", "index 4\nAAAA\n"),
        file.replace("index 4\n", &format!("index 4\n{}", hash.repeat(64))),
        file.replace("\n\n", "\n"),
    ] {
        assert!(TlogProof::parse(&changed).is_err(), "{changed:.80}");
    }
}

#[test]
fn a_proof_with_a_changed_path_or_index_proves_nothing() {
    let right = proof(4);
    let check = |proof: TlogProof| proof.verify(&records()[4], &key().verifying_key()).is_err();
    assert!(check(TlogProof {
        index: 5,
        ..right.clone()
    }));
    assert!(check(TlogProof {
        hashes: right.hashes[1..].to_vec(),
        ..right.clone()
    }));
    let mut swapped = right.clone();
    swapped.hashes.swap(0, 1);
    assert!(check(swapped));
    let mut longer = right.clone();
    longer.hashes.push([0; 32]);
    assert!(check(longer));
}

#[test]
fn the_golden_proof_file_that_other_languages_verify_is_what_is_written() {
    // e2e/verifier checks the same three files with two Go libraries.
    assert_eq!(proof(4).encode(), include_str!("vectors/record.tlog-proof"));
    assert_eq!(records()[4], include_bytes!("vectors/record"));
    assert_eq!(
        key().verifying_key().to_text(),
        include_str!("vectors/vkey").trim()
    );
}
