//! The header fields in which clients send their keys.

use http::Request;
use serde_json::json;

use crate::client::{Client, read};
use crate::gateway::{ACME, GLOBEX, Gateway, PATIENCE, chat};

const NAMES: [&str; 4] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];

/// Returns a header field with a key.
fn field(name: &'static str, key: &str) -> (&'static str, String) {
    match name {
        "authorization" => (name, format!("Bearer {key}")),
        _ => (name, key.to_owned()),
    }
}

/// Returns a request for a chat completion with these fields and no other key.
fn post(fields: &[(&str, String)]) -> Request<()> {
    let request = Request::post("https://gateway.test/v1/chat/completions");
    let with = |request: http::request::Builder, (name, value): &(&str, String)| request.header(*name, value);
    fields.iter().fold(request, with).body(()).unwrap()
}

/// Returns all records with an id.
async fn records(gateway: &Gateway, id: &str) -> String {
    let (worker, id) = (std::sync::Arc::clone(&gateway.worker), id.to_owned());
    let evidence = tokio::task::spawn_blocking(move || worker.prove(&id, PATIENCE));
    let evidence = evidence.await.unwrap().unwrap();
    evidence.iter().map(|record| record.record.as_str()).collect()
}

#[tokio::test]
async fn a_key_counts_in_each_field_and_neither_goes_upstream_nor_into_a_record() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    let every: Vec<_> = NAMES.map(|name| field(name, GLOBEX)).to_vec();
    for fields in NAMES
        .map(|name| vec![field(name, GLOBEX)])
        .into_iter()
        .chain([every])
    {
        let answer = client.send(post(&fields), &body).await;
        let exchange = gateway.upstream.exchange().await;
        let head = exchange.head.to_ascii_lowercase();
        assert!(
            !NAMES.iter().any(|name| head.contains(&format!("{name}:"))),
            "{head}"
        );
        assert!(!head.contains(GLOBEX), "{head}");
        exchange.answer(b"{}").await;
        let answer = read(answer).await.unwrap();
        assert_eq!(answer.status, 200, "{fields:?}");
        let records = records(&gateway, answer.headers["x-request-id"].to_str().unwrap()).await;
        assert!(records.contains(r#""tenant":"globex""#), "{records}");
        assert!(!records.contains(GLOBEX), "{records}");
    }
}

#[tokio::test]
async fn two_different_keys_are_refused_whichever_fields_hold_them_and_neither_is_told() {
    let gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    for (place, first) in NAMES.into_iter().enumerate() {
        for second in NAMES.into_iter().skip(place + 1) {
            let fields = [field(first, ACME), field(second, GLOBEX)];
            let answer = client.exchange(post(&fields), &body).await;
            assert_eq!(
                (answer.status.as_u16(), &*answer.code()),
                (400, "ambiguous_api_key")
            );
            let told = String::from_utf8(answer.body).unwrap();
            assert!(
                told.to_ascii_lowercase()
                    .contains(&format!("{first} and {second}")),
                "{told}"
            );
            let records = records(&gateway, answer.headers["x-request-id"].to_str().unwrap()).await;
            assert!(records.contains("ambiguous_api_key"), "{records}");
            for key in [ACME, GLOBEX] {
                assert!(!told.contains(key) && !records.contains(key), "{told} {records}");
            }
        }
    }
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn a_field_that_holds_no_key_or_stands_there_twice_is_refused_beside_a_good_one() {
    let gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    for (place, name) in NAMES.into_iter().enumerate() {
        let good = field(NAMES[(place + 1) % NAMES.len()], ACME);
        let wrong = client
            .exchange(post(&[good.clone(), (name, "a b".into())]), &body)
            .await;
        assert_eq!(
            (wrong.status.as_u16(), &*wrong.code()),
            (401, "malformed_api_key"),
            "{name}"
        );
        let twice = [good, field(name, ACME), field(name, ACME)];
        let twice = client.exchange(post(&twice), &body).await;
        assert_eq!(
            (twice.status.as_u16(), &*twice.code()),
            (400, "duplicate_header"),
            "{name}"
        );
    }
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn a_web_page_may_send_its_key_in_any_of_the_fields() {
    let page = "https://app.example.com";
    let gateway =
        Gateway::with(|config| config["cors"] = json!({"allowedOrigins": [page], "maxAgeSeconds": 600}))
            .await;
    let mut client = Client::connect(&gateway).await;
    let preflight = Request::options("https://gateway.test/v1/chat/completions")
        .header("origin", page)
        .header("access-control-request-method", "POST")
        .body(());
    let answer = client.exchange(preflight.unwrap(), b"").await;
    assert_eq!(answer.status, 204);
    let allowed = answer.headers["access-control-allow-headers"].to_str().unwrap();
    for name in NAMES {
        assert!(
            allowed.split(", ").any(|allowed| allowed == name),
            "{name} in {allowed}"
        );
    }
}

#[tokio::test]
async fn a_web_page_may_send_what_the_clients_of_providers_send_and_read_whether_to_try_again() {
    let page = "https://app.example.com";
    let gateway =
        Gateway::with(|config| config["cors"] = json!({"allowedOrigins": [page], "maxAgeSeconds": 600}))
            .await;
    let mut client = Client::connect(&gateway).await;
    // Fields of openai-node's stream helpers, Anthropic's library for browsers, and agents.
    let asked = "authorization,content-type,x-stainless-helper-method,x-stainless-retry-count,openai-organization,\
                 openai-project,anthropic-version,anthropic-dangerous-direct-browser-access,x-stainless-helper,\
                 x-stainless-async,x-claude-code-session-id,session-id,traceparent";
    let preflight = Request::options("https://gateway.test/v1/chat/completions")
        .header("origin", page)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", asked)
        .body(());
    let answer = client.exchange(preflight.unwrap(), b"").await;
    let allowed = answer.headers["access-control-allow-headers"].to_str().unwrap();
    for name in asked.split(',') {
        assert!(allowed.split(", ").any(|allowed| allowed == name), "{name}");
    }
    let refused = Request::post("https://gateway.test/v1/chat/completions")
        .header("origin", page)
        .body(());
    let answer = client.exchange(refused.unwrap(), b"").await;
    let exposed = answer.headers["access-control-expose-headers"].to_str().unwrap();
    assert!(
        exposed.split(", ").any(|name| name == "x-should-retry"),
        "{exposed}"
    );
}
