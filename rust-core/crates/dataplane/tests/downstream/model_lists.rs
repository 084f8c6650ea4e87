//! The lists of models: the data of each, and entries for wildcards.

use serde_json::{Value, json};

use crate::client::{Client, ask};
use crate::gateway::{Gateway, MODEL};

fn price(model: &str, input: Option<u64>, output: Option<u64>) -> Value {
    json!({"model": model, "effectiveFrom": "1970-01-01", "input": "1", "output": "1", "maxInputTokens": input,
        "maxOutputTokens": output})
}

async fn gateway(models: Value, change: impl FnOnce(&mut Value)) -> Gateway {
    Gateway::with(|config| {
        config["models"] = models;
        config["prices"] = json!([
            price("small", Some(1000), Some(100)),
            price("large", Some(2000), None),
            price("gpt-*", Some(4000), Some(400)),
        ]);
        change(config);
    })
    .await
}

fn model(name: &str, upstream: &[&str]) -> Value {
    let target = |model: &&str| json!({"provider": "stand-in", "upstreamModel": model, "weight": 1});
    let targets: Vec<Value> = upstream.iter().map(target).collect();
    json!({"name": name, "routes": targets, "maxOutputTokens": 10})
}

/// Returns the list, and the header field about wildcards.
async fn list(gateway: &Gateway, field: Option<(&'static str, &str)>) -> (Value, Option<String>) {
    let mut request = ask("GET", "/v1/models");
    if let Some((name, value)) = field {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let answer = Client::connect(gateway).await.exchange(request, b"").await;
    let wildcards = answer.headers.get("x-proofgate-wildcards");
    let wildcards = wildcards.map(|value| value.to_str().unwrap().to_owned());
    (serde_json::from_slice(&answer.body).unwrap(), wildcards)
}

fn names(list: &Value) -> Vec<&str> {
    let models = list["data"].as_array().unwrap().iter();
    models.map(|model| model["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn what_prices_say_a_model_takes_and_gives_is_listed_where_clients_look_for_it() {
    let models = json!([
        model("both", &["small", "gpt-5"]),
        model("half", &["small", "large"]),
        model("none", &["unpriced", "small"]),
    ]);
    let gateway = gateway(models, |_| ()).await;
    let (openai, wildcards) = list(&gateway, None).await;
    let both = json!({"id": "both", "object": "model", "created": 0, "owned_by": "stand-in", "context_length": 1000,
        "context_window": 1000, "max_completion_tokens": 100});
    assert_eq!((&openai["data"][0], wildcards), (&both, None));
    let half = &openai["data"][1];
    assert_eq!(
        (&half["context_length"], half.get("max_completion_tokens")),
        (&json!(1000), None)
    );
    assert_eq!(openai["data"][2].get("context_length"), None);
    let (anthropic, _) = list(&gateway, Some(("anthropic-version", "2023-06-01"))).await;
    let both = json!({"type": "model", "id": "both", "display_name": "both", "created_at": "1970-01-01T00:00:00Z",
        "max_input_tokens": 1000, "max_tokens": 100});
    assert_eq!(anthropic["data"][0], both);
    assert_eq!(anthropic["data"][2]["max_tokens"], Value::Null);
    assert_eq!(
        (
            &anthropic["has_more"],
            &anthropic["first_id"],
            &anthropic["last_id"]
        ),
        (&json!(false), &json!("both"), &json!("none"))
    );
    let (google, _) = list(&gateway, Some(("x-goog-api-key", crate::gateway::ACME))).await;
    let both = &google["models"][0];
    assert_eq!(
        (&both["inputTokenLimit"], &both["outputTokenLimit"]),
        (&json!(1000), &json!(100))
    );
}

#[tokio::test]
async fn of_a_wildcard_the_names_are_listed_that_have_a_price_and_its_head_names_it() {
    let models = json!([
        model("vendor/*", &["*"]),
        model("vendor/large", &["other"]),
        model("fixed-*", &["small"]),
        model("s*", &["s*"]),
    ]);
    let gateway = gateway(models, |_| ()).await;
    let (listed, wildcards) = list(&gateway, None).await;
    assert_eq!(names(&listed), ["small", "vendor/large", "vendor/small"]);
    assert_eq!(wildcards.as_deref(), Some("vendor/*, fixed-*, s*"));
    assert_eq!(listed["data"][2]["context_length"], 1000);
    // The model with that name goes to another provider, and no data is known.
    assert_eq!(listed["data"][1].get("context_length"), None);
}

#[tokio::test]
async fn a_wildcard_that_a_tenant_may_not_use_is_not_named() {
    let models = json!([model("vendor/*", &["*"]), model(MODEL, &[MODEL])]);
    let gateway = gateway(models, |config| config["tenants"][0]["models"] = json!([MODEL])).await;
    let (listed, wildcards) = list(&gateway, None).await;
    assert_eq!((names(&listed), wildcards), (vec![MODEL], None));
}

#[tokio::test]
async fn a_price_of_another_provider_names_no_model_of_a_wildcard() {
    let gateway = gateway(json!([model("vendor/*", &["*"])]), |config| {
        config["prices"][0]["provider"] = "another".into();
        config["prices"][1]["host"] = "api.another.example".into();
    })
    .await;
    assert!(names(&list(&gateway, None).await.0).is_empty());
}

#[tokio::test]
async fn what_is_known_that_a_model_can_do_is_listed_and_nothing_else() {
    let models = json!([
        model("a-gpt", &["gpt-5.4"]),
        model("b-haiku", &["claude-haiku-4-5-20251001"]),
        model("c-both", &["gpt-5.4", "claude-opus-4-6"]),
        model("d-mixed", &["o3-mini", "llama"]),
        model("e-unknown", &["llama"]),
    ]);
    let gateway = gateway(models, |_| ()).await;
    let (openai, _) = list(&gateway, None).await;
    let told: Vec<_> = openai["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|card| card.get("capabilities").cloned())
        .collect();
    assert_eq!(
        told,
        [
            Some(
                json!({"vision": true, "function_calling": true, "reasoning": true, "structured_outputs": true,
                "reasoning_effort": ["low", "medium", "high", "xhigh"]})
            ),
            Some(
                json!({"vision": true, "function_calling": true, "reasoning": true, "structured_outputs": true})
            ),
            Some(
                json!({"vision": true, "function_calling": true, "reasoning": true, "structured_outputs": true,
                "reasoning_effort": ["low", "medium", "high"]})
            ),
            Some(json!({"vision": false})),
            None,
        ]
    );
    let (anthropic, _) = list(&gateway, Some(("anthropic-version", "2023-06-01"))).await;
    let (yes, no) = (json!({"supported": true}), json!({"supported": false}));
    let effort = |supported: bool, high: &Value, max: &Value| {
        json!({"supported": supported, "low": high, "medium": high,
        "high": high, "xhigh": no, "max": max})
    };
    assert_eq!(
        anthropic["data"][1]["capabilities"],
        json!({"image_input": yes, "structured_outputs": yes, "thinking": yes, "effort": effort(false, &no, &no)})
    );
    assert_eq!(
        anthropic["data"][2]["capabilities"]["effort"],
        effort(true, &yes, &no)
    );
    assert_eq!(anthropic["data"][3]["capabilities"], json!({"image_input": no}));
    assert_eq!(anthropic["data"][4].get("capabilities"), None);
    let (google, _) = list(&gateway, Some(("x-goog-api-key", crate::gateway::ACME))).await;
    let thinking: Vec<_> = google["models"]
        .as_array()
        .unwrap()
        .iter()
        .map(|model| model.get("thinking"))
        .collect();
    assert_eq!(
        thinking,
        [
            Some(&json!(true)),
            Some(&json!(true)),
            Some(&json!(true)),
            None,
            None
        ]
    );
}
