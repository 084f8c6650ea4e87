//! The memory for reading a response is limited by its length, whatever a provider sends.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_analysis::{AnalysisSettings, CapturedResponse, ResponseDialect};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed to the system allocator unchanged.
#[expect(unsafe_code, reason = "this global allocator counts allocations")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.get().wrapping_add(layout.size());
        HELD.set(held);
        MOST.set(MOST.get().max(held));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.set(HELD.get().wrapping_sub(layout.size()));
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes of a response.
const LENGTH: usize = 512 << 10;

/// Returns the maximum bytes allocated while a response is read; a growing buffer counts together with its predecessor.
fn held(dialect: ResponseDialect, events: bool, body: &[u8]) -> usize {
    HELD.set(0);
    MOST.set(0);
    let answer = CapturedResponse {
        dialect,
        is_event_stream: events,
        body,
        is_truncated: false,
    };
    let _ = answer.measure(&AnalysisSettings::default());
    MOST.get()
}

/// Returns a text filled with `part`, repeated as often as it fits.
fn filled(before: &str, part: &str, after: &str) -> String {
    let parts = vec![part; LENGTH / (part.len() + 1)];
    format!("{before}{}{after}", parts.join(","))
}

#[test]
fn reading_an_answer_takes_four_times_its_bytes_and_a_mebibyte_at_most() {
    let nested = |open: &str, close: &str| format!("{}0{}", open.repeat(120), close.repeat(120));
    let deep = format!("{}{}", "[".repeat(LENGTH / 2), "]".repeat(LENGTH / 2));
    let names: Vec<String> = (0..LENGTH / 12)
        .map(|number| format!("\"{number}\":-9"))
        .collect();
    let names = names.join(",");
    let chat = |content: &str| {
        let before = r#"{"choices":[{"message":{"content":""#;
        format!("{before}{content}\"}}}}]}}")
    };
    let told = r#"{"choices":[{"logprobs":{"content":[{"token":"a","logprob":-9,"top_logprobs":["#;
    let bodies = [
        filled(r#"{"choices":[],"x":["#, &nested(r#"{"":"#, "}"), "]}"),
        filled(r#"{"choices":[],"x":["#, &nested("[", "]"), "]}"),
        filled(r#"{"choices":["#, "0", "]}"),
        filled(r#"{"output":["#, r#"{"content":[]}"#, "]}"),
        filled(r#"{"content":["#, r#"{"text":"a b "}"#, "]}"),
        filled(r#"[{"candidates":["#, "{}", "]}]"),
        format!(r#"{{"choices":[],"x":{deep}}}"#),
        format!(r#"{{"choices":[{{"logprobs":{{"tokens":["a"],"top_logprobs":[{{{names}}}]}}}}]}}"#),
        chat(&"\\n".repeat(LENGTH / 2)),
        chat(&format!("\\n{}", "a ".repeat(LENGTH / 2))),
        filled(told, r#"{"token":"","logprob":-9}"#, "]}]}}]}"),
        filled(told, r#"{"bytes":[],"logprob":-9}"#, "]}]}}]}"),
        filled(
            r#"{"choices":[{"logprobs":{"content":["#,
            r#"{"token":"","logprob":0}"#,
            "]}}]}",
        ),
        filled(
            r#"{"choices":[{"logprobs":{"content":[{"bytes":["#,
            "0",
            r#"],"logprob":0}]}}]}"#,
        ),
    ];
    let dialects = [
        ResponseDialect::Chat,
        ResponseDialect::Completions,
        ResponseDialect::Responses,
        ResponseDialect::Messages,
        ResponseDialect::Gemini,
    ];
    for body in &bodies {
        assert!(serde_json::from_str::<&serde_json::value::RawValue>(body).is_ok());
        let event = format!("data: {body}\n\n");
        for dialect in dialects {
            for (events, body) in [(false, body), (true, &event)] {
                let most = held(dialect, events, body.as_bytes());
                let beginning = &body[..80];
                assert!(
                    most <= 4 * body.len() + (1 << 20),
                    "{most} bytes for {} of {dialect:?}: {beginning}",
                    body.len()
                );
            }
        }
    }
    // A text of the maximum length, with as many words as possible.
    let text = chat(&"a b ".repeat(64 << 10));
    assert!(held(ResponseDialect::Chat, false, text.as_bytes()) <= 1 << 20);
}
