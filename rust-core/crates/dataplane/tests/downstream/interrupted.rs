//! The charge for an interrupted stream: the known usage so far, and the reservation for its
//! response.

use http::Request;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::client::{Client, next, read};
use crate::dialects::{admission, begin};
use crate::frames::{carried, event};
use crate::gateway::{ACME, Gateway, MODEL, word};
use crate::relayed::{completion, id};
use crate::uploads::{answer, ended, plain};

/// Maximum tokens of each response.
const MOST: u64 = 50;

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","stop_reason":null,"usage":{"input_tokens":9,"cache_read_input_tokens":1000,"output_tokens":1}}}"#;
const BLOCK: &str = r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
const DELTA: &str =
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}"#;
const COUNTED: &str = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}"#;
const FAILED: &str = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;

/// A gateway in front of a provider of each family, each with a model named like its type.
async fn gateway() -> Gateway {
    gateway_with(|_| ()).await
}

async fn gateway_with(change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|config| {
        let first = config["providers"][0].clone();
        let url = first["baseURL"]
            .as_str()
            .unwrap()
            .trim_end_matches("/v1")
            .to_owned();
        for family in ["anthropic", "gemini", "bedrock"] {
            let mut provider = first.clone();
            provider["name"] = family.into();
            provider["type"] = word(family).into();
            if family == "bedrock" {
                provider["baseURL"] = url.as_str().into();
            }
            provider["apiKey"] = "provider-key".into();
            config["providers"].as_array_mut().unwrap().push(provider);
            let model = json!({"name": family, "maxOutputTokens": 100,
                "routes": [{"provider": family, "upstreamModel": "anthropic.claude", "weight": 1}]});
            config["models"].as_array_mut().unwrap().push(model);
        }
        config["tenants"][0]["limits"] = json!({"tokensPerDay": 1_000_000_000});
        change(config);
    })
    .await
}

fn chat(model: &str) -> (String, Value) {
    let body = json!({"model": model, "stream": true, "max_tokens": MOST,
        "messages": [{"role": "user", "content": "Hi"}]});
    ("/v1/chat/completions".to_owned(), body)
}

fn message(model: &str) -> (String, Value) {
    let (_, body) = chat(model);
    ("/v1/messages".to_owned(), body)
}

fn gemini() -> (String, Value) {
    let body = json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "generationConfig": {"maxOutputTokens": MOST}});
    (
        "/v1beta/models/gemini:streamGenerateContent?alt=sse".to_owned(),
        body,
    )
}

/// Encodes events of a message as a stream.
fn events(events: &[&str]) -> Vec<u8> {
    let event = |data: &&str| {
        let document: Value = serde_json::from_str(data).unwrap();
        let name = document["type"].as_str().unwrap_or("message").to_owned();
        format!("event: {name}\ndata: {data}\n\n")
    };
    events.iter().map(event).collect::<String>().into_bytes()
}

fn chunks(chunks: &[&str]) -> Vec<u8> {
    let chunks = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
    chunks.collect::<String>().into_bytes()
}

#[derive(Debug, Clone, Copy)]
enum Interrupted {
    ByItsProvider,
    ByItsClient,
}

/// Returns the completion of a request whose response starts with `begin` and is then interrupted.
async fn record(
    gateway: &mut Gateway,
    (path, document): (String, Value),
    kind: &str,
    begin: &[u8],
    interrupted: Interrupted,
) -> Value {
    let body = document.to_string().into_bytes();
    let request = Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("anthropic-version", "2023-06-01")
        .header("content-length", body.len())
        .body(())
        .unwrap();
    let mut client = Client::connect(gateway).await;
    let answer = client.send(request, &body).await;
    let mut exchange = gateway.upstream.exchange().await;
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n\r\n");
    exchange.send(head.as_bytes()).await;
    exchange.send(format!("{:x}\r\n", begin.len()).as_bytes()).await;
    exchange.send(begin).await;
    exchange.send(b"\r\n").await;
    let answer = answer.await.unwrap();
    let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let mut body = answer.into_body();
    next(&mut body).await.unwrap().unwrap();
    let outcome = match interrupted {
        Interrupted::ByItsProvider => {
            drop(exchange);
            while let Ok(Some(_)) = next(&mut body).await {}
            "upstream_error"
        }
        Interrupted::ByItsClient => {
            drop(body);
            exchange.given_up().await;
            "client_disconnect"
        }
    };
    let record = completion(gateway, &id).await;
    assert_eq!(record["outcome"], outcome);
    record
}

