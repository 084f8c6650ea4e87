//! Trace fields in requests to providers, and telemetry about exchanges.

use serde_json::{Value, json};

use crate::client::{Answer, Client, post, post_as, read};
use crate::gateway::{ACME, Gateway, MODEL, chat};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
const PROMPT: &str = "the bluebird sings at dawn";

async fn gateway(telemetry: Value) -> Gateway {
    Gateway::with(|document| document["telemetry"] = telemetry).await
}

fn traces(ratio: f64, propagate: bool) -> Value {
    json!({"traces": {"ratio": ratio, "propagate": propagate}})
}

/// Sends a request with these fields. Returns the provider's request and the client's response.
async fn exchange(gateway: &mut Gateway, fields: &[(&'static str, &str)]) -> (String, Answer) {
    let body = json!({"model": MODEL, "messages": [{"role": "user", "content": PROMPT}]}).to_string();
    let mut request = post(Some(body.len()));
    for (name, value) in fields {
        request.headers_mut().append(*name, value.parse().unwrap());
    }
    let mut client = Client::connect(gateway).await;
    let answer = client.send(request, body.as_bytes()).await;
    let exchange = gateway.upstream.exchange().await;
    let head = exchange.head.clone();
    let usage = r#"{"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}"#;
    exchange.answer(usage.as_bytes()).await;
    (head, read(answer).await.unwrap())
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let mut lines = head.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(field, _)| *field == name).map(|(_, value)| value)
}

/// Returns the telemetry of sampled exchanges so far.
fn told(gateway: &Gateway) -> Vec<Value> {
    let queue = gateway.worker.exchange_queue().unwrap().unwrap();
    let taken = queue.take_batch(100).unwrap();
    taken
        .iter()
        .map(|text| serde_json::from_str(text).unwrap())
        .collect()
}

#[tokio::test]
async fn without_traces_no_trace_goes_upstream_and_nothing_is_told() {
    let mut gateway = Gateway::start().await;
    let (head, _) = exchange(&mut gateway, &[("traceparent", PARENT), ("tracestate", "rojo=1")]).await;
    assert!(!head.to_ascii_lowercase().contains("trace"), "{head}");
    assert_eq!(told(&gateway), Vec::<Value>::new());
}

#[tokio::test]
async fn a_provider_is_told_the_clients_trace_our_span_and_the_state_as_it_came() {
    let mut gateway = gateway(traces(0.0, true)).await;
    let (head, _) = exchange(
        &mut gateway,
        &[("traceparent", PARENT), ("tracestate", "rojo=1,b= 2")],
    )
    .await;
    let told = told(&gateway);
    let span = told[0]["client_span_id"].as_str().unwrap();
    assert_eq!(
        field(&head, "traceparent"),
        Some(&*format!("00-{TRACE}-{span}-01"))
    );
    assert_eq!(field(&head, "tracestate"), Some("rojo=1,b= 2"));
    assert_eq!(told[0]["trace_id"], TRACE);
    assert_eq!(told[0]["parent_span_id"], "b7ad6b7169203331");
}

#[tokio::test]
async fn a_trace_that_begins_here_goes_upstream_whether_or_not_it_is_sampled() {
    for (ratio, flags) in [(0.0, "-00"), (1.0, "-01")] {
        let mut gateway = gateway(traces(ratio, true)).await;
        let (head, _) = exchange(
            &mut gateway,
            &[("traceparent", "00-zz-1-01"), ("tracestate", "rojo=1")],
        )
        .await;
        let parent = field(&head, "traceparent").unwrap();
        assert!(parent.ends_with(flags) && parent.len() == 55, "{parent}");
        assert_eq!(field(&head, "tracestate"), None);
        assert_eq!(told(&gateway).len(), usize::from(ratio > 0.5));
    }
}

#[tokio::test]
async fn without_propagation_a_sampled_trace_stays_here() {
    let mut gateway = gateway(traces(1.0, false)).await;
    let (head, _) = exchange(&mut gateway, &[("traceparent", PARENT), ("tracestate", "rojo=1")]).await;
    assert!(!head.to_ascii_lowercase().contains("trace"), "{head}");
    assert_eq!(told(&gateway)[0]["trace_id"], TRACE);
}

#[tokio::test]
async fn what_is_told_of_an_exchange_has_the_session_and_the_agent_that_its_client_names() {
    let mut gateway = gateway(traces(1.0, true)).await;
    let fields = [("session-id", "s1"), ("thread-id", "t2"), ("traceparent", PARENT)];
    exchange(&mut gateway, &fields).await;
    let told = told(&gateway);
    assert_eq!(
        (&told[0]["session"], &told[0]["agent"]),
        (&json!("s1"), &json!("t2"))
    );
    assert_eq!(
        (&told[0]["trace_id"], told[0].get("end_user")),
        (&json!(TRACE), None)
    );
}

#[tokio::test]
async fn what_is_told_of_an_exchange_has_its_measures_and_neither_prompt_nor_key() {
    let mut gateway = gateway(traces(1.0, true)).await;
    let (_, answer) = exchange(&mut gateway, &[]).await;
    let told = told(&gateway);
    let [exchange] = &told[..] else { panic!("{told:?}") };
    let id = answer.headers["x-request-id"].to_str().unwrap();
    for (name, value) in [
        ("id", json!(id)),
        ("tenant", json!("acme")),
        ("endpoint", json!("/v1/chat/completions")),
        ("model", json!(MODEL)),
        ("provider", json!("stand-in")),
        ("upstream_model", json!(MODEL)),
        ("stream", json!(false)),
        ("status", json!(200)),
        ("outcome", json!("complete")),
        ("attempts", json!(1)),
        ("response_bytes", json!(answer.body.len())),
        ("usage", json!({"prompt_tokens": 3, "completion_tokens": 5})),
    ] {
        assert_eq!(exchange[name], value, "{name}");
    }
    let times = ["sent_us", "first_byte_us", "duration_us"].map(|name| exchange[name].as_u64().unwrap());
    assert!(times.is_sorted(), "{times:?}");
    assert_eq!(exchange.get("error"), None);
    let text = exchange.to_string();
    assert!(!text.contains("bluebird") && !text.contains(ACME), "{text}");
}

#[tokio::test]
async fn a_refusal_of_a_known_tenant_is_told_with_its_code_and_one_of_nobody_is_not() {
    let gateway = gateway(traces(1.0, true)).await;
    let mut client = Client::connect(&gateway).await;
    let model = "x\u{e9}\"\n".repeat(100);
    let body = json!({"model": model, "messages": []}).to_string();
    let answer = client.send(post(Some(body.len())), body.as_bytes()).await;
    assert_eq!(read(answer).await.unwrap().status, 404);
    let body = chat(10, false);
    let answer = client
        .send(post_as("nobody-0123456789abcdef", Some(body.len())), &body)
        .await;
    assert_eq!(read(answer).await.unwrap().status, 401);
    let told = told(&gateway);
    let [refused] = &told[..] else { panic!("{told:?}") };
    assert_eq!(
        [
            &refused["status"],
            &refused["outcome"],
            &refused["error"],
            &refused["tenant"]
        ],
        [
            &json!(404),
            &json!("refused"),
            &json!("model_not_found"),
            &json!("acme")
        ]
    );
    let named = refused["model"].as_str().unwrap();
    assert!(named.len() <= 128 && model.starts_with(named));
    assert_eq!(refused.get("provider"), None);
}

#[tokio::test]
async fn latencies_are_measured_for_every_exchange() {
    let mut gateway = Gateway::start().await;
    exchange(&mut gateway, &[]).await;
    // A model's series appear within a second.
    for name in ["request_duration", "time_to_first_byte"] {
        let count = format!("proofgate_{name}_seconds_count{{model=\"{MODEL}\"");
        gateway.wait_for_metric(&count, 1).await;
    }
    assert_eq!(gateway.metric("proofgate_admission_duration_seconds_count"), 1);
}
