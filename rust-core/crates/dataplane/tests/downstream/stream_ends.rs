//! Streams without an end marker: they are complete if every choice has finished and the body ended
//! correctly.

use h2::client::ResponseFuture;
use http::Request;
use serde_json::{Value, json};

use crate::client::{Client, next, read};
use crate::gateway::{ACME, Gateway, MODEL};
use crate::upstream::Exchange;

const CLAUDE: &str = "claude";

/// The stream of `field/06`, without `[DONE]`, as from vLLM and others.
const UNMARKED: &str = concat!(
    r#"data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Paris."},"finish_reason":null}]}"#,
    "\n\n",
    r#"data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}"#,
    "\n\n",
);
const MESSAGE: &str = concat!(
    "event: message_start\n",
    r#"data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"usage":{"input_tokens":5,"output_tokens":1}}}"#,
    "\n\nevent: content_block_start\n",
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    "\n\nevent: content_block_delta\n",
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Paris."}}"#,
    "\n\nevent: content_block_stop\n",
    r#"data: {"type":"content_block_stop","index":0}"#,
    "\n\nevent: message_delta\n",
    r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}"#,
    "\n\n",
);

async fn gateway() -> Gateway {
    Gateway::with(|document| {
        let mut anthropic = document["providers"][0].clone();
        anthropic["name"] = json!("anthropic");
        anthropic["type"] = json!("Anthropic");
        document["providers"].as_array_mut().unwrap().push(anthropic);
        let mut model = document["models"][0].clone();
        model["name"] = json!(CLAUDE);
        model["routes"][0]["provider"] = json!("anthropic");
        document["models"].as_array_mut().unwrap().push(model);
    })
    .await
}

async fn ask(client: &mut Client, path: &str, model: &str, more: Value) -> ResponseFuture {
    let mut body = json!({"model": model, "stream": true, "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let body = body.to_string();
    let request = Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("anthropic-version", "2023-06-01")
        .header("content-length", body.len())
        .body(())
        .unwrap();
    client.send(request, body.as_bytes()).await
}

async fn stream(exchange: &mut Exchange, events: &str) {
    exchange.begin_events().await;
    exchange.send_chunk(events).await;
}

#[tokio::test]
async fn a_stream_whose_choices_finished_and_whose_body_ended_is_whole_and_passes_as_it_came() {
    let mut gateway = gateway().await;
    let mut client = Client::connect(&gateway).await;
    let chat = "/v1/chat/completions";
    for (path, model, events) in [(chat, MODEL, UNMARKED), ("/v1/messages", CLAUDE, MESSAGE)] {
        let sent = ask(&mut client, path, model, json!({})).await;
        let mut exchange = gateway.upstream.exchange().await;
        stream(&mut exchange, events).await;
        exchange.send(b"0\r\n\r\n").await;
        let answer = read(sent).await.unwrap();
        assert_eq!(String::from_utf8(answer.body).unwrap(), events);
        // The connection stays open, and nothing waits for its end.
        drop(exchange);
    }
    gateway
        .wait_for_metric(r#"proofgate_exchanges_total{outcome="complete"}"#, 2)
        .await;
    let tokens =
        r#"proofgate_completion_tokens_total{tenant="acme",model="gpt-4o-mini",provider="stand-in"}"#;
    gateway.wait_for_metric(tokens, 2).await;
}

#[tokio::test]
async fn what_is_translated_from_such_a_stream_gets_its_own_end() {
    let mut gateway = gateway().await;
    let mut client = Client::connect(&gateway).await;
    let chat = "/v1/chat/completions";
    for (path, model, events, end) in [
        ("/v1/messages", MODEL, UNMARKED, "event: message_stop"),
        (chat, CLAUDE, MESSAGE, "data: [DONE]"),
    ] {
        let sent = ask(&mut client, path, model, json!({})).await;
        let mut exchange = gateway.upstream.exchange().await;
        stream(&mut exchange, events).await;
        exchange.send(b"0\r\n\r\n").await;
        let answer = read(sent).await.unwrap();
        let said = String::from_utf8(answer.body).unwrap();
        assert!(said.contains("Paris.") && said.contains(end), "{said}");
        assert!(!said.contains("error"), "{said}");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_or_lacks_a_choice_is_none() {
    let mut gateway = gateway().await;
    let mut client = Client::connect(&gateway).await;
    let chat = "/v1/chat/completions";
    let (begin, _) = UNMARKED.split_at(UNMARKED.find("\n\n").unwrap() + 2);
    let (unfinished, _) = MESSAGE.split_at(MESSAGE.find("event: message_delta").unwrap());
    let last_chunk: &[u8] = b"0\r\n\r\n";
    for (path, model, more, events, end) in [
        (chat, MODEL, json!({}), UNMARKED, &b""[..]),
        (chat, MODEL, json!({}), begin, last_chunk),
        (chat, MODEL, json!({"n": 2}), UNMARKED, last_chunk),
        ("/v1/messages", CLAUDE, json!({}), MESSAGE, b""),
        ("/v1/messages", CLAUDE, json!({}), unfinished, last_chunk),
        ("/v1/messages", MODEL, json!({}), UNMARKED, b""),
    ] {
        let sent = ask(&mut client, path, model, more).await;
        let mut exchange = gateway.upstream.exchange().await;
        stream(&mut exchange, events).await;
        exchange.send(end).await;
        drop(exchange);
        let mut body = sent.await.unwrap().into_body();
        let mut said = Vec::new();
        // If nothing has been sent yet, the client gets an error response; otherwise the stream is
        // cut off.
        while let Ok(Some(piece)) = next(&mut body).await {
            said.extend_from_slice(&piece);
        }
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains("upstream_"), "{path} {model}: {said}");
    }
}
