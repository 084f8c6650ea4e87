//! Errors of providers: in the client's dialect they pass as they came, and what speaks of the gateway's key goes to its operator.

use http::Request;
use serde_json::{Value, json};

use crate::client::{Client, read};
use crate::gateway::{ACME, Gateway, MODEL};
use crate::upstream::Upstream;

const CLAUDE: &str = "claude";

async fn gateway(change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|document| {
        let mut anthropic = document["providers"][0].clone();
        anthropic["name"] = json!("anthropic");
        anthropic["type"] = json!("Anthropic");
        document["providers"].as_array_mut().unwrap().push(anthropic);
        let mut model = document["models"][0].clone();
        model["name"] = json!(CLAUDE);
        model["routes"][0]["provider"] = json!("anthropic");
        document["models"].as_array_mut().unwrap().push(model);
        change(document);
    })
    .await
}

fn request(path: &str, model: &str) -> (Request<()>, Vec<u8>) {
    let body = json!({"model": model, "max_tokens": 9, "logit_bias": {"1": 2}, "messages": [{"role": "user", "content": "hi"}]});
    let body = body.to_string().into_bytes();
    let request = Request::post(format!("https://gateway.test{path}"))
        .header("authorization", format!("Bearer {ACME}"))
        .header("anthropic-version", "2023-06-01")
        .header("content-length", body.len())
        .body(())
        .unwrap();
    (request, body)
}

fn answer(status: u16, fields: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status} No\r\nContent-Type: application/json\r\n{fields}Content-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

const ERRORS: [(&str, &str, &str); 2] = [
    (
        "/v1/chat/completions",
        MODEL,
        "{\"error\": {\"message\": \"This model's maximum context length is 8192 tokens.\",\n  \"type\": \"invalid_request_error\", \"param\": \"messages\", \"code\": \"context_length_exceeded\", \"new\": 1}}",
    ),
    (
        "/v1/messages",
        CLAUDE,
        "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"},\"request_id\":\"req_1\"}",
    ),
];

#[tokio::test]
async fn in_the_clients_dialect_status_and_body_of_every_error_pass_as_they_came() {
    let mut gateway = gateway(|_| ()).await;
    let mut client = Client::connect(&gateway).await;
    for (path, model, body) in ERRORS {
        for status in [400, 402, 404, 409, 413, 422, 424, 429, 500, 502, 503, 504, 529] {
            let (request, asked) = request(path, model);
            let sent = client.send(request, &asked).await;
            let mut exchange = gateway.upstream.exchange().await;
            exchange
                .send(&answer(status, "x-should-retry: true\r\n", body))
                .await;
            let told = read(sent).await.unwrap();
            assert_eq!(told.status.as_u16(), status);
            assert_eq!(String::from_utf8(told.body).unwrap(), body);
            assert_eq!(told.headers["x-should-retry"], "true");
        }
    }
}

#[tokio::test]
async fn an_error_that_was_set_aside_for_another_provider_passes_when_that_cannot_take_the_request() {
    let other = Upstream::start().await;
    let url = other.url().to_owned();
    let mut gateway = gateway(|document| {
        // A field that the other dialect does not have: `logit_bias`.
        document["providers"][1]["baseURL"] = json!(url);
        let target = json!({"provider": "anthropic", "upstreamModel": "c", "weight": 0});
        document["models"][0]["routes"]
            .as_array_mut()
            .unwrap()
            .push(target);
        document["models"][0]["fallbackOn"] = json!(["RateLimited", "Overloaded", "ContextLength"]);
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let (_, _, body) = ERRORS[0];
    // The last response has a Retry-After.
    for (status, fields) in [(400, ""), (503, ""), (429, "Retry-After: 7\r\n")] {
        let (request, asked) = request("/v1/chat/completions", MODEL);
        let sent = client.send(request, &asked).await;
        let mut exchange = gateway.upstream.exchange().await;
        exchange.send(&answer(status, fields, body)).await;
        let told = read(sent).await.unwrap();
        assert_eq!(told.status.as_u16(), status);
        assert_eq!(String::from_utf8(told.body).unwrap(), body);
        assert_eq!(told.headers.contains_key("retry-after"), status == 429);
        assert_eq!(told.headers.get("x-proofgate-attempts"), None);
    }
    assert_eq!(other.requests(), 0);
}

#[tokio::test]
async fn a_provider_that_refuses_the_gateways_key_or_the_model_is_counted_and_the_client_learns_no_secret() {
    let mut gateway = gateway(|_| ()).await;
    let mut client = Client::connect(&gateway).await;
    for (path, model, provider) in [
        ("/v1/chat/completions", MODEL, "stand-in"),
        ("/v1/messages", CLAUDE, "anthropic"),
    ] {
        for (status, times) in [(401, 1), (403, 2)] {
            for _ in 0..times {
                let (request, asked) = request(path, model);
                let sent = client.send(request, &asked).await;
                let mut exchange = gateway.upstream.exchange().await;
                let said =
                    r#"{"error":{"message":"You have no access with sk-secret-of-the-gateway-0123456789."}}"#;
                exchange.send(&answer(status, "", said)).await;
                let told = read(sent).await.unwrap();
                let code = match path {
                    "/v1/messages" => told.status.as_u16().to_string(),
                    _ => told.code(),
                };
                assert!(code == "502" || code == "upstream_auth_failed", "{code}");
                assert!(!String::from_utf8(told.body).unwrap().contains("secret"));
            }
            let series =
                format!("proofgate_provider_refusals_total{{provider=\"{provider}\",status=\"{status}\"}}");
            assert_eq!(gateway.metric(&series), times, "{series}");
        }
    }
}
