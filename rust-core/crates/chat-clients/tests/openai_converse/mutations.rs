//! No input causes a panic, and all output is JSON.

use std::fs;

use proofgate_chat_clients::openai_converse::{
    EventKind, Stream, translate_error, translate_request, translate_response,
};
use proofgate_dialect::UntranslatableFieldPolicy;
use proptest::prelude::*;

use crate::{CREATED, asked, cases, target};

/// Returns golden files, as the provider or the client would send them, for mutations.
fn inputs() -> Vec<Vec<u8>> {
    let files = cases().into_iter().flat_map(|case| fs::read_dir(case).unwrap());
    files
        .map(|file| fs::read(file.unwrap().path()).unwrap())
        .collect()
}

fn feed(bytes: &[u8]) {
    let mut out = Vec::new();
    for drop in [UntranslatableFieldPolicy::Refuse, UntranslatableFieldPolicy::Drop] {
        if translate_request(bytes, &target(drop), &mut out).is_ok() {
            assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&out).is_ok());
        }
        out.clear();
    }
    if translate_response(bytes, &asked(), u64::MAX, &mut out).is_ok() {
        assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&out).is_ok());
    }
    out.clear();
    translate_error(429, std::str::from_utf8(bytes).ok(), bytes, &mut out);
    assert!(serde_json::from_slice::<serde::de::IgnoredAny>(&out).is_ok());
    let mut stream = Stream::new(&asked(), CREATED);
    for line in bytes.split(|byte| *byte == b'\n') {
        let mut parts = line.splitn(3, |byte| *byte == b' ');
        let kind = if parts.next() == Some(b"event") {
            EventKind::Event
        } else {
            EventKind::Exception
        };
        let name = String::from_utf8_lossy(parts.next().unwrap_or_default());
        let mut out = Vec::new();
        if stream
            .push_event(kind, &name, parts.next().unwrap_or_default(), &mut out)
            .is_err()
        {
            break;
        }
        for event in out
            .split(|byte| *byte == b'\n')
            .filter_map(|line| line.strip_prefix(b"data: "))
        {
            let is_json = serde_json::from_slice::<serde::de::IgnoredAny>(event).is_ok();
            assert!(event == b"[DONE]" || is_json);
        }
    }
    let _ = stream.finish(&mut out);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        feed(&bytes);
    }

    #[test]
    fn no_mutation_makes_it_panic_or_write_what_is_no_json(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4usize, prop::sample::select(br#"{}[]",:\ 0e-ntu"#.to_vec())), 1..6),
    ) {
        let inputs = inputs();
        let mut bytes = inputs[which.index(inputs.len())].clone();
        for (at, removed, byte) in changes {
            let at = at.index(bytes.len());
            bytes.splice(at..(at + removed).min(bytes.len()), [byte]);
            if bytes.is_empty() {
                break;
            }
        }
        feed(&bytes);
    }
}
