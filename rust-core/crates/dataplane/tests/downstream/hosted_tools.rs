//! Tools that the provider runs itself: removed, refused or allowed by the tenant's plan.

use http::Request;
use serde_json::{Value, json};

use crate::client::{Client, ask, read};
use crate::dialects::{admission, begin, post};
use crate::gateway::{ACME, Gateway, MODEL};
use crate::relayed::{completion, id};

/// Returns the first request of Codex with its defaults.
fn of_codex() -> Value {
    json!({
        "model": MODEL, "stream": false, "store": false, "input": [{"role": "user", "content": "list the files"}],
        "tools": [
            {"type": "function", "name": "run", "parameters": {"type": "object", "properties": {}}},
            {"type": "namespace", "name": "helpers", "tools": [{"type": "function", "name": "spawn"}]},
            {"type": "web_search", "external_web_access": false},
        ],
        "include": ["reasoning.encrypted_content"],
    })
}

fn kinds(exchange: &[u8]) -> Vec<String> {
    let sent: Value = serde_json::from_slice(exchange).unwrap();
    let tools = sent["tools"].as_array().unwrap().iter();
    tools
        .map(|tool| tool["type"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn a_hosted_tool_beside_others_is_left_out_and_named() {
    let mut gateway = Gateway::with(|_| ()).await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/responses", &of_codex()).await;
    assert_eq!(kinds(&exchange.body), ["function", "namespace"]);
    exchange.answer(b"{}").await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["x-proofgate-dropped-tools"], "web_search");
    let record = admission(&gateway, id(&answer)).await;
    assert_eq!(record["dropped"], json!(["tools"]));
}

#[tokio::test]
async fn what_a_rule_redacts_stays_redacted_where_a_tool_is_left_out() {
    let mut gateway = Gateway::with(|config| {
        config["policy"] = json!({"mode": "Enforce", "rules": [{"id": "word", "reason": "a word",
            "target": "Request", "literals": ["johndoe"], "score": 1, "action": "Redact"}]});
    })
    .await;
    let mut body = of_codex();
    body["input"] = json!([{"role": "user", "content": "I am johndoe", "johndoe": 1, "JohnDoe": 2}]);
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/responses", &body).await;
    assert_eq!(kinds(&exchange.body), ["function", "namespace"]);
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["input"][0]["content"], "I am [redacted:word]");
    assert!(
        !exchange
            .body
            .to_ascii_lowercase()
            .windows(7)
            .any(|part| part == b"johndoe")
    );
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_hosted_tool_that_the_tenant_may_use_passes_with_every_byte() {
    let mut gateway = Gateway::with(|config| {
        config["tenants"][0]["hostedTools"] = json!({"allow": ["web_search"]});
    })
    .await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/responses", &of_codex()).await;
    assert_eq!(kinds(&exchange.body), ["function", "namespace", "web_search"]);
    exchange.answer(b"{}").await;
    let answer = read(answer).await.unwrap();
    assert!(!answer.headers.contains_key("x-proofgate-dropped-tools"));
}

/// A search of the web with Anthropic, which the plan allows, under a budget of ten dollars a day.
async fn with_budget(tools: Value) -> Gateway {
    Gateway::with(|config| {
        config["providers"][0]["type"] = json!("Anthropic");
        config["tenants"][0]["hostedTools"] =
            json!({"allow": ["web_search", "code_execution"], "maxCalls": 4});
        config["tenants"][0]["limits"] = json!({"dollarsPerDay": "10"});
        // Dollars per million tokens, which are 1000 and 2000 nanodollars per token.
        config["prices"] = json!([{"model": MODEL, "effectiveFrom": "1970-01-01", "input": "1", "output": "2",
            "maxInputTokens": 100_000, "tools": tools}]);
    })
    .await
}

fn search() -> Value {
    json!({"model": MODEL, "max_tokens": 10, "messages": [{"role": "user", "content": "what is new?"}],
        "tools": [{"name": "run", "input_schema": {"type": "object"}},
            {"type": "web_search_20250305", "name": "web_search"}, {"type": "mcp_toolset", "mcp_server_name": "a"}]})
}

/// Returns the status and the document of a refusal.
async fn refusal(gateway: &Gateway, path: &str, body: &Value) -> (u16, Value) {
    let (request, body) = post(path, body);
    let mut client = Client::connect(gateway).await;
    let refused = client.exchange(request, &body).await;
    let document = serde_json::from_slice(&refused.body).unwrap();
    (refused.status.as_u16(), document)
}

#[tokio::test]
async fn a_search_under_a_budget_is_bounded_counted_and_charged() {
    let mut gateway = with_budget(json!({"web_search": "0.01"})).await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/messages", &search()).await;
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(
        sent["tools"],
        json!([{"name": "run", "input_schema": {"type": "object"}},
            {"max_uses": 4, "type": "web_search_20250305", "name": "web_search"}]),
        "what is not allowed is left out, and what is allowed bounded"
    );
    let told = json!({"id": "m", "type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": 900,
        "output_tokens": 7, "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0}}});
    exchange.answer(told.to_string().as_bytes()).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["x-proofgate-dropped-tools"], "mcp_toolset");
    let opened = admission(&gateway, id(&answer)).await;
    // Four searches, five prompts of the model's maximum length, and the response.
    assert_eq!(
        opened["reserved_nanodollars"],
        4 * 10_000_000 + 5 * 100_000 * 1000_u64 + 10 * 2000
    );
    let ended = completion(&gateway, id(&answer)).await;
    assert_eq!(ended["usage"]["web_search_requests"], 2);
    assert_eq!(ended["usage"].get("web_fetch_requests"), None);
    let cost = 2 * 10_000_000 + 900 * 1000 + 7 * 2000_u64;
    assert_eq!(ended["cost_nanodollars"], cost);
    let mut client = Client::connect(&gateway).await;
    let usage = client.exchange(ask("GET", "/v1/usage"), b"").await;
    let usage: Value = serde_json::from_slice(&usage.body).unwrap();
    assert_eq!(usage["tenant"]["dollars_per_day"]["used"], "0.020914");
}

#[tokio::test]
async fn the_searches_of_a_response_are_bounded_together_and_charged_as_told() {
    let mut gateway = Gateway::with(|config| {
        config["tenants"][0]["hostedTools"] =
            json!({"allow": ["web_search"], "maxCalls": 3, "tokensPerCall": 1000});
        config["tenants"][0]["limits"] = json!({"dollarsPerDay": "10"});
        config["prices"] = json!([{"model": MODEL, "effectiveFrom": "1970-01-01", "input": "1", "output": "2",
            "maxInputTokens": 100_000, "tools": {"web_search": "0.01"}}]);
    })
    .await;
    let usage = json!({"input_tokens": 900, "output_tokens": 7});
    for (told, searches) in [
        (json!({"web_search": {"num_requests": 2}}), 2),
        (json!({"web_search": {"num_requests": 0}}), 0),
        // No number is reported, so all allowed calls count.
        (json!(null), 3),
    ] {
        let (_client, answer, exchange) = begin(&mut gateway, "/v1/responses", &of_codex()).await;
        let (sent, body) = (String::from_utf8_lossy(&exchange.body), of_codex().to_string());
        assert_eq!(sent, body.replacen('{', "{\"max_tool_calls\":3,", 1));
        let document =
            json!({"id": "r", "object": "response", "output": [], "tool_usage": told, "usage": usage});
        exchange.answer(document.to_string().as_bytes()).await;
        let answer = read(answer).await.unwrap();
        let opened = admission(&gateway, id(&answer)).await;
        // What the request has at most, four times, and what three calls bring into the rounds behind them.
        let own = (body.len() + 1024) as u64;
        assert_eq!(
            opened["reserved_nanodollars"],
            3 * 10_000_000 + (4 * own + 6 * 1000) * 1000 + 100 * 2000
        );
        let ended = completion(&gateway, id(&answer)).await;
        let cost = searches * 10_000_000 + 900 * 1000 + 7 * 2000_u64;
        assert_eq!(ended["cost_nanodollars"], cost, "{told}");
        let counted = ended["usage"].get("web_search_requests").cloned();
        assert_eq!(
            counted,
            (told.is_object() && searches > 0).then(|| json!(searches))
        );
    }
}

#[tokio::test]
async fn a_tool_without_a_price_is_refused_under_a_budget() {
    let gateway = with_budget(json!({"web_search": "0.01"})).await;
    let mut body = search();
    body["tools"][1] = json!({"type": "code_execution_20250825", "name": "code_execution"});
    let refused = refusal(&gateway, "/v1/messages", &body).await;
    assert_eq!(refused.0, 400);
    let message = refused.1["error"]["message"].as_str().unwrap();
    for part in ["code_execution_20250825", MODEL, "prices[].tools"] {
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn a_search_that_alone_passes_its_budget_is_told_what_bounds_it() {
    let gateway = with_budget(json!({"web_search": "0.01"})).await;
    let mut body = search();
    body["tools"][1]["max_uses"] = json!(1000);
    let refused = refusal(&gateway, "/v1/messages", &body).await;
    assert_eq!(refused.0, 429);
    let message = refused.1["error"]["message"].as_str().unwrap();
    for part in ["1000 times", "max_uses", "hostedTools.tokensPerCall"] {
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn a_tool_that_a_translation_leaves_out_costs_nothing() {
    let mut gateway = with_budget(json!({})).await;
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/responses", &of_codex()).await;
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["tools"].as_array().unwrap().len(), 2, "{sent}");
    let told = json!({"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "a"}], "usage": {"input_tokens": 9, "output_tokens": 7}});
    exchange.answer(told.to_string().as_bytes()).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.status, 200);
    let dropped = answer.headers["x-proofgate-dropped-fields"].to_str().unwrap();
    assert!(
        !dropped.contains("max_tool_calls"),
        "nothing is named that the client has not written: {dropped}"
    );
    let ended = completion(&gateway, id(&answer)).await;
    assert_eq!(ended["cost_nanodollars"], 9 * 1000 + 7 * 2000);
}

#[tokio::test]
async fn a_search_beside_a_chat_is_left_out_unless_the_plan_allows_it() {
    let mut gateway = Gateway::with(|_| ()).await;
    let body = json!({"model": MODEL, "messages": [], "web_search_options": {"search_context_size": "low"}});
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &body).await;
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent, json!({"model": MODEL, "messages": []}));
    exchange.answer(b"{}").await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.headers["x-proofgate-dropped-tools"], "web_search_options");
    let record = admission(&gateway, id(&answer)).await;
    assert_eq!(record["dropped"], json!(["web_search_options"]));
    gateway.reload(|config| config["tenants"][0]["hostedTools"] = json!({"allow": ["web_search_options"]}));
    let (_client, answer, exchange) = begin(&mut gateway, "/v1/chat/completions", &body).await;
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent, body);
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_compressed_body_is_a_415_that_says_what_is_read() {
    let gateway = Gateway::with(|_| ()).await;
    let mut client = Client::connect(&gateway).await;
    for (coding, status) in [("gzip", 415), ("identity, ZSTD", 415)] {
        let body = b"\x1f\x8b\x08 no JSON";
        let request = Request::post("https://gateway.test/v1/chat/completions")
            .header("authorization", format!("Bearer {ACME}"))
            .header("content-encoding", coding)
            .header("content-length", body.len())
            .body(())
            .unwrap();
        let answer = client.exchange(request, body).await;
        let error: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer.status.as_u16(), status, "{coding}");
        assert_eq!(error["error"]["code"], "content_coding_not_supported");
        assert_eq!(answer.headers["accept-encoding"], "identity");
    }
}