const EVENTS: &str = "text/event-stream";
const FRAMES: &str = "application/vnd.amazon.eventstream";

#[tokio::test]
async fn an_interrupted_stream_is_charged_what_its_provider_has_told_and_what_was_reserved_for_the_rest() {
    let mut gateway = gateway().await;
    let carried_begin = [START, BLOCK, DELTA].map(carried).concat();
    let text = r#"{"candidates":[{"content":{"parts":[{"text":"Hello"}],"role":"model"},"index":0}]"#;
    let uncounted = format!(r#"{text},"usageMetadata":{{"promptTokenCount":9,"totalTokenCount":9}}}}"#);
    let counted = format!(
        r#"{text},"usageMetadata":{{"promptTokenCount":9,"candidatesTokenCount":2,"totalTokenCount":11}}}}"#
    );
    let prompt_only = |cached: u64| {
        let mut usage = json!({"prompt_tokens": 9 + cached, "completion_tokens": 0, "partial": true});
        if cached > 0 {
            usage["cached_prompt_tokens"] = cached.into();
            usage["completion_tokens"] = 1.into();
        }
        (usage, json!(9 + cached + MOST))
    };
    let told = |cached: u64| {
        let mut usage = json!({"prompt_tokens": 9 + cached, "completion_tokens": 2});
        if cached > 0 {
            usage["cached_prompt_tokens"] = cached.into();
        }
        (usage, json!(9 + cached + 2))
    };
    let unknown = (Value::Null, Value::Null);
    let start = events(&[START, BLOCK, DELTA]);
    let all = events(&[START, BLOCK, DELTA, COUNTED]);
    let chunk = r#"{"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}"#;
    let response = r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"i","delta":"Hello","sequence_number":0}"#;
    let responses = (
        "/v1/responses".to_owned(),
        json!({"model": MODEL, "stream": true, "max_output_tokens": MOST, "input": "Hi"}),
    );
    let converse = [
        event("messageStart", r#"{"role":"assistant"}"#),
        event(
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"text":"Hello"}}"#,
        ),
    ]
    .concat();
    for (asked, kind, begin, (usage, charged)) in [
        (message("anthropic"), EVENTS, &start, prompt_only(1000)),
        (message("anthropic"), EVENTS, &all, told(1000)),
        (chat("anthropic"), EVENTS, &start, prompt_only(1000)),
        (message("bedrock"), FRAMES, &carried_begin, prompt_only(1000)),
        (gemini(), EVENTS, &chunks(&[&uncounted]), prompt_only(0)),
        (gemini(), EVENTS, &chunks(&[&uncounted, &counted]), told(0)),
        (chat("gemini"), EVENTS, &chunks(&[&uncounted]), prompt_only(0)),
        (chat(MODEL), EVENTS, &chunks(&[chunk]), unknown.clone()),
        (chat("bedrock"), FRAMES, &converse, unknown.clone()),
        (responses, EVENTS, &events(&[response]), unknown),
    ] {
        for interrupted in [Interrupted::ByItsProvider, Interrupted::ByItsClient] {
            let record = record(&mut gateway, asked.clone(), kind, begin, interrupted).await;
            let found = (&record["usage"], &record["charged"]);
            let begin = String::from_utf8_lossy(begin);
            assert_eq!(found, (&usage, &charged), "{interrupted:?}: {asked:?} {begin}");
        }
    }
}

/// Returns a chunk of vLLM, which counts the tokens of its choice on request.
fn counted_chunk(choices: &str, completion_tokens: u64) -> String {
    format!(
        r#"{{"choices":[{choices}],"usage":{{"prompt_tokens":9,"completion_tokens":{completion_tokens},"total_tokens":{}}}}}"#,
        9 + completion_tokens
    )
}

