//! Properties of every translation, for any input.

use proptest::prelude::*;

/// Generates one of the inputs with a few faults.
pub fn with_faults(inputs: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let bytes = prop::sample::select(&b"{}[]\":,\\0e.-ntu \xff"[..]);
    let faults = proptest::collection::vec((any::<prop::sample::Index>(), 0usize..6, bytes), 1..4);
    (prop::sample::select(inputs), faults).prop_map(|(mut input, faults)| {
        for (at, removed, byte) in faults {
            let at = at.index(input.len());
            let end = (at + removed).min(input.len());
            input.splice(at..end, [byte]);
        }
        input
    })
}

/// Checks that a translation writes JSON if it accepts the input.
pub fn is_json_if(taken: bool, out: &mut Vec<u8>) {
    if taken {
        serde_json::from_slice::<serde::de::IgnoredAny>(out).expect("what is written is JSON");
    }
    out.clear();
}

/// Passes each line as the data of an event; it writes chunks or, if it is not `taken`, nothing.
pub fn is_a_stream(input: &[u8], mut taken: impl FnMut(&[u8], &mut Vec<u8>) -> bool) {
    let mut out = Vec::new();
    for event in input.split(|&byte| byte == b'\n') {
        let data = event.strip_prefix(b"data: ").unwrap_or(event);
        let before = out.len();
        if !taken(data, &mut out) {
            assert_eq!(out.len(), before, "an event that is an error writes nothing");
        }
    }
    let out = std::str::from_utf8(&out).expect("chunks are UTF-8");
    for data in out.lines().filter_map(|line| line.strip_prefix("data: ")) {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok();
        assert!(data == "[DONE]" || is_json, "{data}");
    }
}
