//! The usage reported by responses of each dialect.

use proofgate_providers::{Dialect, Usage, UsageReader};
use proptest::prelude::*;

fn usage(prompt_tokens: u64, completion_tokens: u64) -> Option<Usage> {
    Some(Usage {
        prompt_tokens,
        completion_tokens,
        ..Usage::default()
    })
}

fn totals(usage: Usage) -> (u64, u64) {
    (usage.prompt_tokens, usage.completion_tokens)
}

fn of_answer(dialect: Dialect, answer: &str) -> Option<Usage> {
    let mut reader = UsageReader::new(dialect);
    reader.push(answer.as_bytes());
    reader.usage()
}

fn of_stream(dialect: Dialect, events: &[&str]) -> Option<Usage> {
    let mut reader = UsageReader::new(dialect);
    for event in events {
        reader.push_event(format!("data: {event}\n\n").as_bytes());
    }
    reader.usage()
}

#[test]
fn what_a_provider_repeats_of_the_request_is_no_usage() {
    let answer = r#"{"id":"r","output":[],"usage":{"input_tokens":100,"output_tokens":50},"tools":[{"parameters":{"usage":{"input_tokens":0,"output_tokens":0}}}],"metadata":{"usage":"x"}}"#;
    assert_eq!(of_answer(Dialect::Responses, answer), usage(100, 50));
    let event = format!(r#"{{"type":"response.completed","response":{answer}}}"#);
    assert_eq!(of_stream(Dialect::Responses, &[&event]), usage(100, 50));
    let message = r#"{"type":"message","content":[{"type":"tool_use","input":{"usage":{"input_tokens":0,"output_tokens":0}}}],"usage":{"input_tokens":7,"cache_read_input_tokens":3,"output_tokens":2},"x":{"usage":{"output_tokens":0}}}"#;
    let of_message = of_answer(Dialect::Messages, message).map(totals);
    assert_eq!(of_message, Some((10, 2)));
}

#[test]
fn the_usage_of_a_message_is_cumulative_and_never_added_up() {
    let start = r#"{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":1,"output_tokens":1}}}"#;
    let delta = r#"{"type":"message_delta","usage":{"output_tokens":20}}"#;
    let later = r#"{"type":"message_delta","usage":{"input_tokens":11,"output_tokens":30}}"#;
    let begun = of_stream(Dialect::Messages, &[start]).unwrap();
    assert_eq!(totals(begun), (16, 1));
    assert!(begun.is_partial, "the output of the beginning is not all");
    assert!(!of_stream(Dialect::Messages, &[start, delta]).unwrap().is_partial);
    assert_eq!(
        of_stream(Dialect::Messages, &[r#"{"type":"ping","usage":{}}"#]),
        None
    );
    let of_events = |events: &[&str]| of_stream(Dialect::Messages, events).map(totals);
    assert_eq!(of_events(&[start, delta]), Some((16, 20)));
    assert_eq!(of_events(&[start, delta, later]), Some((17, 30)));
    // Some backends report everything at the end (envoyproxy/ai-gateway#2290).
    assert_eq!(of_stream(Dialect::Messages, &[later]), usage(11, 30));
}

#[test]
fn the_usage_of_generated_content_is_that_of_its_last_piece_with_thoughts_and_tools() {
    let first = r#"{"candidates":[],"usageMetadata":{"promptTokenCount":5,"totalTokenCount":5}}"#;
    let last = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"args":{"usageMetadata":{"promptTokenCount":0}}}}]}}],"usageMetadata":{"promptTokenCount":5,"toolUsePromptTokenCount":1,"candidatesTokenCount":2,"thoughtsTokenCount":3,"totalTokenCount":11},"modelVersion":"m"}"#;
    let of_pieces = of_stream(Dialect::Gemini, &[first, last]).map(totals);
    assert_eq!(of_pieces, Some((6, 5)));
    assert_eq!(of_answer(Dialect::Gemini, last).map(totals), Some((6, 5)));
    let is_partial = |events: &[&str]| of_stream(Dialect::Gemini, events).unwrap().is_partial;
    assert!(
        is_partial(&[first]),
        "nothing has been counted of an answer that goes on"
    );
    assert!(!is_partial(&[first, last]));
    for end in [
        r#""candidates":[{"finishReason":"SAFETY"}]"#,
        r#""promptFeedback":{"blockReason":"OTHER"}"#,
    ] {
        let end = format!(r#"{{{end},"usageMetadata":{{"promptTokenCount":5,"totalTokenCount":5}}}}"#);
        assert!(!is_partial(&[first, &end]), "{end}");
    }
}