#[tokio::test]
async fn a_count_of_one_choice_is_not_taken_for_that_of_all() {
    let mut gateway = gateway().await;
    let (path, mut document) = chat(MODEL);
    document["n"] = 2.into();
    document["stream_options"] = json!({"include_usage": true, "continuous_usage_stats": true});
    let choice =
        |index: u64| format!(r#"{{"index":{index},"delta":{{"content":"Hello"}},"finish_reason":null}}"#);
    let first = counted_chunk(&choice(0), 2);
    let second = counted_chunk(&choice(1), 0);
    let sum = counted_chunk("", 3);
    let of_one = json!({"prompt_tokens": 9, "completion_tokens": 0, "partial": true});
    let of_all = json!({"prompt_tokens": 9, "completion_tokens": 3});
    for (begin, usage, charged) in [
        (chunks(&[&first, &second]), of_one, 9 + 2 * MOST),
        (chunks(&[&first, &second, &sum]), of_all.clone(), 9 + 3),
    ] {
        for interrupted in [Interrupted::ByItsProvider, Interrupted::ByItsClient] {
            let asked = (path.clone(), document.clone());
            let record = record(&mut gateway, asked, EVENTS, &begin, interrupted).await;
            let found = (&record["usage"], &record["charged"]);
            assert_eq!(found, (&usage, &json!(charged)), "{interrupted:?}");
        }
    }
    let mut prompts = document.clone();
    prompts["prompt"] = json!(["Hello", "you"]);
    let asked = ("/v1/completions".to_owned(), prompts);
    let events = chunks(&[&first, &second]);
    let record = record(&mut gateway, asked, EVENTS, &events, Interrupted::ByItsClient).await;
    let found = (&record["usage"], &record["charged"]);
    assert_eq!(found, (&Value::Null, &Value::Null), "nor one of one prompt");

    for (last, usage) in [
        (&sum, of_all),
        // Mistral reports usage only with its last choice.
        (&second, json!({"prompt_tokens": 9, "completion_tokens": 0})),
    ] {
        let mut events = chunks(&[&first, last]);
        events.extend_from_slice(b"data: [DONE]\n\n");
        let record = whole(&mut gateway, &path, &document, &events).await;
        assert_eq!(record["usage"], usage);
    }
}

/// Returns the completion of a request whose complete response has these events.
async fn whole(gateway: &mut Gateway, path: &str, document: &Value, events: &[u8]) -> Value {
    let (_client, answer, mut exchange) = begin(gateway, path, document).await;
    exchange.begin_events().await;
    exchange.send_chunk(std::str::from_utf8(events).unwrap()).await;
    exchange.send(b"0\r\n\r\n").await;
    let answer = read(answer).await.unwrap();
    let record = completion(gateway, id(&answer)).await;
    assert_eq!(record["outcome"], "complete");
    record
}

#[tokio::test]
async fn what_has_been_seen_of_an_answer_is_charged_where_more_was_generated_than_reserved() {
    const SEEN: usize = 150;
    let chunk = r#"{"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}"#;
    let seen = chunks(&[chunk; SEEN]);
    let price = json!({"model": MODEL, "effectiveFrom": "1970-01-01", "input": "1", "output": "2"});
    for budget in [false, true] {
        let mut gateway = gateway_with(|config| {
            config["prices"] = json!([price]);
            config["providers"][0]["streamUsage"] = "Leave".into();
            if budget {
                config["tenants"][0]["limits"]["dollarsPerDay"] = json!("1000");
            }
        })
        .await;
        let (path, mut document) = chat(MODEL);
        document.as_object_mut().unwrap().remove("max_tokens");
        document["max_completion_tokens"] = 1.into();
        let (client, answer, mut exchange) = begin(&mut gateway, &path, &document).await;
        exchange.begin_events().await;
        exchange.send_chunk(std::str::from_utf8(&seen).unwrap()).await;
        let answer = answer.await.unwrap();
        let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
        let mut body = answer.into_body();
        let mut read = 0;
        while read < seen.len() {
            read += next(&mut body).await.unwrap().unwrap().len();
        }
        drop((body, client));
        exchange.given_up().await;
        let left = completion(&gateway, &id).await;
        assert_eq!(left["outcome"], "client_disconnect");
        let admitted = admission(&gateway, &id).await;
        let prompt = admitted["reserved"].as_u64().unwrap() - 1;
        let bytes = admitted["bytes"].as_u64().unwrap();
        let mut events = seen.clone();
        events.extend_from_slice(b"data: [DONE]\n\n");
        let ended = whole(&mut gateway, &path, &document, &events).await;
        // The end marker is also an event.
        for (record, answer) in [(left, SEEN as u64), (ended, SEEN as u64 + 1)] {
            assert_eq!(record["usage"], Value::Null);
            assert_eq!(record["charged"], prompt + answer);
            // Money is reserved for the upper bound of a prompt's tokens: one for each byte.
            let cost = budget.then_some(bytes * 1000 + answer * 2000);
            assert_eq!(record["cost_nanodollars"], json!(cost));
        }
        let mut events = chunks(&[chunk; 10]);
        events.extend_from_slice(b"data: [DONE]\n\n");
        let short = whole(&mut gateway, &path, &document, &events).await;
        assert_eq!(short["charged"], Value::Null, "some events frame an answer");
    }
}

#[tokio::test]
async fn what_has_been_seen_of_an_answer_counts_where_only_its_begin_was_counted() {
    let mut gateway = gateway().await;
    let (path, mut document) = message("anthropic");
    document["max_tokens"] = 1.into();
    let begin = events(&[&[START, BLOCK][..], &[DELTA; 60]].concat());
    let by = Interrupted::ByItsProvider;
    let record = record(&mut gateway, (path, document), EVENTS, &begin, by).await;
    assert_eq!(record["usage"]["partial"], true);
    assert_eq!(record["charged"], 1009 + 62);
}

#[tokio::test]
async fn a_stream_that_says_that_it_failed_is_charged_as_one_that_breaks_off() {
    let mut gateway = gateway().await;
    let begin = events(&[START, BLOCK, DELTA, FAILED]);
    let record = record(
        &mut gateway,
        message("anthropic"),
        EVENTS,
        &begin,
        Interrupted::ByItsProvider,
    )
    .await;
    assert_eq!(record["usage"]["partial"], true);
    assert_eq!(record["charged"], 1009 + MOST);
}

#[tokio::test]
async fn what_is_not_counted_costs_its_reservation_where_money_is_counted_and_else_what_is_known() {
    // Dollars per million tokens, which are 1000 and 2000 nanodollars per token.
    let price =
        json!({"model": "anthropic.claude", "effectiveFrom": "1970-01-01", "input": "1", "output": "2"});
    for (budget, cost) in [(true, 1009 * 1000 + MOST * 2000), (false, 1009 * 1000 + 2000)] {
        let mut gateway = gateway_with(|config| {
            config["prices"] = json!([price]);
            if budget {
                config["tenants"][0]["limits"]["dollarsPerDay"] = json!("1000");
            }
        })
        .await;
        let begin = events(&[START, BLOCK, DELTA]);
        let by = Interrupted::ByItsClient;
        let record = record(&mut gateway, message("anthropic"), EVENTS, &begin, by).await;
        assert_eq!(record["cost_nanodollars"], cost, "budget: {budget}");
        assert_eq!(record["charged"], 1009 + MOST);
    }
}

#[tokio::test]
async fn a_client_that_leaves_while_the_rest_of_an_error_is_waited_for_ends_its_request() {
    let mut gateway = plain(|config| {
        let mut second = config["providers"][0].clone();
        second["name"] = "second".into();
        config["providers"].as_array_mut().unwrap().push(second);
        let target = json!({"provider": "second", "upstreamModel": MODEL, "weight": 0});
        config["models"][0]["routes"].as_array_mut().unwrap().push(target);
        config["models"][0]["fallbackOn"] = json!(["ContextLength"]);
    })
    .await;
    let (path, document) = chat(MODEL);
    let body = document.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {ACME}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let connect = || TcpStream::connect(gateway.address);
    let (mut leaving, mut other) = (connect().await.unwrap(), connect().await.unwrap());
    leaving.write_all(request.as_bytes()).await.unwrap();
    let mut stalled = gateway.upstream.exchange().await;
    let begin = "HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
    stalled.send(begin.as_bytes()).await;
    // Another request is served after it, so it has been read.
    other.write_all(request.as_bytes()).await.unwrap();
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(answer(&mut other).await.status, 200);
    drop(leaving);
    stalled.given_up().await;
    ended(&gateway, "client_disconnect").await;
}
