//! Google's own clients: the model in the path, a body that is forwarded byte for byte, and
//! Google's formats of responses and errors.

use http::Request;
use serde_json::{Value, json};

use crate::client::{Client, read};
use crate::gateway::{ACME, Gateway, MODEL};
use crate::relayed::{completion, id};
use crate::upstream::Exchange;

const GEMINI: &str = "team/gemini";

async fn gateway_with(change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|config| {
        let mut gemini = config["providers"][0].clone();
        gemini["name"] = "gemini".into();
        gemini["type"] = "Gemini".into();
        gemini["apiKey"] = "provider-key".into();
        config["providers"].as_array_mut().unwrap().push(gemini);
        let model = json!({
            "name": GEMINI, "routes": [{"provider": "gemini", "upstreamModel": "gemini/3:x", "weight": 1}],
            "maxOutputTokens": 100,
        });
        config["models"].as_array_mut().unwrap().push(model);
        change(config);
    })
    .await
}

fn request(method: &str, path: &str, length: Option<usize>) -> Request<()> {
    let mut request = Request::builder()
        .method(method)
        .uri(format!("https://gateway.test{path}"))
        .header("x-goog-api-key", ACME)
        .header("x-goog-api-client", "google-genai-sdk/3.4.0");
    if let Some(length) = length {
        request = request.header("content-length", length);
    }
    request.body(()).unwrap()
}

fn prompt() -> Value {
    json!({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "generationConfig": {"maxOutputTokens": 5}})
}

async fn begin(
    gateway: &mut Gateway,
    path: &str,
    body: &[u8],
) -> (Client, h2::client::ResponseFuture, Exchange) {
    let mut client = Client::connect(gateway).await;
    let answer = client.send(request("POST", path, Some(body.len())), body).await;
    let exchange = gateway.upstream.exchange().await;
    (client, answer, exchange)
}

/// Returns the status and the document of the response to a request that is not forwarded.
async fn told(gateway: &Gateway, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
    let mut client = Client::connect(gateway).await;
    let length = (method == "POST").then_some(body.len());
    let answer = client.exchange(request(method, path, length), body).await;
    let document = serde_json::from_slice(&answer.body).unwrap();
    (answer.status.as_u16(), document)
}

fn generated(text: &str, more: &str) -> String {
    format!(
        r#"{{"candidates":[{{"content":{{"parts":[{{"text":"{text}"}}],"role":"model"}}{more}}}],"usageMetadata":{{"promptTokenCount":9,"candidatesTokenCount":2,"thoughtsTokenCount":3,"totalTokenCount":14}}}}"#
    )
}

const FINISHED: &str = ",\"finishReason\":\"STOP\"";

#[tokio::test]
async fn a_request_goes_on_byte_for_byte_with_the_models_upstream_name_in_its_path() {
    let mut gateway = gateway_with(|_| ()).await;
    // Written in an unusual JSON format.
    let body = b"{ \"contents\" : [{\"parts\":[{\"text\":\"H\\u0069\"}]}],\n\"labels\":{} }";
    for (version, model) in [("v1", "team%2Fgemini"), ("v1beta", "team/gemini")] {
        let path = format!("/{version}/models/{model}:generateContent");
        let (_client, answer, exchange) = begin(&mut gateway, &path, body).await;
        let head = &exchange.head;
        assert!(
            head.starts_with("POST /v1/models/gemini%2F3%3Ax:generateContent HTTP/1.1\r\n"),
            "{head}"
        );
        let head = head.to_ascii_lowercase();
        assert!(head.contains("\r\nx-goog-api-key: provider-key\r\n") && !head.contains("acme"));
        assert_eq!(exchange.body, body);
        let sent = generated("Hello", FINISHED);
        exchange.answer(sent.as_bytes()).await;
        let answer = read(answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer.body), sent);
        let record = completion(&gateway, id(&answer)).await;
        assert_eq!(record["usage"]["prompt_tokens"], 9);
        assert_eq!(record["usage"]["completion_tokens"], 5);
    }
}