#[test]
fn the_usage_of_an_incomplete_response_counts() {
    // BerriAI/litellm#34351.
    let event = r#"{"type":"response.incomplete","response":{"usage":{"input_tokens":1,"output_tokens":2}}}"#;
    assert_eq!(of_stream(Dialect::Responses, &[event]), usage(1, 2));
}

#[test]
fn reasoning_that_only_the_total_counts_is_charged() {
    // Wei-Shaw/sub2api#5771: xAI leaves reasoning out of completion_tokens.
    let answer = r#"{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":40}}"#;
    assert_eq!(of_answer(Dialect::Chat, answer), usage(10, 30));
    let odd = r#"{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":3}}"#;
    assert_eq!(of_answer(Dialect::Chat, odd), usage(10, 5));
}

#[test]
fn what_a_provider_counts_apart_is_part_of_the_totals() {
    let chat = r#"{"usage":{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":40,"cache_write_tokens":20,"audio_tokens":10,"image_tokens":3},"completion_tokens_details":{"reasoning_tokens":30,"audio_tokens":5,"rejected_prediction_tokens":2}}}"#;
    let response = r#"{"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":40,"cache_write_tokens":20,"audio_tokens":10},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":30,"audio_tokens":5},"total_tokens":150}}"#;
    let expected = Usage {
        prompt_tokens: 100,
        completion_tokens: 50,
        cached_prompt_tokens: 40,
        cache_write_tokens: 20,
        audio_prompt_tokens: 10,
        reasoning_tokens: 30,
        audio_completion_tokens: 5,
        ..Usage::default()
    };
    assert_eq!(of_answer(Dialect::Chat, chat), Some(expected));
    assert_eq!(of_answer(Dialect::Responses, response), Some(expected));
    // In Anthropic's dialect, `input_tokens` excludes cache reads and cache writes.
    let message = r#"{"usage":{"input_tokens":40,"cache_read_input_tokens":40,"cache_creation_input_tokens":20,"output_tokens":50,"output_tokens_details":{"thinking_tokens":30}}}"#;
    let without_audio = Usage {
        audio_prompt_tokens: 0,
        audio_completion_tokens: 0,
        ..expected
    };
    assert_eq!(of_answer(Dialect::Messages, message), Some(without_audio));
    let content = r#"{"usageMetadata":{"promptTokenCount":100,"cachedContentTokenCount":40,"candidatesTokenCount":20,"thoughtsTokenCount":30,"totalTokenCount":150,"promptTokensDetails":[{"modality":"TEXT","tokenCount":90},{"modality":"AUDIO","tokenCount":10}],"candidatesTokensDetails":[{"modality":"AUDIO","tokenCount":5}]}}"#;
    let without_writes = Usage {
        cache_write_tokens: 0,
        ..expected
    };
    assert_eq!(of_answer(Dialect::Gemini, content), Some(without_writes));
}

#[test]
fn details_of_an_unexpected_form_leave_the_totals_readable() {
    for details in ["null", "[]", "7", r#""x""#, r#"{"cached_tokens":"many"}"#, "{}"] {
        let chat = format!(
            r#"{{"usage":{{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{details},"completion_tokens_details":{details},"prompt_cache_hit_tokens":{details}}}}}"#
        );
        let expected = Usage {
            cached_prompt_tokens: if details == "7" { 7 } else { 0 },
            ..usage(10, 5).unwrap()
        };
        assert_eq!(of_answer(Dialect::Chat, &chat), Some(expected), "{details}");
        let message = format!(
            r#"{{"usage":{{"input_tokens":10,"output_tokens":5,"output_tokens_details":{details}}}}}"#
        );
        assert_eq!(of_answer(Dialect::Messages, &message), usage(10, 5), "{details}");
        let content = format!(
            r#"{{"usageMetadata":{{"promptTokenCount":10,"candidatesTokenCount":5,"promptTokensDetails":{details}}}}}"#
        );
        assert_eq!(of_answer(Dialect::Gemini, &content), usage(10, 5), "{details}");
    }
}

#[test]
fn no_part_of_a_usage_is_larger_than_its_total() {
    let chat = r#"{"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":8,"audio_tokens":99},"completion_tokens_details":{"reasoning_tokens":99,"audio_tokens":99}}}"#;
    let expected = Usage {
        prompt_tokens: 10,
        completion_tokens: 5,
        cached_prompt_tokens: 8,
        cache_write_tokens: 2,
        audio_prompt_tokens: 10,
        reasoning_tokens: 5,
        audio_completion_tokens: 5,
        ..Usage::default()
    };
    assert_eq!(of_answer(Dialect::Chat, chat), Some(expected));
}

#[test]
fn the_usage_that_groq_tells_twice_counts_once() {
    // Portkey-AI/gateway#1338.
    let own =
        r#"{"choices":[],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}}"#;
    let last = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}"#;
    assert_eq!(of_stream(Dialect::Chat, &[own, last]), usage(3, 4));
}

