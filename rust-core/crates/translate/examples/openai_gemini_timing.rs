//! Prints how long a request of 1 KB, an event of a streamed answer and a whole answer take on one core: the median of
//! repeated runs, in nanoseconds.

use std::hint::black_box;
use std::time::Instant;

use proofgate_translate::openai_gemini::{Stream, answer, request};
use proofgate_translate::{Asked, Target, UntranslatableFields};

const RUNS: usize = 301;
const REPEATS: u32 = 200;

const REQUEST: &str = r#"{"model":"assistant","stream":true,"stream_options":{"include_usage":true},"temperature":0.7,
"max_completion_tokens":1024,"messages":[{"role":"system","content":"You are a helpful assistant for questions about the weather and the time in cities."},
{"role":"user","content":"What is the weather in Paris, and what in Rome?\nAnswer in one sentence."},
{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Paris\"}"}}]},
{"role":"tool","tool_call_id":"call_1","content":"Sunny, 21 degrees, light wind from the west."},
{"role":"user","content":[{"type":"text","text":"And in Rome?"}]}],
"tools":[{"type":"function","function":{"name":"get_weather","description":"Returns the weather in the given city.","parameters":{"type":"object","properties":{"city":{"type":"string","description":"The name of the city"},"unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["city"]}}}],"tool_choice":"auto"}"#;

const EVENT: &str = r#"{"candidates": [{"content": {"parts": [{"text": "9 + 181 + 191 + 193 + 197 + 199 + 211 + 223 + 227 + 229 = **"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 28,"candidatesTokenCount": 620,"totalTokenCount": 1822,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 28}],"thoughtsTokenCount": 1174},"modelVersion": "gemini-2.5-flash","responseId": "WEXbaMnpF7iPjMcP27mckQE"}"#;

/// The median time of one call, in nanoseconds.
fn median(mut call: impl FnMut()) -> u128 {
    let mut times: Vec<u128> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            (0..REPEATS).for_each(|_| call());
            start.elapsed().as_nanos() / u128::from(REPEATS)
        })
        .collect();
    times.sort_unstable();
    times[RUNS / 2]
}

fn main() {
    let target = Target {
        model: "gemini-3-pro",
        max_output_tokens: 4096,
        untranslatable: UntranslatableFields::Refuse,
    };
    let asked = Asked {
        model: "assistant".into(),
        include_usage: true,
        ..Asked::default()
    };
    let mut out = Vec::with_capacity(4096);
    let ns = median(|| {
        out.clear();
        let _ = black_box(request(black_box(REQUEST.as_bytes()), &target, &mut out));
    });
    println!(
        "request of {} bytes: {ns} ns, {} bytes sent",
        REQUEST.len(),
        out.len()
    );
    let mut stream = Stream::new(&asked, 1_700_000_000);
    let ns = median(|| {
        out.clear();
        let _ = black_box(stream.event("", black_box(EVENT.as_bytes()), &mut out));
    });
    println!(
        "event of {} bytes: {ns} ns, {} bytes received",
        EVENT.len(),
        out.len()
    );
    let whole = EVENT.replace(r#""index": 0"#, r#""index": 0,"finishReason": "STOP""#);
    let ns = median(|| {
        out.clear();
        let _ = black_box(answer(
            black_box(whole.as_bytes()),
            &asked,
            1_700_000_000,
            &mut out,
        ));
    });
    println!(
        "answer of {} bytes: {ns} ns, {} bytes received",
        whole.len(),
        out.len()
    );
}
