//! Azure deployments, at a provider and in clients' requests.

use http::Request;
use serde_json::{Value, json};

use crate::client::{Answer, Client, read};
use crate::gateway::{ACME, Gateway, MODEL};
use crate::relayed::{completion, id};
use crate::upstream::{Exchange, Upstream};

/// Azure's error for a prompt that its filter rejects (azure-rest-api-specs, 2024-10-21).
const FILTERED: &str = r#"{"error":{"message":"The response was filtered","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true,"severity":"high"}}}}}"#;
/// The first event of a stream, with the filter's results for the prompt.
const OF_PROMPT: &str = "data: {\"choices\":[],\"created\":0,\"id\":\"\",\"model\":\"\",\"object\":\"\",\"prompt_filter_results\":[{\"prompt_index\":0,\"content_filter_results\":{\"hate\":{\"filtered\":false,\"severity\":\"safe\"}}}]}\n\n";

/// A gateway in front of Azure deployments, whose other models start with `any-`.
async fn gateway() -> Gateway {
    gateway_with(|_| ()).await
}

async fn gateway_with(change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|config| {
        let azure = &mut config["providers"][0];
        azure["type"] = "AzureOpenAI".into();
        azure["apiVersion"] = "2024-10-21".into();
        azure["apiKey"] = "provider-key".into();
        config["models"][0]["routes"][0]["upstreamModel"] = "my gpt/4".into();
        config["models"].as_array_mut().unwrap().push(json!({
            "name": "any-*", "routes": [{"provider": "stand-in", "upstreamModel": "*", "weight": 1}],
            "maxOutputTokens": 100,
        }));
        change(config);
    })
    .await
}

fn post(path: &str, length: usize) -> Request<()> {
    Request::post(format!("https://gateway.test{path}"))
        .header("api-key", ACME)
        .header("content-length", length)
        .body(())
        .unwrap()
}

async fn begin(
    gateway: &mut Gateway,
    path: &str,
    document: &Value,
) -> (Client, h2::client::ResponseFuture, Exchange) {
    let body = document.to_string().into_bytes();
    let mut client = Client::connect(gateway).await;
    let answer = client.send(post(path, body.len()), &body).await;
    let exchange = gateway.upstream.exchange().await;
    (client, answer, exchange)
}

async fn told(gateway: &Gateway, path: &str, document: &Value) -> Answer {
    let body = document.to_string().into_bytes();
    Client::connect(gateway)
        .await
        .exchange(post(path, body.len()), &body)
        .await
}

fn chat(model: &str, stream: bool) -> Value {
    json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": "Hi"}]})
}

#[tokio::test]
async fn the_deployment_stands_in_the_path_of_each_endpoint_and_the_version_behind_it() {
    let mut gateway = gateway().await;
    for (path, document, sent) in [
        (
            "/v1/chat/completions",
            chat(MODEL, false),
            "/deployments/my%20gpt%2F4/chat/completions",
        ),
        (
            "/v1/completions",
            json!({"model": MODEL, "prompt": "Hi"}),
            "/deployments/my%20gpt%2F4/completions",
        ),
        (
            "/v1/embeddings",
            json!({"model": MODEL, "input": "Hi"}),
            "/deployments/my%20gpt%2F4/embeddings",
        ),
        (
            "/v1/images/generations",
            json!({"model": MODEL, "prompt": "Hi"}),
            "/deployments/my%20gpt%2F4/images/generations",
        ),
        (
            "/v1/audio/speech",
            json!({"model": MODEL, "input": "Hi", "voice": "v"}),
            "/deployments/my%20gpt%2F4/audio/speech",
        ),
        (
            "/v1/responses",
            json!({"model": MODEL, "input": "Hi"}),
            "/responses",
        ),
        (
            "/v1/chat/completions",
            chat("any-m", false),
            "/deployments/m/chat/completions",
        ),
    ] {
        let (_client, answer, exchange) = begin(&mut gateway, path, &document).await;
        let line = format!("POST /v1{sent}?api-version=2024-10-21 HTTP/1.1\r\n");
        assert!(exchange.head.starts_with(&line), "{}", exchange.head);
        assert!(exchange.head.contains("\r\napi-key: provider-key\r\n"));
        exchange.answer(b"{\"choices\":[]}").await;
        assert_eq!(read(answer).await.unwrap().status, 200);
    }
    let refused = told(
        &gateway,
        "/v1/moderations",
        &json!({"model": MODEL, "input": "Hi"}),
    )
    .await;
    assert_eq!(refused.code(), "endpoint_not_supported_by_model");
}

