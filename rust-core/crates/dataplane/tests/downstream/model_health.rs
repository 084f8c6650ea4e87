//! Health by provider and model: a provider's failures for one model do not move the traffic of
//! another model.

use serde_json::{Value, json};

use crate::client::{Answer, Client, post, read};
use crate::gateway::Gateway;
use crate::upstream::{Exchange, Upstream};

const ANSWER: &[u8] = br#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

/// A gateway with two models and all names that start with `any-`. Each uses the mock upstream
/// first, and `other` as its fallback.
async fn gateway(other: &Upstream) -> Gateway {
    let url = other.url().to_owned();
    Gateway::with(|document| {
        let mut provider = document["providers"][0].clone();
        provider["name"] = json!("other");
        provider["baseURL"] = json!(url);
        document["providers"].as_array_mut().unwrap().push(provider);
        let model = |name: &str| {
            let target = |provider: &str, weight: u32| json!({"provider": provider, "upstreamModel": name, "weight": weight});
            json!({
                "name": name, "routes": [target("stand-in", 1), target("other", 0)], "maxOutputTokens": 100,
                "fallbackOn": ["Unreachable", "RateLimited", "Overloaded"],
            })
        };
        document["models"] = json!([model("big"), model("small"), model("any-*")]);
    })
    .await
}

/// Requests a model, while `answered` serves the requests at the providers.
async fn ask(client: &mut Client, model: &str, answered: impl Future<Output = ()>) -> Answer {
    let body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]}).to_string();
    let sent = client.send(post(Some(body.len())), body.as_bytes()).await;
    answered.await;
    let answer = read(sent).await.unwrap();
    assert_eq!(answer.status, 200);
    answer
}

async fn decline(mut exchange: Exchange, head: &str) {
    let head = format!("HTTP/1.1 {head}\r\nContent-Length: 2\r\n\r\n{{}}");
    exchange.send(head.as_bytes()).await;
}

fn model_of(exchange: &Exchange) -> String {
    let body: Value = serde_json::from_slice(&exchange.body).unwrap();
    body["model"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_rate_limit_of_one_model_moves_no_traffic_of_another_one() {
    let mut other = Upstream::start().await;
    let mut gateway = gateway(&other).await;
    let mut client = Client::connect(&gateway).await;
    for (limited, free) in [("big", "small"), ("any-large", "any-little")] {
        ask(&mut client, limited, async {
            let exchange = gateway.upstream.exchange().await;
            decline(exchange, "429 No\r\nRetry-After: 30").await;
            other.exchange().await.answer(ANSWER).await;
        })
        .await;
        for _ in 0..3 {
            ask(&mut client, free, async {
                let exchange = gateway.upstream.exchange().await;
                assert_eq!(model_of(&exchange), free);
                exchange.answer(ANSWER).await;
            })
            .await;
        }
        ask(&mut client, limited, async {
            other.exchange().await.answer(ANSWER).await;
        })
        .await;
    }
    gateway
        .wait_for_metric("proofgate_provider_paused{provider=\"stand-in\"}", 1)
        .await;
}

#[tokio::test]
async fn the_overload_of_one_model_moves_no_traffic_of_another_one() {
    let mut other = Upstream::start().await;
    let mut gateway = gateway(&other).await;
    let mut client = Client::connect(&gateway).await;
    for _ in 0..5 {
        ask(&mut client, "big", async {
            decline(gateway.upstream.exchange().await, "529 Overloaded").await;
            other.exchange().await.answer(ANSWER).await;
        })
        .await;
    }
    ask(&mut client, "small", async {
        gateway.upstream.exchange().await.answer(ANSWER).await;
    })
    .await;
    ask(&mut client, "big", async {
        other.exchange().await.answer(ANSWER).await;
    })
    .await;
}
