//! How long a Responses request of 1 KB, a chat answer and a chunk of a streamed one take to translate: medians of repeated runs.
use std::hint::black_box;
use std::time::Instant;

use proofgate_translate::responses_openai::{Stream, answer, request};
use proofgate_translate::{Target, UntranslatableFields};

const RUNS: usize = 201;
const IN_A_RUN: usize = 500;

fn main() {
    let target = Target {
        model: "m",
        max_output_tokens: 4096,
        untranslatable: UntranslatableFields::Refuse,
    };
    let question = "Tell me what the weather is like, \\\"please\\\".\\n".repeat(8);
    let body = format!(
        r#"{{"model":"gpt","stream":true,"instructions":"Be brief.","store":false,"input":[{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{question}"}}]}},{{"type":"function_call","id":"fc_1","call_id":"call_1","name":"weather","arguments":"{{\"city\":\"Paris\"}}"}},{{"type":"function_call_output","call_id":"call_1","output":"22 degrees"}}],"tools":[{{"type":"function","name":"weather","strict":false,"description":"The weather in a city","parameters":{{"type":"object","properties":{{"city":{{"type":"string"}}}},"required":["city"]}}}},{{"type":"custom","name":"note"}}]}}"#
    );
    let mut out = Vec::with_capacity(8192);
    let nanoseconds = median(|| {
        out.clear();
        let asked = request(black_box(body.as_bytes()), &target, &mut out);
        assert!(asked.is_ok());
    });
    println!("request of {} bytes: {nanoseconds} ns", body.len());

    out.clear();
    let Ok(asked) = request(body.as_bytes(), &target, &mut out) else {
        return;
    };
    let whole = br#"{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello there, this is an answer of a usual kind.","refusal":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":25,"total_tokens":35}}"#;
    let nanoseconds = median(|| {
        out.clear();
        assert!(answer(black_box(whole), &asked, 1, &mut out).is_ok());
    });
    println!("answer of {} bytes: {nanoseconds} ns", whole.len());

    // What is kept of a stream is bounded: each run has its own.
    for (name, chunk) in [
        (
            "text",
            &br#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" there, and so on"},"finish_reason":null}]}"#[..],
        ),
        (
            "arguments",
            br#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"weather","arguments":"{\"a\": "}}]},"finish_reason":null}]}"#,
        ),
    ] {
        let mut stream = Stream::new(&asked, 1);
        let mut calls = 0;
        let nanoseconds = median(|| {
            out.clear();
            calls += 1;
            if calls % 10_000 == 0 {
                stream = Stream::new(&asked, 1);
            }
            assert!(stream.event("", black_box(chunk), &mut out).is_ok());
        });
        println!("chunk of {name}: {nanoseconds} ns");
    }
}

/// The median time of one call, in nanoseconds.
fn median(mut call: impl FnMut()) -> u128 {
    let mut times: Vec<u128> = (0..RUNS)
        .map(|_| {
            let begin = Instant::now();
            (0..IN_A_RUN).for_each(|_| call());
            begin.elapsed().as_nanos() / IN_A_RUN as u128
        })
        .collect();
    times.sort_unstable();
    times[RUNS / 2]
}
