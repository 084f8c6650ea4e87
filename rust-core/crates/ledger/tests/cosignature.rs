//! Cosignatures and trust policies from the perspective of a log, a witness and a third party.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use proofgate_ledger::{
    AddCheckpoint, Checkpoint, Cosignature, CosignatureKey, CosigningKey, LedgerError, SignedCheckpoint,
    SigningKey, TrustPolicy, VerifyingKey,
};
use proptest::prelude::*;

/// The example of c2sp.org/tlog-cosignature, which does not publish its keys.
const EXAMPLE: &str = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n\
    \u{2014} example.com/behind-the-sofa Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n\
    \u{2014} witness.example.com/w1 jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n";

fn log() -> SigningKey {
    SigningKey::generate("log.example/audit", [1; 32]).unwrap()
}

fn witness(number: u8) -> CosigningKey {
    CosigningKey::generate(&format!("w{number}.example"), [100 + number; 32]).unwrap()
}

fn note(size: u64) -> String {
    let checkpoint = Checkpoint {
        origin: log().name().to_owned(),
        size,
        root: [size as u8; 32],
    };
    checkpoint.sign(&log()).unwrap()
}

fn cosign(note: &str, by: &CosigningKey, time: u64) -> Cosignature {
    by.cosign(&SignedCheckpoint::parse(note).unwrap(), time).unwrap()
}

fn text(note: &str) -> &str {
    SignedCheckpoint::parse(note).unwrap().text()
}

#[test]
fn keys_are_read_again_from_their_texts_and_do_not_pass_for_a_logs() {
    let key = witness(1);
    assert_eq!(
        CosigningKey::from_text(&key.to_text()).unwrap().to_text(),
        key.to_text()
    );
    let public = key.cosignature_key();
    assert_eq!(CosignatureKey::from_text(&public.to_text()).unwrap(), public);
    assert!(VerifyingKey::from_text(&public.to_text()).is_err());
    assert!(SigningKey::from_text(&key.to_text()).is_err());
    assert!(CosigningKey::from_text(&log().to_text()).is_err());
    assert!(CosignatureKey::from_text(&log().verifying_key().to_text()).is_err());
    assert!(!format!("{key:?}").contains(key.to_text().splitn(5, '+').nth(4).unwrap()));
}

#[test]
fn the_example_of_the_specification_is_taken_apart() {
    let read = SignedCheckpoint::parse(EXAMPLE).unwrap();
    assert_eq!(read.checkpoint().size, 20_852_163);
    assert_eq!(read.cosignature(&witness(1).cosignature_key()), Ok(None));
}

#[test]
fn a_cosignature_is_found_in_a_note_and_tells_its_time() {
    let (note, by) = (note(7), witness(1));
    let cosigned = format!(
        "{note}{}{}",
        cosign(&note, &by, 5).line,
        cosign(&note, &by, 9).line
    );
    let read = SignedCheckpoint::parse(&cosigned).unwrap();
    assert_eq!(read.cosignature(&by.cosignature_key()).unwrap().unwrap().time, 9);
    // Verification of the log's signature ignores it.
    assert_eq!(
        Checkpoint::verify(&cosigned, &log().verifying_key())
            .unwrap()
            .size,
        7
    );
}

#[test]
fn an_answer_is_believed_for_its_own_checkpoint_and_key_only() {
    let (older, newer, by) = (note(7), note(8), witness(1));
    let key = by.cosignature_key();
    let answer = cosign(&newer, &by, 5).line;
    assert_eq!(
        Cosignature::from_response(text(&newer), &answer, &key)
            .unwrap()
            .line,
        answer
    );
    let stranger = cosign(&newer, &witness(2), 5).line;
    let mixed = format!("{stranger}{answer}");
    assert_eq!(
        Cosignature::from_response(text(&newer), &mixed, &key)
            .unwrap()
            .line,
        answer
    );
    let replayed = cosign(&older, &by, 5).line;
    assert_eq!(
        Cosignature::from_response(text(&newer), &replayed, &key),
        Err(LedgerError::BadSignature("w1.example".to_owned()))
    );
    assert_eq!(
        Cosignature::from_response(text(&newer), &stranger, &key),
        Err(LedgerError::NoteUnsigned("w1.example".to_owned()))
    );
    let same_name = CosigningKey::generate("w1.example", [9; 32]).unwrap();
    let forged = cosign(&newer, &same_name, 5).line;
    assert!(Cosignature::from_response(text(&newer), &forged, &key).is_err());
    for garbage in ["", "\n", "hello", &answer[..answer.len() - 1], &log().to_text()] {
        assert!(
            Cosignature::from_response(text(&newer), garbage, &key).is_err(),
            "{garbage}"
        );
    }
    // The response may not add text.
    let longer = format!("{}extension\n", text(&newer));
    let signed = format!("{longer}\n{answer}");
    let smuggled = format!("extension\n\n{}", cosign(&signed, &by, 5).line);
    assert!(Cosignature::from_response(text(&newer), &smuggled, &key).is_err());
}

#[test]
fn extension_lines_are_part_of_what_is_signed_and_none_is_empty() {
    let by = witness(1);
    let note = note(7).replacen("\n\n", "\nan extension\n\n", 1);
    let line = cosign(&note, &by, 5).line;
    assert!(Cosignature::from_response(text(&note), &line, &by.cosignature_key()).is_ok());
    assert!(SignedCheckpoint::parse(&note.replacen("\nan ext", "\n\nan ext", 1)).is_err());
}