#[tokio::test]
async fn the_admission_names_the_model_the_stream_and_the_endpoint_and_not_what_stood_in_the_path() {
    let mut gateway = gateway_with(|_| ()).await;
    let body = prompt().to_string();
    for (method, stream, endpoint) in [
        ("generateContent", false, "/v1beta/models/{model}:generateContent"),
        (
            "streamGenerateContent?alt=sse",
            true,
            "/v1beta/models/{model}:generateContent",
        ),
        ("countTokens", false, "/v1beta/models/{model}:countTokens"),
    ] {
        let path = format!("/v1/models/team%2Fgemini:{method}");
        let (_client, answer, exchange) = begin(&mut gateway, &path, body.as_bytes()).await;
        let upstream = format!("POST /v1/models/gemini%2F3%3Ax:{method} HTTP/1.1\r\n");
        assert!(exchange.head.starts_with(&upstream), "{}", exchange.head);
        exchange.answer(generated("Hello", FINISHED).as_bytes()).await;
        let answer = read(answer).await.unwrap();
        let record = crate::dialects::admission(&gateway, id(&answer)).await;
        assert_eq!(
            (
                &record["model"],
                &record["upstream_model"],
                &record["stream"],
                &record["endpoint"]
            ),
            (
                &json!(GEMINI),
                &json!("gemini/3:x"),
                &json!(stream),
                &json!(endpoint)
            )
        );
    }
}