#[test]
fn a_usage_beside_choices_may_be_that_of_one_where_the_stream_is_interrupted() {
    let first = r#"{"choices":[{"index":0,"text":"a"}],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#;
    let second = r#"{"choices":[{"index":1,"text":"a"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}"#;
    let all = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5}}"#;
    let partial = usage(3, 1).map(|usage| Usage {
        is_partial: true,
        ..usage
    });
    for (dialect, events, ended, interrupted) in [
        (Dialect::Chat, &[first, second][..], usage(3, 1), partial),
        (Dialect::Chat, &[first, second, all], usage(3, 5), usage(3, 5)),
        // With several prompts, it is the usage of one of them.
        (Dialect::Completions, &[first, second], usage(3, 1), None),
        (
            Dialect::Completions,
            &[first, second, all],
            usage(3, 5),
            usage(3, 5),
        ),
    ] {
        let mut reader = UsageReader::new(dialect);
        for event in events {
            reader.push_event(format!("data: {event}\n\n").as_bytes());
        }
        assert_eq!(reader.usage(), ended, "{dialect:?} {events:?}");
        reader.mark_interrupted();
        assert_eq!(reader.usage(), interrupted, "{dialect:?} {events:?}");
        reader.reset(dialect);
        reader.push_event(format!("data: {first}\n\n").as_bytes());
        assert_eq!(
            reader.usage(),
            usage(3, 4),
            "nothing is left of the answer before"
        );
    }
    let mut reader = UsageReader::new(Dialect::Chat);
    reader.push_fragment(format!("data: {{\"choices\":[{{}}],\"text\":\"{}\",", "a".repeat(100)).as_bytes());
    reader.push_fragment(br#""usage":{"prompt_tokens":3,"completion_tokens":1}}"#);
    reader.mark_interrupted();
    assert_eq!(
        reader.usage(),
        partial,
        "in an event that is too large to be kept"
    );
    let mut reader = UsageReader::new(Dialect::Chat);
    reader.push(first.as_bytes());
    reader.mark_interrupted();
    assert_eq!(
        reader.usage(),
        usage(3, 4),
        "that of a whole answer is of all choices"
    );
}

#[test]
fn the_usage_of_an_event_that_is_too_large_to_be_kept_is_read_as_it_passes() {
    let event = r#"{"type":"response.completed","response":{"instructions":"\"usage\":{\"input_tokens\":0}","usage":{"input_tokens":8,"output_tokens":9},"tools":[{"usage":{"input_tokens":0,"output_tokens":0}}]}}"#;
    for cut in 0..event.len() {
        let mut reader = UsageReader::new(Dialect::Responses);
        reader.push_fragment(format!("event: response.completed\ndata: {}", &event[..cut]).as_bytes());
        reader.push_fragment(&event.as_bytes()[cut..]);
        assert_eq!(reader.usage(), usage(8, 9), "cut at {cut}");
    }
}

proptest! {
    #[test]
    fn the_usage_of_a_response_is_the_same_however_it_is_cut(
        parts in prop::collection::vec(prop::sample::select(&[
            "{", "}", "[", "]", ",", ":", "\"usage\"", "\"usage\":", "\"\\\"usage\"", "\"x\":", "1", " ",
            "\"usage\":{\"input_tokens\":4,\"output_tokens\":2}", "{\"input_tokens\":1}", "\"a\\\\\"",
        ][..]), 0..16),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
    ) {
        let answer = parts.concat();
        let whole = of_answer(Dialect::Responses, &answer);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(answer.len() + 1)).collect();
        cuts.extend([0, answer.len()]);
        cuts.sort_unstable();
        let mut reader = UsageReader::new(Dialect::Responses);
        for cut in cuts.windows(2) {
            reader.push(&answer.as_bytes()[cut[0]..cut[1]]);
        }
        prop_assert_eq!(reader.usage(), whole);
    }

    #[test]
    fn the_usage_of_a_whole_document_is_its_own_member(
        before in "[a-z]{0,3}", nested in any::<bool>(), input in any::<u32>(), output in any::<u32>(),
    ) {
        let inner = r#"{"usage":{"input_tokens":1,"output_tokens":1}}"#;
        let inner = if nested { inner } else { "[1,{\"usage\":3},\"usage\"]" };
        let answer = format!(
            r#"{{"{before}":{inner},"usage" : {{"input_tokens":{input},"output_tokens":{output}}} ,"z":{inner}}}"#
        );
        prop_assert_eq!(
            of_answer(Dialect::Responses, &answer),
            usage(u64::from(input), u64::from(output))
        );
    }
}
