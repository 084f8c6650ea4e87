//! Tests of every case in `e2e/framing/cases.json`. The end-to-end suites also send these cases
//! over sockets.

mod support;

use proofgate_wire::Limits;
use support::{Case, Expect, Verdict, cases, receive};

fn wrong(case: &Case, verdict: &Verdict) -> Option<String> {
    let right = match (&case.expect, verdict) {
        (
            Expect::Accept,
            Verdict::Accepted {
                target,
                body,
                keep_alive,
                rest,
            },
        ) => *target == case.target && *body == case.body && *keep_alive != case.closes && *rest == 0,
        (Expect::Status(status), Verdict::Refused(refusal)) => u64::from(refusal.status()) == *status,
        (Expect::Drop, Verdict::CutShort) => true,
        _ => false,
    };
    (!right).then(|| {
        format!(
            "{} ({}): expected {:?}, got {verdict:?}",
            case.id, case.row, case.expect
        )
    })
}

#[test]
fn every_case_gets_the_verdict_of_the_specification() {
    let limits = Limits::default();
    let cases = cases();
    assert!(cases.len() > 300, "the cases are there");
    let wrong: Vec<_> = cases
        .iter()
        .filter_map(|case| wrong(case, &receive(&case.raw, &[], &limits)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_case_gets_the_same_verdict_at_every_split() {
    let limits = Limits::default();
    for case in cases() {
        let whole = receive(&case.raw, &[], &limits);
        for split in (0..=case.raw.len()).step_by(1 + case.raw.len() / 512) {
            assert_eq!(
                receive(&case.raw, &[split], &limits),
                whole,
                "{} split at {split}",
                case.id
            );
        }
        let single_bytes: Vec<_> = (0..case.raw.len()).collect();
        assert_eq!(
            receive(&case.raw, &single_bytes, &limits),
            whole,
            "{} byte by byte",
            case.id
        );
    }
}

#[test]
fn no_byte_after_an_accepted_request_is_touched() {
    let limits = Limits::default();
    for case in cases().into_iter().filter(|case| case.expect == Expect::Accept) {
        let mut raw = case.raw.clone();
        raw.extend_from_slice(b"GET /next HTTP/1.1\r\n");
        match receive(&raw, &[], &limits) {
            Verdict::Accepted { body, rest, .. } => assert_eq!((body, rest), (case.body, 20), "{}", case.id),
            other => panic!("{}: {other:?}", case.id),
        }
    }
}

#[test]
fn no_byte_after_a_refused_request_changes_its_refusal() {
    let limits = Limits::default();
    let refused = |case: &Case| matches!(case.expect, Expect::Status(_));
    for case in cases().into_iter().filter(refused) {
        let mut raw = case.raw.clone();
        raw.extend_from_slice(b"GET /next HTTP/1.1\r\nHost: gw\r\n\r\n");
        assert_eq!(
            receive(&raw, &[], &limits),
            receive(&case.raw, &[], &limits),
            "{}",
            case.id
        );
    }
}

#[test]
fn every_case_that_the_readme_names_is_there() {
    let ids: Vec<_> = cases().into_iter().map(|case| case.id).collect();
    let readme = include_str!("../README.md");
    let rows: Vec<_> = readme.lines().filter(|line| line.starts_with("| ")).collect();
    let named = |row: &&str| row.rsplit('|').nth(1).is_some_and(|cell| cell.contains('`'));
    assert!(
        rows.iter().copied().filter(|row| named(row)).count() > 40,
        "the table is there"
    );
    for row in rows.into_iter().filter(named) {
        let cell = row.rsplit('|').nth(1).unwrap();
        for pattern in cell.split('`').skip(1).step_by(2) {
            let found = match pattern.strip_suffix('*') {
                Some(prefix) => ids.iter().any(|id| id.starts_with(prefix)),
                None => ids.iter().any(|id| id == pattern),
            };
            assert!(found, "{pattern}: {row}");
        }
    }
}

#[test]
fn the_ids_of_the_cases_are_unique() {
    let mut ids: Vec<_> = cases().into_iter().map(|case| case.id).collect();
    ids.sort();
    let count = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), count);
}
