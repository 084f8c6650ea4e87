//! How long a request of 1 KB, and a chunk of a streamed answer, take to translate for Anthropic: medians of repeated runs.
use std::hint::black_box;
use std::time::Instant;

use proofgate_translate::openai_anthropic::{Stream, answer, request};
use proofgate_translate::{Asked, Target, UntranslatableFields};

const RUNS: usize = 201;
const IN_A_RUN: usize = 500;

fn main() {
    let target = Target {
        model: "claude-opus-4-7",
        max_output_tokens: 4096,
        untranslatable: UntranslatableFields::Refuse,
    };
    let question = "Tell me what the weather is like, \\\"please\\\".\\n".repeat(8);
    let body = format!(
        r#"{{"model":"gpt","stream":true,"stream_options":{{"include_usage":true}},"temperature":0.7,"messages":[{{"role":"system","content":"Be brief."}},{{"role":"user","content":"{question}"}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_1","type":"function","function":{{"name":"weather","arguments":"{{\"city\":\"Paris\"}}"}}}}]}},{{"role":"tool","tool_call_id":"call_1","content":"22 degrees"}}],"tools":[{{"type":"function","function":{{"name":"weather","description":"The weather in a city","parameters":{{"type":"object","properties":{{"city":{{"type":"string"}}}},"required":["city"]}}}}}}]}}"#
    );
    let mut out = Vec::with_capacity(8192);
    let nanoseconds = median(|| {
        out.clear();
        let asked = request(black_box(body.as_bytes()), &target, &mut out);
        assert!(asked.is_ok());
    });
    println!("request of {} bytes: {nanoseconds} ns", body.len());

    let whole = br#"{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"Hello there, this is an answer of a usual kind."},{"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Paris"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":25}}"#;
    let asked = Asked {
        model: "gpt".to_owned(),
        stream: true,
        include_usage: true,
        ..Asked::default()
    };
    let nanoseconds = median(|| {
        out.clear();
        assert!(answer(black_box(whole), &asked, 1, &mut out).is_ok());
    });
    println!("answer of {} bytes: {nanoseconds} ns", whole.len());

    let begin = br#"{"type":"message_start","message":{"id":"msg_4QpJur2dWWDjF6C758FbBw5vm12BaVipnK","type":"message","role":"assistant","content":[],"model":"claude","stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":11,"output_tokens":1}}}"#;
    let text = br#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" there, and so on"}}"#;
    let input = br#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"celsius\", \"a\": "}}"#;
    let mut stream = Stream::new(&asked, 1);
    for event in [
        &begin[..],
        br#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        br#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}"#,
    ] {
        assert!(stream.event("", event, &mut out).is_ok());
    }
    for (name, event) in [("text", &text[..]), ("arguments", input)] {
        let nanoseconds = median(|| {
            out.clear();
            assert!(
                stream
                    .event("content_block_delta", black_box(event), &mut out)
                    .is_ok()
            );
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