#[tokio::test]
async fn no_name_of_a_model_is_a_step_in_the_path() {
    let gateway = gateway().await;
    for name in ["any-.", "any-..", "any-..."] {
        let refused = told(&gateway, "/v1/chat/completions", &chat(name, false)).await;
        assert_eq!(refused.code(), "model_not_found", "{name}");
    }
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn clients_of_azure_name_the_model_in_the_path_and_reach_what_others_do() {
    let mut gateway = gateway().await;
    for path in [
        format!("/openai/deployments/{MODEL}/chat/completions?api-version=2024-10-21"),
        "/openai/v1/chat/completions".to_owned(),
    ] {
        let (_client, answer, exchange) = begin(&mut gateway, &path, &chat(MODEL, false)).await;
        exchange.answer(b"{\"choices\":[]}").await;
        let answer = read(answer).await.unwrap();
        let record = crate::dialects::admission(&gateway, id(&answer)).await;
        assert_eq!(
            (&record["endpoint"], &record["model"]),
            (&json!("/v1/chat/completions"), &json!(MODEL))
        );
    }
    let path = "/openai/deployments/other/chat/completions";
    for (document, code) in [
        (chat(MODEL, false), "ambiguous_model"),
        (json!({"messages": []}), "missing_model"),
    ] {
        let refused = told(&gateway, path, &document).await;
        assert_eq!((refused.status.as_u16(), refused.code().as_str()), (400, code));
    }
}

#[tokio::test]
async fn a_prompt_that_the_filter_holds_back_goes_to_no_other_provider() {
    let other = Upstream::start().await;
    let url = other.url().to_owned();
    let mut gateway = gateway_with(|config| {
        let mut provider = config["providers"][0].clone();
        provider["name"] = "other".into();
        provider["baseURL"] = url.into();
        config["providers"].as_array_mut().unwrap().push(provider);
        let targets = config["models"][0]["routes"].as_array_mut().unwrap();
        targets.push(json!({"provider": "other", "upstreamModel": "m", "weight": 0}));
        config["models"][0]["fallbackOn"] = json!([
            "Unreachable",
            "RateLimited",
            "Overloaded",
            "Timeout",
            "ServerError",
            "Unauthorized",
            "ContextLength"
        ]);
    })
    .await;
    let (_client, answer, mut exchange) =
        begin(&mut gateway, "/v1/chat/completions", &chat(MODEL, false)).await;
    let head = format!(
        "HTTP/1.1 400 No\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        FILTERED.len()
    );
    exchange.send(head.as_bytes()).await;
    exchange.send(FILTERED.as_bytes()).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (400, FILTERED.as_bytes())
    );
    assert_eq!(other.requests(), 0);
}

#[tokio::test]
async fn what_the_filter_says_of_a_prompt_reaches_the_client_before_any_choice() {
    let mut gateway = gateway().await;
    let (_client, answer, mut exchange) =
        begin(&mut gateway, "/v1/chat/completions", &chat(MODEL, true)).await;
    exchange.begin_events().await;
    let text =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1,\"total_tokens\":4}}\n\n";
    for event in [OF_PROMPT, text, usage, "data: [DONE]\n\n"] {
        exchange.send_chunk(event).await;
    }
    exchange.send(b"0\r\n\r\n").await;
    let answer = read(answer).await.unwrap();
    // The client's stream has no usage, which only the gateway requested.
    let expected = [OF_PROMPT, text, "data: [DONE]\n\n"].concat();
    assert_eq!(String::from_utf8_lossy(&answer.body), expected);
    let record = completion(&gateway, id(&answer)).await;
    assert_eq!(
        (&record["outcome"], &record["usage"]["prompt_tokens"]),
        (&json!("complete"), &json!(3))
    );
}

#[tokio::test]
async fn a_client_of_anthropics_is_told_nothing_of_the_filters_event_and_gets_its_text() {
    let mut gateway = gateway().await;
    let message = json!({"model": MODEL, "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "Hi"}]});
    let (_client, answer, mut exchange) = begin(&mut gateway, "/v1/messages", &message).await;
    assert!(
        exchange
            .head
            .starts_with("POST /v1/deployments/my%20gpt%2F4/chat/completions?api-version=2024-10-21 ")
    );
    exchange.begin_events().await;
    let text = "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    for event in [OF_PROMPT, text, "data: [DONE]\n\n"] {
        exchange.send_chunk(event).await;
    }
    exchange.send(b"0\r\n\r\n").await;
    let answer = read(answer).await.unwrap();
    let body = String::from_utf8_lossy(&answer.body);
    assert!(
        body.contains("\"text\":\"Hi\"") && body.contains("message_stop"),
        "{body}"
    );
}
