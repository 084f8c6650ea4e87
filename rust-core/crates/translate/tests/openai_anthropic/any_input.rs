use proofgate_translate::UntranslatableFields;
use proofgate_translate::openai_anthropic::{Stream, answer, error, request};
use proptest::prelude::*;

use super::{CREATED, asked, events, golden, target};

fn goldens() -> Vec<Vec<u8>> {
    let of = |kind, file: &'static str| {
        golden::cases(kind)
            .into_iter()
            .map(move |case| golden::read(&case, file))
    };
    let bodies = of("request", "request.json").chain(of("answer", "answer.json"));
    bodies
        .chain(of("stream", "stream.sse"))
        .map(String::into_bytes)
        .collect()
}

fn feed(input: &[u8], drop: UntranslatableFields) {
    let mut out = Vec::new();
    if request(input, &target(drop), &mut out).is_ok() {
        serde_json::from_slice::<serde::de::IgnoredAny>(&out).expect("what is sent is JSON");
    }
    out.clear();
    if answer(input, &asked(), CREATED, &mut out).is_ok() {
        serde_json::from_slice::<serde::de::IgnoredAny>(&out).expect("what is received is JSON");
    }
    out.clear();
    error(500, input, &mut out);
    serde_json::from_slice::<serde::de::IgnoredAny>(&out).expect("an error is JSON");
    out.clear();
    let mut stream = Stream::new(&asked(), CREATED);
    for event in input.split(|&byte| byte == b'\n') {
        let data = event.strip_prefix(b"data: ").unwrap_or(event);
        let before = out.len();
        if stream.event("", data, &mut out).is_err() {
            assert_eq!(out.len(), before, "an event that is an error writes nothing");
        }
    }
    for (_, data) in events(std::str::from_utf8(&out).expect("chunks are UTF-8")) {
        assert!(
            data == "[DONE]" || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok(),
            "{data}"
        );
    }
    let _ = stream.finish(&mut out);
}

#[test]
fn depth_that_no_stack_has_is_taken_or_refused() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    for field in ["messages", "metadata", "unknown", "tool_choice", "stop"] {
        let messages = if field == "messages" {
            ""
        } else {
            r#""messages":[{"role":"user","content":"a"}],"#
        };
        let body = format!(r#"{{"model":"m",{messages}"{field}":{deep}}}"#);
        feed(body.as_bytes(), UntranslatableFields::Drop);
    }
    let message = format!(
        r#"{{"content":[{{"type":"tool_use","id":"a","name":"f","input":{deep}}}],"stop_reason":"x","usage":{{}},"unknown":{deep}}}"#
    );
    feed(message.as_bytes(), UntranslatableFields::Drop);
}

proptest! {
    #[test]
    fn any_bytes_are_taken_or_refused(input in proptest::collection::vec(any::<u8>(), 0..300)) {
        feed(&input, UntranslatableFields::Drop);
    }

    #[test]
    fn any_golden_with_faults_is_taken_or_refused(
        which in any::<prop::sample::Index>(),
        faults in proptest::collection::vec(
            (any::<prop::sample::Index>(), 0usize..6, prop::sample::select(&b"{}[]\":,\\0e.-ntu \xff"[..])),
            1..4,
        ),
        drops in any::<bool>(),
    ) {
        let mut input = which.get(&goldens()).clone();
        for (at, removed, byte) in faults {
            let at = at.index(input.len());
            let end = (at + removed).min(input.len());
            input.splice(at..end, [byte]);
        }
        let drop = if drops { UntranslatableFields::Drop } else { UntranslatableFields::Refuse };
        feed(&input, drop);
    }
}