fn policy(lines: &str) -> Result<TrustPolicy, LedgerError> {
    let mut text = String::new();
    for line in lines.lines() {
        let mut line = line.to_owned();
        for number in 1..=4 {
            let key = witness(number).verifying_key().to_text();
            line = line.replace(&format!("<{number}>"), &key);
        }
        text.push_str(&line.replace("<log>", &log().verifying_key().to_text()));
        text.push('\n');
    }
    TrustPolicy::parse(text.as_bytes())
}

const GROUPS: &str = "# two of three, and the fourth\nlog <log> https://log.example\n\
    witness a <1> https://a.example/\n\twitness b <2>\t\nwitness c <3>\nwitness d <4>\n\
    group abc 2 a b c\ngroup all-of-it all abc d\n\nquorum all-of-it\n";

#[test]
fn a_quorum_is_what_the_groups_say() {
    let policy = policy(GROUPS).unwrap();
    assert_eq!((policy.logs().len(), policy.witnesses().len()), (1, 4));
    assert_eq!(policy.witnesses()[0].url.as_deref(), Some("https://a.example/"));
    for (cosigned, enough) in [
        (&[][..], false),
        (&[0, 1], false),
        (&[0, 3], false),
        (&[0, 2, 3], true),
        (&[0, 1, 2, 3], true),
    ] {
        assert_eq!(
            policy.is_quorum(&|place| cosigned.contains(&place)),
            enough,
            "{cosigned:?}"
        );
    }
    let note = note(7);
    let mut cosigned = note.clone();
    for number in [1, 2, 4] {
        assert!(
            !policy
                .is_cosigned(&SignedCheckpoint::parse(&cosigned).unwrap())
                .unwrap()
        );
        cosigned.push_str(&cosign(&note, &witness(number), 5).line);
    }
    assert!(
        policy
            .is_cosigned(&SignedCheckpoint::parse(&cosigned).unwrap())
            .unwrap()
    );
    let none = TrustPolicy::parse(b"quorum none").unwrap();
    assert!(none.is_quorum(&|_| false));
}

#[test]
fn what_is_no_policy_is_refused_with_its_line() {
    for (lines, line, reason) in [
        ("", 1, "no quorum"),
        ("witness a <1>\nquorum b", 2, "no line above defines b"),
        ("quorum a\nwitness a <1>", 1, "no line above"),
        ("witness a <1>\nwitness a <2>", 2, "taken"),
        ("witness a <1>\nwitness b <1>", 2, "public key"),
        ("log <log>\nlog <log>", 2, "public key"),
        ("witness none <1>", 1, "taken"),
        ("witness a <log>", 1, "a witness key (type 0x04) is required"),
        ("log <1>", 1, "the key of a log is required"),
        ("witness a", 1, "expected: witness"),
        ("witness a <1> https://a.example too-much", 1, "expected: witness"),
        ("witness a <1>\ngroup g 0 a", 2, "from 1 to 1"),
        ("witness a <1>\ngroup g 2 a", 2, "from 1 to 1"),
        ("witness a <1>\ngroup g 01 a", 2, "from 1 to 1"),
        ("witness a <1>\ngroup g any a a", 2, "already"),
        ("witness a <1>\ngroup g any a\ngroup h any a", 3, "already"),
        ("witness a <1>\ngroup g any none", 2, "no line above defines none"),
        ("group g any", 1, "expected: group"),
        ("quorum none\nquorum none", 2, "already"),
        ("quorum none\r", 1, "control"),
        ("Quorum none", 1, "expected a line"),
    ] {
        match policy(lines) {
            Err(LedgerError::PolicyMalformed {
                line: at,
                reason: why,
            }) => {
                assert!(why.contains(reason), "{lines}: {why}");
                assert_eq!(at, line, "{lines}");
            }
            other => panic!("{lines}: {other:?}"),
        }
    }
}

#[test]
fn a_question_to_a_witness_is_read_as_it_was_written_and_nothing_else_is_one() {
    let note = note(9);
    for proof in [vec![], vec![[1; 32]], vec![[2; 32]; 63]] {
        let asked = AddCheckpoint {
            old_size: 4,
            proof,
            note: &note,
        };
        assert_eq!(AddCheckpoint::parse(&asked.encode()).unwrap(), asked);
    }
    let long = AddCheckpoint {
        old_size: 4,
        proof: vec![[2; 32]; 64],
        note: &note,
    }
    .encode();
    let huge = AddCheckpoint {
        old_size: 4,
        proof: vec![],
        note: &"x".repeat(1 << 20),
    }
    .encode();
    for body in [
        "",
        "old 4\n",
        "old 04\n\nx",
        "old -4\n\nx",
        "old 4 \n\nx",
        "4\n\nx",
        "old 4\nAAAA\n\nx",
        &long,
        &huge,
    ] {
        assert!(AddCheckpoint::parse(body).is_err());
    }
}

proptest! {
    #[test]
    fn no_file_makes_the_reader_of_policies_panic(file in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = TrustPolicy::parse(&file);
    }

    #[test]
    fn more_cosignatures_never_undo_a_quorum(few in prop::bits::u8::masked(15), more in prop::bits::u8::masked(15)) {
        let policy = policy(GROUPS).unwrap();
        let quorum = |set: u8| policy.is_quorum(&|place| set & (1 << place) != 0);
        prop_assert!(!quorum(few) || quorum(few | more));
    }

    #[test]
    fn a_changed_byte_of_a_cosignature_is_never_believed(at in 0usize..200, change in 1u8..=255, time in 0u64..1 << 62) {
        let (note, by) = (note(7), witness(1));
        let mut line = cosign(&note, &by, time).line.into_bytes();
        let at = at % line.len();
        line[at] ^= change;
        if let Ok(line) = String::from_utf8(line) {
            prop_assert!(Cosignature::from_response(text(&note), &line, &by.cosignature_key()).is_err());
        }
    }
}
