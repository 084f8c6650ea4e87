//! The factors that affect the price of an exchange: the service tier, the retention of cache
//! writes, the size of a prompt.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_providers::{Dialect, ParsedRequest, RequestedTier, Usage, UsageReader};
use serde_json::{Value, json};

fn answer(dialect: Dialect, answer: &Value) -> Usage {
    let text = answer.to_string();
    let whole = read(dialect, &[&text]);
    // The position at which the response is cut does not matter.
    for cut in 0..text.len() {
        let (begin, end) = text.split_at(cut);
        assert_eq!(read(dialect, &[begin, end]), whole, "{cut}");
    }
    whole
}

fn read(dialect: Dialect, pieces: &[&str]) -> Usage {
    let mut reader = UsageReader::new(dialect);
    for piece in pieces {
        reader.push(piece.as_bytes());
    }
    reader.usage().unwrap()
}

fn stream(dialect: Dialect, events: &[Value]) -> Usage {
    let mut reader = UsageReader::new(dialect);
    for event in events {
        reader.push_event(format!("data: {event}\n\n").as_bytes());
    }
    reader.usage().unwrap()
}

fn tier(usage: &Usage) -> Option<&str> {
    usage.tier.as_ref().map(|tier| tier.as_str())
}

#[test]
fn the_tier_that_served_a_request_is_read_wherever_an_answer_has_it() {
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 2});
    let chat = json!({"id": "c", "choices": [], "usage": usage, "service_tier": "priority"});
    assert_eq!(tier(&answer(Dialect::Chat, &chat)), Some("priority"));
    let events = [
        json!({"choices": [{"delta": {"content": "\"service_tier\":\"flex\""}}], "service_tier": "priority", "usage": null}),
        json!({"choices": [], "usage": usage, "service_tier": "priority"}),
    ];
    assert_eq!(tier(&stream(Dialect::Chat, &events)), Some("priority"));
    let usage = json!({"input_tokens": 1, "output_tokens": 2});
    // A value that the client wrote and the response repeats does not count.
    let echo = json!({"service_tier": "flex"});
    let response = json!({"metadata": echo, "tools": [echo], "usage": usage, "service_tier": "priority"});
    assert_eq!(tier(&answer(Dialect::Responses, &response)), Some("priority"));
    let event = json!({"type": "response.completed", "response": response});
    assert_eq!(tier(&stream(Dialect::Responses, &[event])), Some("priority"));
    let converse = json!({"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}, "serviceTier": {"type": "flex"}});
    assert_eq!(tier(&answer(Dialect::Converse, &converse)), Some("flex"));
    assert_eq!(tier(&stream(Dialect::Converse, &[converse])), Some("flex"));
    let google = |name: &str, value: &str| json!({"usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, name: value}});
    for (name, value, expected) in [
        ("trafficType", "ON_DEMAND_PRIORITY", "priority"),
        ("trafficType", "ON_DEMAND", "standard"),
        ("serviceTier", "flex", "flex"),
    ] {
        assert_eq!(
            tier(&answer(Dialect::Gemini, &google(name, value))),
            Some(expected)
        );
    }
    let message = json!({"usage": {"input_tokens": 1, "output_tokens": 2, "service_tier": "standard", "speed": "fast",
        "inference_geo": "not_available"}});
    assert_eq!(tier(&answer(Dialect::Messages, &message)), Some("fast"));
    let none = json!({"choices": [], "usage": {"prompt_tokens": 1}});
    assert_eq!(tier(&answer(Dialect::Chat, &none)), None);
}

#[test]
fn calls_of_hosted_tools_are_counted_as_the_provider_tells_them() {
    let calls = |usage: &Usage| (usage.web_search_requests, usage.web_fetch_requests);
    let usage = json!({"input_tokens": 5, "output_tokens": 2,
        "server_tool_use": {"web_search_requests": 3, "web_fetch_requests": 1}});
    let message = json!({"type": "message", "usage": usage});
    assert_eq!(calls(&answer(Dialect::Messages, &message)), (Some(3), Some(1)));
    assert_eq!(calls(&answer(Dialect::Invoke, &message)), (Some(3), Some(1)));
    let events = [
        json!({"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1,
            "server_tool_use": {"web_search_requests": 0}}}}),
        json!({"type": "message_delta", "usage": {"output_tokens": 4, "server_tool_use": {"web_search_requests": 2}}}),
        json!({"type": "message_delta", "usage": {"output_tokens": 9, "server_tool_use": null}}),
    ];
    assert_eq!(calls(&stream(Dialect::Messages, &events)), (Some(2), None));
    let untold = json!({"usage": {"input_tokens": 5, "output_tokens": 2, "server_tool_use": "many"}});
    assert_eq!(calls(&answer(Dialect::Messages, &untold)), (None, None));
}

#[test]
fn the_searches_of_a_response_are_read_beside_its_usage() {
    let usage = json!({"input_tokens": 1, "output_tokens": 2});
    let echo = json!({"tool_usage": {"web_search": {"num_requests": 99}}});
    let told = json!({"image_gen": {"input_tokens": 0}, "web_search": {"num_requests": 3}});
    for response in [
        json!({"metadata": echo, "output": [echo], "tool_usage": told, "usage": usage}),
        json!({"usage": usage, "tools": [echo], "tool_usage": told}),
    ] {
        let text = response.to_string();
        for cut in 0..text.len() {
            let mut reader = UsageReader::new(Dialect::Responses);
            reader.expect_tool_calls();
            reader.push(&text.as_bytes()[..cut]);
            reader.push(&text.as_bytes()[cut..]);
            assert_eq!(reader.usage().unwrap().web_search_requests, Some(3), "{cut}");
        }
        let event = |kind: &str, response: &Value| {
            format!(
                "event: {kind}\ndata: {}\n\n",
                json!({"type": kind, "response": response})
            )
        };
        let begun = json!({"tool_usage": {"web_search": {"num_requests": 0}}, "usage": null});
        let mut reader = UsageReader::new(Dialect::Responses);
        reader.expect_tool_calls();
        reader.push_event(event("response.created", &begun).as_bytes());
        reader.push_event(event("response.completed", &response).as_bytes());
        assert_eq!(reader.usage().unwrap().web_search_requests, Some(3));
        let mut reader = UsageReader::new(Dialect::Responses);
        reader.expect_tool_calls();
        for part in event("response.completed", &response).as_bytes()[31..].chunks(7) {
            reader.push_fragment(part);
        }
        assert_eq!(reader.usage().unwrap().web_search_requests, Some(3));
    }
    let mut reader = UsageReader::new(Dialect::Responses);
    reader.expect_tool_calls();
    reader.push(json!({"usage": usage}).to_string().as_bytes());
    assert_eq!(
        reader.usage().unwrap().web_search_requests,
        None,
        "nothing is told"
    );
    reader.reset(Dialect::Messages);
    reader.expect_tool_calls();
    assert_eq!(reader.usage(), None);
}

#[test]
fn what_a_cache_keeps_for_an_hour_is_counted_apart() {
    let usage = json!({"input_tokens": 5, "output_tokens": 2, "cache_creation_input_tokens": 100,
        "cache_creation": {"ephemeral_5m_input_tokens": 40, "ephemeral_1h_input_tokens": 60}});
    let written = |usage: &Usage| (usage.cache_write_tokens, usage.cache_write_1h_tokens);
    let message = json!({"type": "message", "usage": usage});
    assert_eq!(written(&answer(Dialect::Messages, &message)), (100, 60));
    assert_eq!(written(&answer(Dialect::Invoke, &message)), (100, 60));
    let events = [
        json!({"type": "message_start", "message": {"usage": usage}}),
        json!({"type": "message_delta", "usage": {"output_tokens": 9}}),
    ];
    assert_eq!(written(&stream(Dialect::Messages, &events)), (100, 60));
    let converse = json!({"usage": {"inputTokens": 5, "outputTokens": 2, "totalTokens": 107, "cacheWriteInputTokens": 100,
        "cacheDetails": [{"ttl": "5m", "inputTokens": 40}, {"ttl": "1h", "inputTokens": 60}]}});
    assert_eq!(written(&answer(Dialect::Converse, &converse)), (100, 60));
}

#[test]
fn where_nothing_is_told_of_how_long_what_was_asked_for_counts() {
    let untold =
        json!({"usage": {"input_tokens": 5, "output_tokens": 2, "cache_creation_input_tokens": 100}})
            .to_string();
    let told = json!({"usage": {"input_tokens": 5, "output_tokens": 2, "cache_creation_input_tokens": 100,
        "cache_creation": {"ephemeral_5m_input_tokens": 100}}});
    for (text, expects, longer) in [
        (&untold, false, 0),
        (&untold, true, 100),
        (&told.to_string(), true, 0),
    ] {
        let mut reader = UsageReader::new(Dialect::Messages);
        if expects {
            reader.expect_long_cache();
        }
        reader.push(text.as_bytes());
        assert_eq!(reader.usage().unwrap().cache_write_1h_tokens, longer, "{text}");
    }
}

fn with_call<T>(dialect: Dialect, body: &Value, look: impl FnOnce(&ParsedRequest<'_>) -> T) -> T {
    let text = body.to_string();
    look(&ParsedRequest::parse(dialect, text.as_bytes()).unwrap())
}

#[test]
fn every_field_that_asks_for_a_tier_is_read() {
    let named = |name: &str| RequestedTier::Named(name.to_owned().into());
    let messages = json!([{"role": "user", "content": "hi"}]);
    for (dialect, fields, expected) in [
        (Dialect::Chat, json!({}), RequestedTier::Standard),
        (
            Dialect::Chat,
            json!({"service_tier": null}),
            RequestedTier::Standard,
        ),
        (
            Dialect::Chat,
            json!({"service_tier": "auto"}),
            RequestedTier::Standard,
        ),
        (Dialect::Chat, json!({"service_tier": "flex"}), named("flex")),
        (
            Dialect::Chat,
            json!({"service_tier": 5}),
            RequestedTier::Ambiguous,
        ),
        (Dialect::Responses, json!({"service_tier": "fast"}), named("fast")),
        (Dialect::Messages, json!({"speed": "fast"}), named("fast")),
        (Dialect::Messages, json!({"inference_geo": "us"}), named("us")),
        (
            Dialect::Messages,
            json!({"inference_geo": "us", "speed": "fast"}),
            RequestedTier::Ambiguous,
        ),
        (
            Dialect::Messages,
            json!({"service_tier": "standard_only", "speed": "standard"}),
            RequestedTier::Standard,
        ),
        (
            Dialect::Gemini,
            json!({"serviceTier": "SERVICE_TIER_PRIORITY"}),
            named("priority"),
        ),
        (Dialect::Gemini, json!({"service_tier": "flex"}), named("flex")),
    ] {
        let mut body = match dialect {
            Dialect::Gemini => json!({"contents": []}),
            Dialect::Responses => json!({"model": "m", "input": "hi"}),
            _ => json!({"model": "m", "messages": messages}),
        };
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        with_call(dialect, &body, |call| assert_eq!(call.tier, expected, "{body}"));
    }
}

#[test]
fn a_cache_that_keeps_for_longer_is_seen_wherever_it_is_asked_for() {
    let control = |ttl: &str| json!({"type": "ephemeral", "ttl": ttl});
    let body = |block: Value| json!({"model": "m", "messages": [{"role": "user", "content": [block]}]});
    let block = |ttl: &str| body(json!({"type": "text", "text": "hi", "cache_control": control(ttl)}));
    let mut top = body(json!({"type": "text", "text": "hi"}));
    top["cache_control"] = control("1h");
    let mut tools = body(json!({"type": "text", "text": "hi"}));
    tools["tools"] = json!([{"name": "t", "input_schema": {}, "cache_control": control("1h")}]);
    for (dialect, body, expected) in [
        (Dialect::Messages, block("5m"), false),
        (Dialect::Messages, block("1h"), true),
        (Dialect::Chat, block("1h"), true),
        (Dialect::Messages, top, true),
        (Dialect::Messages, tools, true),
        (
            Dialect::Chat,
            json!({"model": "m", "messages": [], "prompt_cache_options": {"ttl": "30m"}}),
            false,
        ),
        (
            Dialect::Chat,
            json!({"model": "m", "messages": [], "prompt_cache_retention": "24h"}),
            true,
        ),
        (
            Dialect::Responses,
            json!({"model": "m", "input": "", "prompt_cache_retention": "in_memory"}),
            false,
        ),
    ] {
        with_call(dialect, &body, |call| {
            assert_eq!(call.is_long_cache_requested, expected, "{body}")
        });
    }
}

#[test]
fn a_prompt_has_at_most_a_token_for_every_byte_and_what_its_attachments_may_cost() {
    let most =
        |dialect, body: &Value, window| with_call(dialect, body, |call| call.max_prompt_tokens(window));
    let body = |content: Value| json!({"model": "m", "messages": [{"role": "user", "content": content}]});
    let plain = body(json!("x".repeat(1000)));
    let bytes = plain.to_string().len() as u64;
    assert_eq!(most(Dialect::Chat, &plain, None), bytes);
    assert_eq!(
        most(Dialect::Chat, &plain, Some(500)),
        500,
        "a longer one is refused by its provider"
    );
    let png = format!("iVBORw0KGgo{}", "A".repeat(40_000));
    let image =
        body(json!([{"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{png}")}}]));
    let of_image = most(Dialect::Chat, &image, Some(1_000_000));
    assert!((10_000..11_000).contains(&of_image), "{of_image}");
    let source = |data: &str| json!({"type": "base64", "media_type": "image/png", "data": data});
    let of_message = |source| {
        most(
            Dialect::Messages,
            &body(json!([{"type": "image", "source": source}])),
            Some(1_000_000),
        )
    };
    assert!((10_000..11_000).contains(&of_message(source(&png))));
    // Data that is not an image whatever its declared type, and unknown data.
    assert_eq!(of_message(source("JVBERi0xLjcK")), 1_000_000);
    let pdf = "JVBERi0xLjQKMSAwIG9iago8PC9UeXBlL0NhdGFsb2cvUGFnZXMgMiAwIFI+PgplbmRvYmoK";
    assert_eq!(
        of_message(source(pdf)),
        1_000_000,
        "a document may look like a text"
    );
    let file = json!([{"type": "file", "file": {"filename": "a.txt", "file_data": format!("data:application/pdf;base64,{pdf}")}}]);
    assert_eq!(most(Dialect::Chat, &body(file), Some(1_000_000)), 1_000_000);
    let text = json!({"type": "base64", "media_type": "text/plain", "data": "aGVsbG8gd29ybGQ="});
    assert!(of_message(text) < 500);
    assert_eq!(
        of_message(json!({"type": "url", "url": "https://files.example/a"})),
        1_000_000
    );
    let thinking = json!([{"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk".repeat(100)},
        {"type": "redacted_thinking", "data": "c2VhbGVk".repeat(100)}]);
    let sealed = body(thinking);
    let of_thinking = most(Dialect::Messages, &sealed, Some(1_000_000));
    assert_eq!(of_thinking, sealed.to_string().len() as u64);
    let mut tools = plain.clone();
    tools["tools"] = json!([]);
    assert!(most(Dialect::Chat, &tools, None) > bytes + 1000);
}
