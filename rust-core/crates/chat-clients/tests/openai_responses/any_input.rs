use proofgate_chat_clients::openai_responses::{requires_responses_api, translate_error};
use proptest::prelude::*;

#[path = "../shared/any_input.rs"]
mod shared;
use shared::{is_a_stream, is_json_if, with_faults};

use super::*;

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

fn feed(input: &[u8], drop: UntranslatableFieldPolicy) {
    let mut out = Vec::new();
    let _ = requires_responses_api("gpt-5.6", input);
    is_json_if(
        translate_request(input, &target("gpt-5.6", drop), &mut out).is_ok(),
        &mut out,
    );
    is_json_if(
        translate_response(input, &asked(), CREATED, &mut out).is_ok(),
        &mut out,
    );
    translate_error(500, input, &mut out);
    is_json_if(true, &mut out);
    let mut stream = Stream::new(&asked(), CREATED);
    is_a_stream(input, |data, out| stream.push_event("", data, out).is_ok());
    let _ = stream.finish(&mut out);
}

#[test]
fn depth_that_no_stack_has_is_taken_or_refused() {
    let deep = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    for field in [
        "messages",
        "metadata",
        "unknown",
        "tool_choice",
        "output",
        "response",
    ] {
        let body = format!(r#"{{"model":"m","{field}":{deep}}}"#);
        feed(body.as_bytes(), DROP);
    }
}

/// A response whose strings have arbitrary characters.
fn any_response() -> impl Strategy<Value = Value> {
    let text = "\\PC{1,12}|[\"\\\\\\n\u{e4}\u{1f600}]{1,6}";
    let item = prop_oneof![
        text.prop_map(|text| message(&text)),
        (text, text).prop_map(|(summary, data)| reasoning("rs_1", &[&summary, &data], &data)),
        (text, text).prop_map(|(id, text)| call(&id, "f", &json!({"a": text}).to_string())),
        (text, text).prop_map(
            |(id, text)| json!({"type": "custom_tool_call", "call_id": id, "name": "g", "input": text})
        ),
    ];
    proptest::collection::vec(item, 1..6).prop_map(|output| response(json!(output), json!({})))
}

proptest! {
    #[test]
    fn any_bytes_are_taken_or_refused(input in proptest::collection::vec(any::<u8>(), 0..300)) {
        feed(&input, DROP);
    }

    #[test]
    fn any_golden_with_faults_is_taken_or_refused(
        input in with_faults(goldens()),
        drops in any::<bool>(),
    ) {
        feed(&input, if drops { DROP } else { REFUSE });
    }

    /// However a provider splits its output into deltas, the client receives the same.
    #[test]
    fn the_cuts_between_deltas_do_not_matter(body in any_response(), piece in 1usize..4) {
        let mut cut = Vec::new();
        for event in events_of(&body) {
            match event["delta"].as_str().map(|delta| delta.chars().collect::<Vec<_>>()) {
                None => cut.push(event),
                Some(chars) => cut.extend(chars.chunks(piece).map(|chars| {
                    let mut event = event.clone();
                    event["delta"] = json!(chars.iter().collect::<String>());
                    event
                })),
            }
        }
        let (one, other) = (streamed(&events_of(&body)), streamed(&cut));
        prop_assert_eq!(&one.last, &Ok(StreamStatus::Finished));
        prop_assert_eq!(&other.last, &Ok(StreamStatus::Finished));
        for field in ["content", "refusal", "reasoning_content"] {
            prop_assert_eq!(one.joined(field), other.joined(field));
        }
        let whole = received(&body).unwrap().0;
        let said = &whole["choices"][0]["message"];
        prop_assert_eq!(other.joined("content"), said["content"].as_str().unwrap_or_default());
        prop_assert_eq!(other.joined("reasoning_content"), said["reasoning_content"].as_str().unwrap_or_default());
    }
}