/// Sends a stream of complete events. Returns the client's data, whether its transfer was complete,
/// and the record.
///
/// `held`: all data is held back before the transfer ends.
async fn streamed(gateway: &mut Gateway, events: &[&str], held: bool) -> (String, bool, Value) {
    let body = prompt().to_string();
    let path = "/v1beta/models/team%2Fgemini:streamGenerateContent?alt=sse";
    let (_client, answer, mut exchange) = begin(gateway, path, body.as_bytes()).await;
    exchange.begin_events().await;
    for event in events {
        exchange.send_chunk(event).await;
    }
    if held {
        exchange.try_send(b"0\r\n\r\n").await;
    }
    let answer = answer.await.unwrap();
    let id = answer.headers()["x-request-id"].to_str().unwrap().to_owned();
    let (mut stream, mut body) = (answer.into_body(), Vec::new());
    if !held {
        let first = crate::client::next(&mut stream).await.unwrap();
        body.extend_from_slice(&first.unwrap());
        exchange.try_send(b"0\r\n\r\n").await;
    }
    let whole = loop {
        match crate::client::next(&mut stream).await {
            Ok(Some(piece)) => body.extend_from_slice(&piece),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let record = completion(gateway, &id).await;
    (String::from_utf8(body).unwrap(), whole, record)
}

fn event(document: &str) -> String {
    format!("data: {document}\r\n\r\n")
}

#[tokio::test]
async fn a_stream_is_whole_where_its_end_follows_the_last_reason_to_finish() {
    let mut gateway = gateway_with(|_| ()).await;
    let [first, last] = [event(&generated("Hel", "")), event(&generated("lo", FINISHED))];
    let usage = event(r#"{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":70}}"#);
    let second = event(r#"{"candidates":[{"index":1,"content":{"parts":[{"text":"Ho"}]}}]}"#);
    let second_last = event(r#"{"candidates":[{"index":1,"finishReason":"MAX_TOKENS"}]}"#);
    let unended = generated("lo", FINISHED);
    let unended = format!("data: {unended}\n");
    let large = event(&generated(&"x".repeat(200_000), FINISHED));
    let large_unended = generated(&"x".repeat(70_000), FINISHED);
    let large_unended = format!("data: {large_unended}\n");
    let blocked = event(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#);
    for (events, tokens) in [
        (vec![&first, &last], Some(5)),
        (vec![&first, &last, &usage], Some(70)),
        (vec![&last, &second, &first, &second_last], Some(5)),
        (vec![&first, &unended], Some(5)),
        (vec![&first, &large], Some(5)),
        (vec![&first, &large_unended], Some(5)),
        (vec![&last], Some(5)),
        (vec![&blocked], None),
    ] {
        let held = events.len() == 1;
        let events: Vec<&str> = events.into_iter().map(String::as_str).collect();
        let (body, whole, record) = streamed(&mut gateway, &events, held).await;
        assert!(whole && body == events.concat(), "{body}");
        assert_eq!(record["outcome"], "complete");
        assert_eq!(record["usage"]["completion_tokens"].as_u64(), tokens);
    }
}

#[tokio::test]
async fn a_stream_comes_as_it_was_however_it_is_cut_into_pieces() {
    // The event that finishes a candidate is held back, and released when another candidate
    // continues.
    let stream = [
        event(&generated("Hel", "")),
        event(&generated("lo", FINISHED)),
        ": busy\n\n".to_owned(),
        event(r#"{"candidates":[{"index":1,"content":{"parts":[{"text":"Ho"}]}}]}"#),
        event(r#"{"candidates":[{"index":1,"finishReason":"MAX_TOKENS"}]}"#),
        event(r#"{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":70}}"#),
    ]
    .concat();
    for policy in [Value::Null, rule("Response", "Redact")] {
        let mut gateway = gateway_with(|config| {
            if !policy.is_null() {
                config["policy"] = policy;
            }
        })
        .await;
        for size in [7, 50, 333] {
            let pieces: Vec<&str> = stream
                .as_bytes()
                .chunks(size)
                .map(|piece| std::str::from_utf8(piece).unwrap())
                .collect();
            let (body, whole, record) = streamed(&mut gateway, &pieces, true).await;
            assert!(whole && body == stream, "{size}: {body}");
            assert_eq!(record["outcome"], "complete");
            assert_eq!(record["usage"]["completion_tokens"], 70);
        }
    }
}

#[tokio::test]
async fn a_stream_that_ends_before_is_a_failure_that_the_client_is_told_in_googles_shape() {
    let mut gateway = gateway_with(|_| ()).await;
    let first = event(&generated("Hel", ""));
    let second = event(r#"{"candidates":[{"index":1,"finishReason":"STOP"}]}"#);
    for events in [vec![&first], vec![&first, &second]] {
        let events: Vec<&str> = events.into_iter().map(String::as_str).collect();
        let (body, whole, record) = streamed(&mut gateway, &events, false).await;
        let rest = body.strip_prefix(&events.concat()).unwrap();
        let error: Value = serde_json::from_str(rest.strip_prefix("data: ").unwrap()).unwrap();
        assert!(!whole);
        assert_eq!(
            (&error["error"]["code"], &error["error"]["status"]),
            (&json!(502), &json!("UNAVAILABLE"))
        );
        assert_eq!(
            error["error"]["details"][0]["reason"],
            "UPSTREAM_STREAM_UNFINISHED"
        );
        assert_eq!(record["outcome"], "upstream_error");
    }
}

#[tokio::test]
async fn a_failure_that_google_reports_in_a_stream_is_the_last_that_the_client_gets() {
    let mut gateway = gateway_with(|_| ()).await;
    let [first, last] = [event(&generated("Hel", "")), event(&generated("lo", FINISHED))];
    let framed = event(r#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}"#);
    let raw = "{\n  \"error\": {\n    \"code\": 503,\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n".to_owned();
    for error in [framed, raw] {
        let (body, whole, record) = streamed(&mut gateway, &[&first, &error], false).await;
        assert_eq!((body, whole), ([first.as_str(), &error].concat(), false));
        assert_eq!(record["outcome"], "upstream_error");
    }
    // Data that was held back as a possible end is not sent before the error either.
    let error = event(r#"{"error":{"code":503}}"#);
    let (body, whole, record) = streamed(&mut gateway, &[&first, &last, &error], false).await;
    assert_eq!((body, whole), ([first, last, error].concat(), false));
    assert_eq!(record["outcome"], "upstream_error");
}

fn rule(target: &str, action: &str) -> Value {
    json!({"mode": "Enforce", "rules": [{
        "id": "word", "reason": "a word", "target": target, "literals": ["johndoe"], "score": 1, "action": action,
    }]})
}

#[tokio::test]
async fn rules_read_and_redact_what_is_sent() {
    let mut gateway = gateway_with(|config| config["policy"] = rule("Request", "Redact")).await;
    let body = br#"{"contents":[{"parts":[{"text":"I am johndoe"}]}],"systemInstruction":{"parts":[{"text":"johndoe!"}]}}"#;
    let path = "/v1beta/models/team%2Fgemini:generateContent";
    let (_client, answer, exchange) = begin(&mut gateway, path, body).await;
    let sent = String::from_utf8(exchange.body.clone()).unwrap();
    assert!(!sent.contains("johndoe"), "{sent}");
    let sent: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(sent["contents"][0]["parts"][0]["text"], "I am [redacted:word]");
    exchange.answer(generated("Hello", FINISHED).as_bytes()).await;
    assert_eq!(read(answer).await.unwrap().status.as_u16(), 200);
    let gateway = gateway_with(|config| config["policy"] = rule("Request", "Block")).await;
    let (status, error) = told(&gateway, "POST", path, body).await;
    assert_eq!(
        (status, &error["error"]["status"]),
        (403, &json!("PERMISSION_DENIED"))
    );
    assert_eq!(error["error"]["details"][0]["reason"], "POLICY_BLOCKED");
}

#[tokio::test]
async fn rules_read_and_redact_what_comes_back_whole_or_in_pieces() {
    let mut gateway = gateway_with(|config| config["policy"] = rule("Response", "Redact")).await;
    let body = prompt().to_string();
    let path = "/v1beta/models/team%2Fgemini:generateContent";
    let (_client, answer, exchange) = begin(&mut gateway, path, body.as_bytes()).await;
    let sent = generated(
        "I am johndoe",
        ",\"finishReason\":\"STOP\",\"logprobsResult\":{\"chosenCandidates\":[{\"token\":\"johndoe\"}]}",
    );
    exchange.answer(sent.as_bytes()).await;
    let answer = read(answer).await.unwrap();
    let document: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        document["candidates"][0]["content"]["parts"][0]["text"],
        "I am [redacted:word]"
    );
    assert_eq!(document["candidates"][0]["logprobsResult"], Value::Null);
    let [first, last] = [
        event(&generated("I am john", "")),
        event(&generated("doe!", FINISHED)),
    ];
    let call = event(
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"who":"johndoe"}}}]}}]}"#,
    );
    let (body, whole, record) = streamed(&mut gateway, &[&first, &last, &call], true).await;
    assert!(whole && !body.contains("john") && !body.contains("doe"), "{body}");
    assert!(
        body.contains("I am [redacted:word]") && body.contains("{\"who\":\"[redacted:word]\"}"),
        "{body}"
    );
    assert_eq!(record["outcome"], "complete");
    assert_eq!(record["policy"]["redacted"], true);
}

#[tokio::test]
async fn errors_have_googles_shape_whatever_is_wrong() {
    let gateway =
        gateway_with(|config| config["tenants"][0]["endpoints"] = json!(["GenerateContent", "Models"])).await;
    let prompt = prompt().to_string();
    let model = "/v1beta/models/team%2Fgemini";
    for (path, body, expected) in [
        (
            "/v1beta/models/nobodys:generateContent".to_owned(),
            prompt.as_str(),
            (404, "NOT_FOUND", "MODEL_NOT_FOUND"),
        ),
        (
            format!("/v1beta/models/{MODEL}:generateContent"),
            &prompt,
            (400, "INVALID_ARGUMENT", "ENDPOINT_NOT_SUPPORTED_BY_MODEL"),
        ),
        (
            format!("{model}:predict"),
            &prompt,
            (404, "NOT_FOUND", "UNKNOWN_ENDPOINT"),
        ),
        (
            format!("{model}:streamGenerateContent"),
            &prompt,
            (400, "INVALID_ARGUMENT", "UNSERVED_QUERY"),
        ),
        (
            format!("{model}:generateContent?key=secret"),
            &prompt,
            (400, "INVALID_ARGUMENT", "KEY_IN_QUERY"),
        ),
        (
            "/v1beta/models/..%2Fgemini:generateContent".to_owned(),
            &prompt,
            (400, "INVALID_ARGUMENT", "INVALID_PATH"),
        ),
        (
            format!("{model}:generateContent"),
            "{",
            (400, "INVALID_ARGUMENT", "INVALID_JSON"),
        ),
        (
            format!("{model}:generateContent"),
            r#"{"contents":[],"cachedContent":"c"}"#,
            (400, "INVALID_ARGUMENT", "UNSERVED_FIELD"),
        ),
        (
            format!("{model}:generateContent"),
            r#"{"contents":[],"tools":[{"googleSearch":{}}]}"#,
            (403, "PERMISSION_DENIED", "HOSTED_TOOL_NOT_ALLOWED"),
        ),
    ] {
        let (status, document) = told(&gateway, "POST", &path, body.as_bytes()).await;
        let error = &document["error"];
        assert_eq!(error["code"], status, "{path}");
        assert!(!document.to_string().contains("secret") && !error["message"].as_str().unwrap().is_empty());
        let found = (
            status,
            error["status"].as_str().unwrap(),
            error["details"][0]["reason"].as_str().unwrap(),
        );
        assert_eq!(found, expected, "{path} {body}");
    }
    let (status, document) = told(&gateway, "GET", &format!("{model}:generateContent"), b"").await;
    assert_eq!(
        (status, &document["error"]["status"]),
        (405, &json!("UNIMPLEMENTED"))
    );
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn a_limit_tells_how_long_to_wait_in_googles_words() {
    let gateway =
        gateway_with(|config| config["tenants"][0]["limits"] = json!({"tokensPerMinute": 10})).await;
    let body = json!({"contents": [{"parts": [{"text": "Hi"}]}], "generationConfig": {"maxOutputTokens": 5, "candidateCount": 2}});
    let path = "/v1beta/models/team%2Fgemini:generateContent";
    let (status, document) = told(&gateway, "POST", path, body.to_string().as_bytes()).await;
    assert_eq!(
        (status, &document["error"]["status"]),
        (429, &json!("RESOURCE_EXHAUSTED"))
    );
    // Waiting does not help if a request exceeds the limit by itself.
    let kinds = document["error"]["details"].as_array().unwrap().iter();
    let kinds: Vec<_> = kinds.map(|detail| detail["@type"].as_str().unwrap()).collect();
    let expected = ["ErrorInfo", "BadRequest"].map(|kind| format!("type.googleapis.com/google.rpc.{kind}"));
    assert_eq!(kinds, expected);
    assert_eq!(
        document["error"]["details"][1]["fieldViolations"][0]["field"],
        "generationConfig.maxOutputTokens"
    );
}

#[tokio::test]
async fn a_tenant_needs_the_endpoint_and_the_model() {
    let path = "/v1beta/models/team%2Fgemini:generateContent";
    let body = prompt().to_string();
    let gateway = gateway_with(|config| config["tenants"][0]["endpoints"] = json!(["ChatCompletions"])).await;
    let (status, document) = told(&gateway, "POST", path, body.as_bytes()).await;
    assert_eq!(
        (status, &document["error"]["details"][0]["reason"]),
        (403, &json!("ENDPOINT_NOT_ALLOWED"))
    );
    let gateway = gateway_with(|config| config["tenants"][0]["models"] = json!([MODEL])).await;
    let (status, _) = told(&gateway, "POST", path, body.as_bytes()).await;
    assert_eq!(status, 404);
    let (_, list) = told(&gateway, "GET", "/v1beta/models", b"").await;
    let names: Vec<_> = list["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| &model["name"])
        .collect();
    assert_eq!(names, [&json!(format!("models/{MODEL}"))]);
}

#[tokio::test]
async fn the_list_of_models_has_googles_shape_for_googles_clients() {
    let gateway = gateway_with(|_| ()).await;
    for path in ["/v1beta/models?pageSize=50", "/v1/models"] {
        let (status, list) = told(&gateway, "GET", path, b"").await;
        assert_eq!(status, 200);
        let models = list["models"].as_array().unwrap();
        let gemini = models
            .iter()
            .find(|model| model["displayName"] == GEMINI)
            .unwrap();
        assert_eq!(gemini["name"], format!("models/{GEMINI}"));
        assert_eq!(
            gemini["supportedGenerationMethods"],
            json!(["generateContent", "countTokens", "embedContent"])
        );
        let other = models.iter().find(|model| model["displayName"] == MODEL).unwrap();
        assert_eq!(other["supportedGenerationMethods"], json!([]));
    }
    for path in ["/v1beta/models/team%2Fgemini", "/v1/models/team/gemini"] {
        let (status, model) = told(&gateway, "GET", path, b"").await;
        assert_eq!((status, &model["displayName"]), (200, &json!(GEMINI)));
    }
    let (status, error) = told(&gateway, "GET", "/v1/models/nobodys", b"").await;
    assert_eq!((status, &error["error"]["status"]), (404, &json!("NOT_FOUND")));
}

#[tokio::test]
async fn a_key_of_the_gateway_that_google_refuses_is_not_the_clients_concern() {
    let mut gateway = gateway_with(|_| ()).await;
    let prompt = prompt().to_string();
    let chat = json!({"model": GEMINI, "messages": [{"role": "user", "content": "Hi"}]}).to_string();
    let refused = r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}]}}"#;
    let other =
        r#"{"error":{"code":400,"message":"API_KEY_INVALID is no field.","status":"INVALID_ARGUMENT"}}"#;
    for (path, body, code) in [
        (
            "/v1beta/models/team%2Fgemini:generateContent",
            &prompt,
            "UPSTREAM_AUTH_FAILED",
        ),
        (
            "/v1beta/models/team%2Fgemini:streamGenerateContent?alt=sse",
            &prompt,
            "UPSTREAM_AUTH_FAILED",
        ),
        ("/v1/chat/completions", &chat, "upstream_auth_failed"),
    ] {
        for (error, status) in [(refused, 502), (other, 400)] {
            let (_client, answer, mut exchange) = begin(&mut gateway, path, body.as_bytes()).await;
            exchange
                .send(b"HTTP/1.1 400 Bad Request\r\nTransfer-Encoding: chunked\r\n\r\n")
                .await;
            let (first, second) = error.split_at(40);
            exchange.send_chunk(first).await;
            exchange.send_chunk(second).await;
            exchange.send(b"0\r\n\r\n").await;
            let answer = read(answer).await.unwrap();
            let text = String::from_utf8(answer.body.clone()).unwrap();
            assert_eq!(answer.status.as_u16(), status, "{path}: {text}");
            assert_eq!(text.contains(code), status == 502, "{path}: {text}");
            assert!(!text.contains("API key not valid"), "{path}: {text}");
            assert_eq!(text.contains("is no field"), status == 400, "{path}: {text}");
            let record = completion(&gateway, id(&answer)).await;
            assert_eq!(record["upstream_status"], 400);
        }
    }
}

#[tokio::test]
async fn embeddings_reach_the_models_upstream_name_wherever_the_model_is_named() {
    let mut gateway = gateway_with(|_| ()).await;
    let one = br#"{"content" : {"parts":[{"text":"Hi"}]}}"#;
    let path = "/v1beta/models/team%2Fgemini:embedContent";
    let (_client, answer, exchange) = begin(&mut gateway, path, one).await;
    assert!(
        exchange
            .head
            .starts_with("POST /v1/models/gemini%2F3%3Ax:embedContent HTTP/1.1\r\n")
    );
    assert_eq!(exchange.body, one);
    exchange.answer(br#"{"embedding":{"values":[0.5]}}"#).await;
    let answer = read(answer).await.unwrap();
    let record = crate::dialects::admission(&gateway, id(&answer)).await;
    assert_eq!(record["endpoint"], "/v1beta/models/{model}:embedContent");

    let batch =
        json!({"requests": [{"model": "models/team/gemini", "content": {"parts": [{"text": "Hi"}]}}]});
    let path = "/v1beta/models/team%2Fgemini:batchEmbedContents";
    let (_client, answer, exchange) = begin(&mut gateway, path, batch.to_string().as_bytes()).await;
    assert!(
        exchange
            .head
            .starts_with("POST /v1/models/gemini%2F3%3Ax:batchEmbedContents HTTP/1.1\r\n")
    );
    let sent: Value = serde_json::from_slice(&exchange.body).unwrap();
    assert_eq!(sent["requests"][0]["model"], "models/gemini/3:x");
    let vectors = br#"{"embeddings":[{"values":[0.5]}],"usageMetadata":{"promptTokenCount":3}}"#;
    exchange.answer(vectors).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.body, vectors.as_slice());
    assert_eq!(
        completion(&gateway, id(&answer)).await["usage"]["prompt_tokens"],
        3
    );

    let other = json!({"requests": [{"model": "models/other", "content": {}}]}).to_string();
    let (status, error) = told(&gateway, "POST", path, other.as_bytes()).await;
    assert_eq!(
        (status, &error["error"]["details"][0]["reason"]),
        (400, &json!("NOT_TRANSLATABLE"))
    );
}
