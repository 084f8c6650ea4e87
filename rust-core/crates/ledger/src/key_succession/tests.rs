use super::KeySuccession;
use crate::SigningKey;
use proptest::prelude::*;

fn key(name: &str, seed: u8) -> SigningKey {
    SigningKey::generate(name, [seed; 32]).unwrap()
}

fn note() -> String {
    KeySuccession::sign(&key("a/b", 1), &key("a/b", 2), 5, 9).unwrap()
}

#[test]
fn what_both_keys_signed_is_read_back() {
    let read = KeySuccession::verify(&note()).unwrap();
    assert_eq!(read.old_key, key("a/b", 1).verifying_key());
    assert_eq!(read.new_key, key("a/b", 2).verifying_key());
    assert_eq!((read.signed_at, read.valid_until), (5, 9));
}

#[test]
fn one_signature_is_not_enough_and_another_key_is_not_one_of_them() {
    let note = note();
    let lines: Vec<&str> = note.split_inclusive('\n').collect();
    for missing in [6, 7] {
        let mut fewer = lines.clone();
        fewer.remove(missing);
        assert!(KeySuccession::verify(&fewer.concat()).is_err(), "{missing}");
    }
    let by_others = KeySuccession::sign(&key("a/b", 3), &key("a/b", 4), 5, 9).unwrap();
    let signatures = by_others.split_inclusive('\n').skip(6);
    let swapped: String = lines[..6].iter().copied().chain(signatures).collect();
    assert!(KeySuccession::verify(&swapped).is_err());
}

#[test]
fn keys_of_two_names_one_key_and_an_end_before_the_beginning_are_refused() {
    assert!(KeySuccession::sign(&key("a/b", 1), &key("a/c", 2), 5, 9).is_err());
    assert!(KeySuccession::sign(&key("a/b", 1), &key("a/b", 1), 5, 9).is_err());
    assert!(KeySuccession::sign(&key("a/b", 1), &key("a/b", 2), 5, 4).is_err());
}

#[test]
fn notes_behind_each_other_are_taken_apart() {
    let one = note();
    let two = KeySuccession::sign(&key("a/b", 2), &key("a/b", 3), 10, 11).unwrap();
    for text in [
        format!("{one}{two}"),
        format!("\n{one}\n\n{two}\n"),
        format!("{one}{}", two.trim()),
    ] {
        assert_eq!(KeySuccession::split_notes(&text), [one.clone(), two.clone()]);
    }
    assert!(KeySuccession::split_notes("\n").is_empty());
}

proptest! {
    #[test]
    fn every_byte_decides(at in 0usize..600, byte in any::<u8>()) {
        let note = note();
        let mut bytes = note.clone().into_bytes();
        let at = at % bytes.len();
        bytes[at] = byte;
        if let Ok(text) = String::from_utf8(bytes) {
            prop_assert_eq!(KeySuccession::verify(&text).is_ok(), text == note);
        }
    }

    #[test]
    fn bytes_from_outside_are_read_or_refused(text in "\\PC{0,200}", cut in 0usize..600) {
        let _ = KeySuccession::verify(&text);
        let _ = crate::VerifyingKey::from_file_text(&text);
        let note = note();
        let behind = format!("{note}{text}");
        prop_assert!(!KeySuccession::split_notes(&behind).is_empty());
        let cut = (0..=cut.min(note.len())).rev().find(|at| note.is_char_boundary(*at)).unwrap();
        prop_assert!(cut == note.len() || KeySuccession::verify(&note[..cut]).is_err());
    }
}
