use proofgate_chat_clients::openai_anthropic::{
    Stream, translate_error, translate_request, translate_response,
};
use proofgate_dialect::UntranslatableFieldPolicy;
use proptest::prelude::*;

#[path = "../shared/any_input.rs"]
mod shared;
use shared::{is_a_stream, is_json_if, with_faults};

use super::{CREATED, asked, golden, target};

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
    is_json_if(
        translate_request(input, &target(drop), &mut out).is_ok(),
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
    for field in ["messages", "metadata", "unknown", "tool_choice", "stop"] {
        let messages = if field == "messages" {
            ""
        } else {
            r#""messages":[{"role":"user","content":"a"}],"#
        };
        let body = format!(r#"{{"model":"m",{messages}"{field}":{deep}}}"#);
        feed(body.as_bytes(), UntranslatableFieldPolicy::Drop);
    }
    let message = format!(
        r#"{{"content":[{{"type":"tool_use","id":"a","name":"f","input":{deep}}}],"stop_reason":"x","usage":{{}},"unknown":{deep}}}"#
    );
    feed(message.as_bytes(), UntranslatableFieldPolicy::Drop);
}

proptest! {
    #[test]
    fn any_bytes_are_taken_or_refused(input in proptest::collection::vec(any::<u8>(), 0..300)) {
        feed(&input, UntranslatableFieldPolicy::Drop);
    }

    #[test]
    fn any_golden_with_faults_is_taken_or_refused(
        input in with_faults(goldens()),
        drops in any::<bool>(),
    ) {
        let drop = if drops { UntranslatableFieldPolicy::Drop } else { UntranslatableFieldPolicy::Refuse };
        feed(&input, drop);
    }
}
