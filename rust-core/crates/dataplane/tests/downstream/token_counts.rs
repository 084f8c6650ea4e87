//! Token counts of prompts for providers that do not count them: the gateway estimates the number
//! and marks it as an estimate.

use http::Request;
use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::dialects::admission;
use crate::gateway::{ACME, Gateway, MODEL, word};
use crate::relayed::{completion, id};

const ESTIMATED: &str = "x-proofgate-estimated";

fn prompt() -> Value {
    json!({"model": MODEL, "system": "Be kind.", "messages": [{"role": "user", "content": "word ".repeat(100)}]})
}

async fn count(gateway: &Gateway, path: &str, document: &Value) -> Answer {
    let body = document.to_string().into_bytes();
    let request = Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("content-length", body.len())
        .body(())
        .unwrap();
    Client::connect(gateway).await.exchange(request, &body).await
}

fn number(answer: &Answer, name: &str) -> u64 {
    let document: Value = serde_json::from_slice(&answer.body).unwrap();
    document[name].as_u64().unwrap()
}

fn typed(kind: &str) -> impl FnOnce(&mut Value) {
    let kind = kind.to_owned();
    move |config| {
        let provider = &mut config["providers"][0];
        provider["type"] = word(&kind).into();
        if kind == "vertex_ai" {
            provider["project"] = "p".into();
            provider["location"] = "l".into();
        }
        if kind != "openai" {
            provider["keyMissing"] = true.into();
        }
    }
}

#[tokio::test]
async fn a_prompt_is_estimated_where_the_provider_counts_none() {
    for kind in ["openai", "azure_openai", "gemini", "bedrock", "vertex_ai"] {
        let gateway = Gateway::with(typed(kind)).await;
        let answer = count(&gateway, "/v1/messages/count_tokens", &prompt()).await;
        assert_eq!(answer.status.as_u16(), 200, "{kind}");
        assert_eq!(answer.headers[ESTIMATED], "true", "{kind}");
        assert_eq!(answer.headers["content-type"], "application/json");
        let tokens = number(&answer, "input_tokens");
        assert!((120..160).contains(&tokens), "{kind}: {tokens}");
        assert_eq!(gateway.upstream.requests(), 0, "{kind}");
    }
}

#[tokio::test]
async fn a_prompt_of_googles_clients_is_estimated_in_their_words() {
    for kind in ["openai", "anthropic", "bedrock"] {
        let gateway = Gateway::with(typed(kind)).await;
        let path = format!("/v1beta/models/{MODEL}:countTokens");
        let contents = json!({"contents": [{"parts": [{"text": "word ".repeat(100)}]}]});
        let answer = count(&gateway, &path, &contents).await;
        assert_eq!(answer.status.as_u16(), 200, "{kind}");
        assert_eq!(answer.headers[ESTIMATED], "true", "{kind}");
        let tokens = number(&answer, "totalTokens");
        assert!((120..160).contains(&tokens), "{kind}: {tokens}");
    }
}

#[tokio::test]
async fn an_estimate_is_recorded_as_an_exchange_that_nobody_was_sent() {
    let gateway = Gateway::with(|config| {
        config["tenants"][0]["limits"] = json!({"tokensPerDay": 1});
    })
    .await;
    let answer = count(&gateway, "/v1/messages/count_tokens", &prompt()).await;
    assert_eq!(answer.status.as_u16(), 200);
    let admitted = admission(&gateway, id(&answer)).await;
    assert_eq!(
        (&admitted["endpoint"], &admitted["provider"], &admitted["model"]),
        (
            &json!("/v1/messages/count_tokens"),
            &json!("stand-in"),
            &json!(MODEL)
        )
    );
    let ended = completion(&gateway, id(&answer)).await;
    assert_eq!(
        (&ended["outcome"], &ended["status"]),
        (&json!("complete"), &json!(200))
    );
    assert_eq!(ended["upstream_status"], Value::Null);
    assert_eq!(ended["bytes"], answer.body.len());
    assert_eq!(ended["charged"], 0);
}

#[tokio::test]
async fn an_estimate_is_subject_to_rules_and_to_what_a_tenant_may_use() {
    let gateway = Gateway::with(|config| {
        config["policy"] = json!({"mode": "Enforce", "rules": [{
            "id": "word", "reason": "a word", "target": "Request", "literals": ["johndoe"], "action": "Block",
        }]});
    })
    .await;
    let mut document = prompt();
    document["system"] = "johndoe".into();
    let answer = count(&gateway, "/v1/messages/count_tokens", &document).await;
    assert_eq!(answer.status.as_u16(), 403);
    document["model"] = "nobodys".into();
    let answer = count(&gateway, "/v1/messages/count_tokens", &document).await;
    assert_eq!(answer.status.as_u16(), 404);
}

