use crate::{Checkpoint, KeySuccession, LedgerError, SigningKey, VerifyingKey};

const LEDGER: &str = "a/b";

fn key(seed: u8) -> SigningKey {
    SigningKey::generate(LEDGER, [seed; 32]).unwrap()
}

fn public(seed: u8) -> VerifyingKey {
    key(seed).verifying_key()
}

fn step(old: u8, new: u8) -> KeySuccession {
    step_until(old, new, 1_000_000)
}

fn step_until(old: u8, new: u8, until: u64) -> KeySuccession {
    KeySuccession::verify(&KeySuccession::sign(&key(old), &key(new), 0, until).unwrap()).unwrap()
}

fn line(of: u8, steps: &[KeySuccession]) -> Result<Vec<VerifyingKey>, LedgerError> {
    let key = public(of).with_successions(steps)?;
    Ok(key.lineage().into_iter().map(|member| member.key).collect())
}

fn checkpoint(by: u8, incarnation: &str) -> String {
    let origin = format!("{LEDGER}/0/{incarnation}");
    let checkpoint = Checkpoint {
        origin,
        size: 1,
        root: [7; 32],
    };
    checkpoint.sign(&key(by)).unwrap()
}

/// ULIDs of the first and the third second of the unix epoch.
const EARLY: &str = "00000000000000000000000000";
const LATE: &str = "00000002XR0000000000000000";

#[test]
fn whoever_knows_one_key_knows_all_of_its_line() {
    let steps = [step(2, 3), step(1, 2)];
    let all = [public(1), public(2), public(3)];
    for known in 1..=3 {
        assert_eq!(line(known, &steps).unwrap(), all, "{known}");
        let key = public(known).with_successions(&steps).unwrap();
        assert_eq!(key.newest_key(), public(3));
        for by in 1..=3 {
            let note = checkpoint(by, EARLY);
            let (_, signer) = Checkpoint::verify_signer(&note, &key).unwrap();
            assert_eq!(key.position_of(&signer), Some(usize::from(by) - 1));
        }
    }
}

#[test]
fn statements_that_lead_nowhere_change_nothing() {
    let planted = step(8, 9);
    assert_eq!(line(1, &[planted]).unwrap(), [public(1)]);
    let elsewhere = |seed| SigningKey::generate("a/c", [seed; 32]).unwrap();
    let other = KeySuccession::sign(&elsewhere(1), &elsewhere(2), 0, 9).unwrap();
    let other = KeySuccession::verify(&other).unwrap();
    assert_eq!(line(1, &[other]).unwrap(), [public(1)]);
}

#[test]
fn a_fork_is_refused_from_wherever_it_is_looked_at() {
    let forks = [step(1, 2), step(1, 3)];
    let joins = [step(1, 3), step(2, 3)];
    for known in 1..=3 {
        assert!(
            matches!(line(known, &forks), Err(LedgerError::ConflictingSuccessions(_))),
            "{known}"
        );
        assert!(
            matches!(line(known, &joins), Err(LedgerError::ConflictingSuccessions(_))),
            "{known}"
        );
    }
}

#[test]
fn a_loop_is_refused() {
    let steps = [step(1, 2), step(2, 3), step(3, 1)];
    for known in 1..=3 {
        assert!(
            matches!(line(known, &steps), Err(LedgerError::ConflictingSuccessions(_))),
            "{known}"
        );
    }
    assert!(line(1, &[step(1, 2), step(2, 1)]).is_err());
}

#[test]
fn a_line_is_not_followed_for_ever() {
    let steps: Vec<_> = (1..100).map(|seed| step(seed, seed + 1)).collect();
    assert!(line(1, &steps[..super::MAX_KEYS - 1]).is_ok());
    assert!(matches!(
        line(1, &steps),
        Err(LedgerError::ConflictingSuccessions(_))
    ));
}

#[test]
fn a_key_that_has_ended_signs_for_no_log_that_began_later() {
    let key = public(2)
        .with_successions(&[step_until(1, 2, 1_500_000)])
        .unwrap();
    assert!(Checkpoint::verify(&checkpoint(1, EARLY), &key).is_ok());
    let late = Checkpoint::verify(&checkpoint(1, LATE), &key);
    assert!(matches!(late, Err(LedgerError::KeySuperseded(_))), "{late:?}");
    assert!(Checkpoint::verify(&checkpoint(2, LATE), &key).is_ok());
}

#[test]
fn of_two_statements_about_the_same_keys_the_earlier_end_counts() {
    let steps = [step_until(1, 2, 9_000_000), step_until(1, 2, 1_500_000)];
    let key = public(2).with_successions(&steps).unwrap();
    assert!(Checkpoint::verify(&checkpoint(1, LATE), &key).is_err());
    let told_later = public(2).with_successions(&steps[..1]).unwrap();
    assert!(Checkpoint::verify(&checkpoint(1, LATE), &told_later).is_ok());
    let told_later = told_later.with_successions(&steps[1..]).unwrap();
    assert!(Checkpoint::verify(&checkpoint(1, LATE), &told_later).is_err());
}

#[test]
fn a_key_file_holds_a_key_and_the_statements_behind_it() {
    let note = KeySuccession::sign(&key(1), &key(2), 0, 9).unwrap();
    let text = format!("{}\n\n{note}", public(1).to_text());
    let read = VerifyingKey::from_file_text(&text).unwrap();
    assert_eq!(read.newest_key(), public(2));
    assert_eq!(
        VerifyingKey::from_file_text(&public(1).to_text()).unwrap(),
        public(1)
    );
    assert!(VerifyingKey::from_file_text(&text.replace("until 9", "until 8")).is_err());
    let signing = SigningKey::from_file_text(&format!("{}\n{note}", key(2).to_text())).unwrap();
    assert_eq!(signing.verifying_key().lineage().len(), 2);
    assert_eq!(signing.verifying_key().to_text(), public(2).to_text());
    let both = format!("{}\n{}\n\n{note}", key(2).to_text(), key(1).to_text());
    let (signing, former) = SigningKey::from_rotation_text(&both).unwrap();
    assert_eq!(signing.verifying_key().newest_key(), public(2));
    assert_eq!(former.unwrap().verifying_key(), public(1));
    let unrelated = format!("{}\n{}\n\n{note}", key(2).to_text(), key(3).to_text());
    assert!(SigningKey::from_rotation_text(&unrelated).is_err());
    assert!(SigningKey::from_rotation_text(&format!("{}\n{}", key(2).to_text(), key(1).to_text())).is_err());
}

#[test]
fn keys_are_apart_only_if_their_lines_are() {
    let retention = SigningKey::generate("retention", [2; 32])
        .unwrap()
        .verifying_key();
    assert!(public(1).is_independent_of(&retention));
    let followed = public(1).with_successions(&[step(1, 2)]).unwrap();
    assert!(!followed.is_independent_of(&retention));
    assert!(!retention.is_independent_of(&followed));
}
