//! Properties that hold for every input.

mod support;

use proofgate_wire::{Limits, encode};
use proptest::prelude::*;
use std::sync::LazyLock;
use support::{Case, Verdict, cases, receive};

static CASES: LazyLock<Vec<Case>> =
    LazyLock::new(|| cases().into_iter().filter(|case| case.raw.len() < 2048).collect());

/// Bytes that parsers often interpret differently.
const SHARP: &[u8] = b"\r\n\t\0\x0b\x7f\xff :;,_-+0159afxAF/#@*%[]()\"";

fn any_case() -> impl Strategy<Value = Vec<u8>> {
    (0..CASES.len()).prop_map(|index| CASES[index].raw.clone())
}

/// Generates a case with a few bytes replaced, inserted or removed.
fn mutated_case() -> impl Strategy<Value = Vec<u8>> {
    let edit = (any::<prop::sample::Index>(), 0..3_u8, prop::sample::select(SHARP));
    (any_case(), prop::collection::vec(edit, 0..4)).prop_map(|(mut raw, edits)| {
        for (place, kind, byte) in edits {
            let at = place.index(raw.len());
            match kind {
                0 => raw[at] = byte,
                1 => raw.insert(at, byte),
                _ => drop(raw.remove(at)),
            }
        }
        raw
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_verdict_does_not_depend_on_the_splits(
        raw in mutated_case(),
        splits in prop::collection::vec(0..2048_usize, 0..8),
    ) {
        let limits = Limits::default();
        prop_assert_eq!(receive(&raw, &splits, &limits), receive(&raw, &[], &limits));
    }

    #[test]
    fn the_verdict_does_not_depend_on_the_splits_near_a_limit(
        raw in mutated_case(),
        splits in prop::collection::vec(0..512_usize, 0..8),
        head_bytes in 16..512_usize,
        headers in 1..8_usize,
        body_bytes in 0..64_u64,
    ) {
        let limits = Limits { head_bytes, target_bytes: 24, headers, body_bytes };
        prop_assert_eq!(receive(&raw, &splits, &limits), receive(&raw, &[], &limits));
    }

    #[test]
    fn arbitrary_bytes_never_panic(raw in prop::collection::vec(any::<u8>(), 0..512), split in 0..512_usize) {
        receive(&raw, &[split], &Limits::default());
    }

    #[test]
    fn an_encoded_chunked_body_decodes_to_itself(
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8),
        splits in prop::collection::vec(0..1024_usize, 0..8),
    ) {
        let mut raw = b"POST / HTTP/1.1\r\nHost: gw\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
        for chunk in &chunks {
            encode::write_chunk(&mut raw, chunk);
        }
        raw.extend_from_slice(encode::LAST_CHUNK);
        let expected = Verdict::Accepted {
            target: "/".to_owned(),
            body: chunks.concat(),
            keep_alive: true,
            rest: 0,
        };
        prop_assert_eq!(receive(&raw, &splits, &Limits::default()), expected);
    }

    #[test]
    fn nothing_but_plain_decimal_is_a_length(text in "[0-9+xa-f _.,-]{0,22}") {
        let raw = format!("POST / HTTP/1.1\r\nHost: gw\r\nContent-Length: {text}\r\n\r\n");
        let trimmed = text.trim();
        let plain = trimmed == "0" || (!trimmed.starts_with('0') && !trimmed.is_empty());
        let plain = plain && trimmed.bytes().all(|byte| byte.is_ascii_digit()) && trimmed.parse::<u64>().is_ok();
        let refused = matches!(
            receive(raw.as_bytes(), &[], &Limits::default()),
            Verdict::Refused(refusal) if refusal.code() == "invalid_content_length"
        );
        prop_assert_eq!(refused, !plain);
    }
}