#[tokio::test]
async fn a_provider_that_counts_is_asked_though_another_one_comes_first() {
    let mut gateway = Gateway::with(|config| {
        let mut anthropic = config["providers"][0].clone();
        anthropic["name"] = "anthropic".into();
        anthropic["type"] = "Anthropic".into();
        config["providers"].as_array_mut().unwrap().push(anthropic);
        let target = json!({"provider": "anthropic", "upstreamModel": "claude", "weight": 1});
        config["models"][0]["routes"].as_array_mut().unwrap().push(target);
    })
    .await;
    for _ in 0..2 {
        let (_client, answer, exchange) =
            crate::dialects::begin(&mut gateway, "/v1/messages/count_tokens", &prompt()).await;
        exchange.answer(b"{\"input_tokens\":9}").await;
        let answer = crate::client::read(answer).await.unwrap();
        assert_eq!(number(&answer, "input_tokens"), 9);
        assert!(!answer.headers.contains_key(ESTIMATED));
    }
}

fn input() -> Value {
    json!({"model": MODEL, "instructions": "Be kind.", "input": "word ".repeat(100),
        "tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function", "name": "f"}]}]})
}

const INPUT_TOKENS: &str = "/v1/responses/input_tokens";

#[tokio::test]
async fn a_prompt_of_responses_is_estimated_where_the_provider_counts_none() {
    for kind in ["anthropic", "gemini", "bedrock", "vertex_ai"] {
        let gateway = Gateway::with(typed(kind)).await;
        let answer = count(&gateway, INPUT_TOKENS, &input()).await;
        assert_eq!(answer.status.as_u16(), 200, "{kind}");
        assert_eq!(answer.headers[ESTIMATED], "true", "{kind}");
        let document: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(document["object"], "response.input_tokens");
        let tokens = number(&answer, "input_tokens");
        assert!((120..200).contains(&tokens), "{kind}: {tokens}");
        assert_eq!(gateway.upstream.requests(), 0, "{kind}");
    }
    let translated = Gateway::with(|config| config["providers"][0]["responses"] = "Translated".into()).await;
    let answer = count(&translated, INPUT_TOKENS, &input()).await;
    assert_eq!(answer.headers[ESTIMATED], "true");
    assert_eq!(translated.upstream.requests(), 0);
}

#[tokio::test]
async fn a_prompt_of_responses_is_counted_by_a_provider_of_openais_api() {
    let mut gateway = Gateway::with(|config| {
        config["tenants"][0]["limits"] = json!({"tokensPerDay": 1});
    })
    .await;
    let (_client, answer, exchange) = crate::dialects::begin(&mut gateway, INPUT_TOKENS, &input()).await;
    assert!(
        exchange
            .head
            .starts_with("POST /v1/responses/input_tokens HTTP/1.1\r\n"),
        "{}",
        exchange.head
    );
    let counted = br#"{"object":"response.input_tokens","input_tokens":9}"#;
    exchange.answer(counted).await;
    let answer = crate::client::read(answer).await.unwrap();
    assert_eq!(answer.body, counted);
    assert!(!answer.headers.contains_key(ESTIMATED));
    let admitted = admission(&gateway, id(&answer)).await;
    assert_eq!(admitted["endpoint"], INPUT_TOKENS);
}

#[tokio::test]
async fn a_provider_of_openais_api_that_has_no_such_path_becomes_an_estimate() {
    for (status, said, is_estimated) in [
        (404, r#"{"detail":"Not Found"}"#, true),
        (405, r#"{"detail":"Method Not Allowed"}"#, true),
        (
            404,
            r#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#,
            false,
        ),
        (400, r#"{"error":{"message":"input"}}"#, false),
    ] {
        let mut gateway = Gateway::with(|_| ()).await;
        let (_client, answer, mut exchange) =
            crate::dialects::begin(&mut gateway, INPUT_TOKENS, &input()).await;
        let length = said.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        exchange.send(format!("{head}{said}").as_bytes()).await;
        let answer = crate::client::read(answer).await.unwrap();
        assert_eq!(answer.headers.contains_key(ESTIMATED), is_estimated, "{said}");
        let expected = if is_estimated { 200 } else { status };
        assert_eq!(answer.status.as_u16(), expected, "{said}");
    }
}
