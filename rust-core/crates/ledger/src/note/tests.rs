use super::*;

// The example from the documentation of golang.org/x/mod/sumdb/note.
const SKEY: &str = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz";
const VKEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const TEXT: &str = "If you think cryptography is the answer to your problem,\n\
                    then you don't know what your problem is.\n";
const SIGNATURE: &str = "\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

fn note() -> String {
    format!("{TEXT}\n{SIGNATURE}")
}

fn key() -> VerifyingKey {
    VerifyingKey::from_text(VKEY).unwrap()
}

fn verify(note: &str) -> Result<(), LedgerError> {
    Note::parse(note)?.verify(&key())
}

#[test]
fn the_example_of_the_go_documentation_is_read_verified_and_reproduced() {
    let signing = SigningKey::from_text(SKEY).unwrap();
    assert_eq!(signing.to_text(), SKEY);
    assert_eq!(signing.verifying_key().to_text(), VKEY);
    assert_eq!(signing.verifying_key(), key());
    assert_eq!(signing.sign_note(TEXT).unwrap(), note());
    verify(&note()).unwrap();
}

#[test]
fn a_signing_key_does_not_print_itself() {
    let text = format!("{:?}", SigningKey::from_text(SKEY).unwrap());
    assert!(
        text.contains("PeterNeumann") && text.contains("redacted") && !text.contains("AYEK"),
        "{text}"
    );
}

#[test]
fn damaged_key_texts_are_refused() {
    for text in [
        "",
        "PeterNeumann",
        "PeterNeumann+c74f20a3",
        "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10T",
        "PeterNeumann+c74f20a3+BBpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    ] {
        assert!(VerifyingKey::from_text(text).is_err(), "{text}");
        assert!(
            SigningKey::from_text(&format!("PRIVATE+KEY+{text}")).is_err(),
            "{text}"
        );
    }
    assert!(SigningKey::from_text(VKEY).is_err());
}

#[test]
fn unknown_signatures_are_ignored_and_a_failing_known_one_refuses() {
    let stranger = "\u{2014} somebody AAAAAAAAAAAA\n";
    verify(&format!("{TEXT}\n{stranger}{SIGNATURE}{stranger}")).unwrap();
    assert_eq!(
        verify(&format!("{TEXT}\n{stranger}")),
        Err(LedgerError::NoteUnsigned("PeterNeumann".to_owned()))
    );
    let forged = SIGNATURE.replace("x08go/ZJ", "x08go/ZK");
    let refused = Err(LedgerError::BadSignature("PeterNeumann".to_owned()));
    assert_eq!(verify(&format!("{TEXT}\n{forged}")), refused);
    assert_eq!(
        verify(&format!("{TEXT}\n{SIGNATURE}{forged}")),
        refused,
        "a good one does not heal a bad one"
    );
    assert_eq!(verify(&note().replace("cryptography", "Cryptography")), refused);
}

#[test]
fn as_many_signatures_are_read_as_a_policy_may_ask_for_and_not_one_more_than_the_limit() {
    let stranger = "\u{2014} somebody AAAAAAAAAAAA\n".repeat(MAX_SIGNATURES - 1);
    verify(&format!("{TEXT}\n{stranger}{SIGNATURE}")).unwrap();
    assert!(verify(&format!("{TEXT}\n{stranger}{SIGNATURE}{SIGNATURE}")).is_err());
}

#[test]
fn malformed_notes_are_refused() {
    let endless = "x".repeat(MAX_NOTE_BYTES);
    for note in [
        "",
        "\n",
        "text\n",
        "text\n\n",
        &note()[..note().len() - 1],
        &note().replace('\u{2014}', "-"),
        &note().replace("PeterNeumann x", "PeterNeumann  x"),
        &note().replace('\n', "\r\n"),
        &note().replace("nAM=\n", "nAM\n"),
        &format!("{TEXT}\n{SIGNATURE}\n"),
        &format!("{TEXT}\u{7}\n{SIGNATURE}"),
        &format!("{endless}\n\n{SIGNATURE}"),
    ] {
        assert!(verify(note).is_err(), "{note:.60}");
    }
}

#[test]
fn a_key_speaks_for_its_name_and_for_origins_below_it_only() {
    let signing = SigningKey::generate("ledger.example/demo", [7; 32]).unwrap();
    for origin in [
        "ledger.example/demo",
        "ledger.example/demo/0/01ARZ3NDEKTSV4RRFFQ69G5FAV",
    ] {
        assert_eq!(signing.for_origin(origin).unwrap().name(), origin);
        assert_eq!(signing.verifying_key().for_origin(origin).unwrap().name(), origin);
    }
    for origin in [
        "ledger.example",
        "ledger.example/demo2",
        "",
        "other/ledger.example/demo",
        "ledger.example/demo/a b",
    ] {
        assert!(signing.for_origin(origin).is_err(), "{origin}");
        assert!(signing.verifying_key().for_origin(origin).is_err(), "{origin}");
    }
}

// The expected value is computed in Python: hmac.new(seed, b"proofgate/v1/frames\0context\x01", "sha256").
#[test]
fn a_derived_secret_is_the_first_block_of_hkdf_expand_and_tied_to_purpose_and_context() {
    let key = SigningKey::from_text(SKEY).unwrap();
    let hex = |bytes: [u8; 32]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let frames = key.derive("proofgate/v1/frames", b"context");
    assert_eq!(
        hex(frames),
        "4357bda1f112e368810fb4143599a62422e981a7bacdf75c19cb635d876d16cb"
    );
    assert_ne!(key.derive("proofgate/v1/resume", b"context"), frames);
    assert_ne!(key.derive("proofgate/v1/frames", b"other"), frames);
    let below = key.for_origin("PeterNeumann/0/origin").unwrap();
    assert_eq!(below.derive("proofgate/v1/frames", b"context"), frames);
}

#[test]
fn what_others_added_to_a_note_is_left_out() {
    let stranger = "\u{2014} somebody AAAAAAAAAAAA\n";
    let crowded = format!("{TEXT}\n{stranger}{SIGNATURE}{SIGNATURE}{stranger}");
    assert_eq!(strip_other_signatures(&crowded, &key()), Ok(note()));
    assert_eq!(strip_other_signatures(&note(), &key()), Ok(note()));
    assert!(strip_other_signatures(&format!("{TEXT}\n{stranger}"), &key()).is_err());
}
