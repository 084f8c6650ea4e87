//! For any input: nothing panics, the output is complete, and the split of an answer into pieces makes no difference.

use proptest::prelude::*;

use super::*;

fn is_json(bytes: &[u8]) {
    serde_json::from_slice::<serde::de::IgnoredAny>(bytes).unwrap();
}

fn survives(bytes: &[u8]) {
    for write in [translate_request, translate_for_chat] {
        let mut out = Vec::new();
        if write(bytes, &target(UntranslatableFieldPolicy::Drop), &mut out).is_ok() {
            is_json(&out);
        }
    }
    let tools = json!([{"type": "custom", "name": "f"}, {"type": "shell"}, {"type": "apply_patch"}, {"type": "local_shell"},
        {"type": "tool_search", "execution": "client"}]);
    let asked = asked_with(tools);
    let mut out = Vec::new();
    if translate_response(bytes, &asked, CREATED, &mut out).is_ok() {
        is_json(&out);
    }
    out.clear();
    translate_error(500, bytes, &mut out);
    is_json(&out);
    let data: Vec<String> = bytes
        .split(|byte| *byte == b'\n')
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    receive(&data, &asked).events();
}

/// Text with characters that JSON escapes.
fn words() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop::sample::select(&["a", "\"", "\\", "\n", "é", "😀", "}", "{"][..]),
        1..20,
    )
    .prop_map(|words| words.concat())
}

/// Splits the same text into other pieces.
fn pieces(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(chars.len() + 1)).collect();
    ends.extend([0, chars.len()]);
    ends.sort_unstable();
    ends.dedup();
    ends.windows(2)
        .map(|range| chars[range[0]..range[1]].iter().collect())
        .collect()
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        survives(&bytes);
    }

    #[test]
    fn changed_goldens_are_survived(
        at in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), prop::sample::select(&b"{}[]\",:\\0-untx"[..]), any::<bool>()), 1..6),
    ) {
        let inputs = golden::inputs();
        let mut bytes = inputs[at.index(inputs.len())].clone().into_bytes();
        for (at, byte, replaces) in edits {
            let at = at.index(bytes.len());
            if replaces { bytes[at] = byte } else { bytes.insert(at, byte) }
        }
        survives(&bytes);
    }

    #[test]
    fn pieces_make_no_difference(
        thinking in words(), text in words(), input in words(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let asked = asked_with(json!([{"type": "custom", "name": "patch"}]));
        let arguments = json!({"input": input}).to_string();
        let message = json!({"reasoning_content": thinking, "content": text, "tool_calls": [
            {"id": "c1", "function": {"name": "patch", "arguments": arguments}},
            {"id": "c2", "function": {"name": "f", "arguments": arguments}}]});
        let mut deltas: Vec<Value> = Vec::new();
        deltas.extend(pieces(&thinking, &cuts).iter().map(|piece| json!({"reasoning_content": piece})));
        deltas.extend(pieces(&text, &cuts).iter().map(|piece| json!({"content": piece})));
        for (index, (id, name)) in [("c1", "patch"), ("c2", "f")].iter().enumerate() {
            deltas.push(json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name}}]}));
            deltas.extend(pieces(&arguments, &cuts).iter().map(|piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})));
        }
        let received = receive(&chunks(&deltas, "tool_calls"), &asked);
        prop_assert_eq!(Value::Array(received.output()), whole(message, "tool_calls", &asked).unwrap()["output"].clone());
    }
}

#[test]
fn nesting_without_end_is_survived() {
    survives("[".repeat(100_000).as_bytes());
    let deep = r#"{"type":"namespace","name":"a","tools":["#.repeat(10_000);
    survives(
        format!(
            r#"{{"model":"m","input":"x","tools":[{deep}{}]}}"#,
            "]}".repeat(10_000)
        )
        .as_bytes(),
    );
}
