//! Receipts on the traffic port: access, contents and errors.

use http::{HeaderMap, Request};
use proofgate_evidence::check_consistency;
use proofgate_ledger::{Checkpoint, SigningKey, TlogProof, VerifyingKey};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::client::{Answer, Client, ask, next, post_as, read};
use crate::gateway::{ACME, GLOBEX, Gateway, PATIENCE, chat};

const ANSWER: &[u8] = br#"{"id":"1"}"#;
/// Metric of the records that a checkpoint covers.
const SIGNED: &str = "proofgate_ledger_records_checkpointed_total";
/// Number of records after one exchange: `open`, its admission and its completion.
const OF_ONE_EXCHANGE: u64 = 3;

fn verifying_key() -> VerifyingKey {
    SigningKey::generate("gateway.test/ledger", [7; 32])
        .unwrap()
        .verifying_key()
}

fn get(key: &str, path: &str) -> Request<()> {
    let mut request = ask("GET", path);
    let value = format!("Bearer {key}").parse().unwrap();
    request.headers_mut().insert("authorization", value);
    request
}

/// Makes an exchange. Returns its id and its request.
async fn exchange(gateway: &mut Gateway, client: &mut Client, key: &str) -> (String, Vec<u8>) {
    let body = chat(10, false);
    let answer = client.send(post_as(key, Some(body.len())), &body).await;
    gateway.upstream.exchange().await.answer(ANSWER).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.status, 200);
    (id(&answer.headers), body)
}

fn id(headers: &HeaderMap) -> String {
    headers["x-request-id"].to_str().unwrap().to_owned()
}

/// Returns a receipt or an error. Retries, because a slow disk may delay a checkpoint beyond the
/// wait of a request.
async fn receipt(client: &mut Client, key: &str, path: &str) -> (u16, Value) {
    let signed = async {
        loop {
            let answer = client.exchange(get(key, path), b"").await;
            if answer.status != 409 {
                let body = serde_json::from_slice(&answer.body).unwrap_or_default();
                return (answer.status.as_u16(), body);
            }
        }
    };
    timeout(PATIENCE, signed).await.expect("it is never signed")
}

fn code(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.code())
}

fn proofs(receipt: &Value) -> Vec<(String, TlogProof)> {
    let records = receipt["records"].as_array().unwrap().iter();
    records
        .map(|one| {
            let proof = TlogProof::parse(one["proof"].as_str().unwrap()).unwrap();
            (one["record"].as_str().unwrap().to_owned(), proof)
        })
        .collect()
}

#[tokio::test]
async fn a_tenant_gets_the_proofs_of_its_exchange_and_its_bodies_open_the_commitments() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let (id, request) = exchange(&mut gateway, &mut client, ACME).await;
    let (status, receipt) = receipt(&mut client, ACME, &format!("/v1/receipts/{id}")).await;
    assert_eq!(status, 200, "{receipt}");
    assert_eq!(receipt["object"], "receipt");
    assert_eq!(receipt["id"], id.as_str());
    assert_eq!(receipt["complete"], true);
    assert_eq!(receipt["origins"], json!([gateway.worker.origin().unwrap()]));
    assert_eq!(receipt["vkey_hint"], verifying_key().to_text());
    let kinds: Vec<_> = receipt["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["kind"])
        .collect();
    assert_eq!(kinds, ["admission", "completion"]);
    for ((record, proof), (field, body)) in proofs(&receipt)
        .iter()
        .zip([("request", &request[..]), ("response", ANSWER)])
    {
        let revealed = proof.reveal(record.as_bytes(), &verifying_key(), body).unwrap();
        assert_eq!(revealed, field);
        assert!(
            proof
                .reveal(record.as_bytes(), &verifying_key(), b"another")
                .is_err()
        );
    }
}

#[tokio::test]
async fn the_receipt_of_an_exchange_that_goes_on_has_its_admission_and_the_end_once_it_is_there() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(true).await;
    let mut exchange = gateway.upstream.exchange().await;
    exchange.begin_events().await;
    let answer = answer.await.unwrap();
    let path = format!("/v1/receipts/{}", id(answer.headers()));
    let mut other = Client::connect(&gateway).await;
    let (status, open) = receipt(&mut other, ACME, &path).await;
    assert_eq!((status, &open["complete"]), (200, &json!(false)));
    assert_eq!(proofs(&open).len(), 1);
    let strange = other.exchange(get(GLOBEX, &path), b"").await;
    assert_eq!(code(&strange), (404, "unknown_receipt".to_owned()));
    exchange.send_chunk("data: [DONE]\n\n").await;
    exchange.send(b"0\r\n\r\n").await;
    let mut body = answer.into_body();
    while next(&mut body).await.unwrap().is_some() {}
    let (status, whole) = receipt(&mut other, ACME, &path).await;
    assert_eq!((status, &whole["complete"]), (200, &json!(true)));
    assert_eq!(proofs(&whole).len(), 2);
}

#[tokio::test]
async fn another_tenants_exchange_is_as_unknown_as_one_that_never_was() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let (id, _) = exchange(&mut gateway, &mut client, ACME).await;
    let mut never = id.clone();
    never.replace_range(id.len() - 1.., if id.ends_with('0') { "1" } else { "0" });
    let mut told = Vec::new();
    for id in [id.as_str(), &never, "no-uuid", "..", "%2e%2e%2f"] {
        let answer = client
            .exchange(get(GLOBEX, &format!("/v1/receipts/{id}")), b"")
            .await;
        assert_eq!(code(&answer), (404, "unknown_receipt".to_owned()), "{id}");
        told.push(answer.body);
    }
    assert!(told.iter().all(|body| *body == told[0]));
    let (status, _) = receipt(&mut client, ACME, &format!("/v1/receipts/{id}")).await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn a_refusal_that_is_recorded_has_a_receipt() {
    let gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let body = br#"{"model":"nobodys","messages":[]}"#;
    let refused = client.exchange(post_as(ACME, Some(body.len())), body).await;
    assert_eq!(code(&refused), (404, "model_not_found".to_owned()));
    let path = format!("/v1/receipts/{}", id(&refused.headers));
    let (status, receipt) = receipt(&mut client, ACME, &path).await;
    assert_eq!(status, 200);
    assert_eq!(receipt["complete"], true);
    let proofs = proofs(&receipt);
    let (record, proof) = &proofs[0];
    assert!(record.contains(r#""kind":"rejection""#), "{record}");
    proof.verify(record.as_bytes(), &verifying_key()).unwrap();
    assert_eq!(client.exchange(get(GLOBEX, &path), b"").await.status, 404);
}

#[tokio::test]
async fn methods_keys_and_the_allow_list_are_those_of_every_endpoint() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let (id, _) = exchange(&mut gateway, &mut client, ACME).await;
    gateway.wait_for_metric(SIGNED, OF_ONE_EXCHANGE).await;
    let path = format!("/v1/receipts/{id}");
    let options = client.exchange(ask("OPTIONS", &path), b"").await;
    assert_eq!(options.status, 204);
    assert_eq!(options.headers["allow"], "GET, HEAD, OPTIONS");
    let wrong = client.exchange(ask("DELETE", &path), b"").await;
    assert_eq!(code(&wrong), (405, "method_not_allowed".to_owned()));
    let stranger = client.exchange(get("nobody-0123456789abcdef", &path), b"").await;
    assert_eq!(code(&stranger), (401, "invalid_api_key".to_owned()));
    let head = client.exchange(ask("HEAD", &path), b"").await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    for nothing in ["/v1/receipts", "/v1/receipts/", "/v1/receipts/a/b"] {
        let answer = client.exchange(get(ACME, nothing), b"").await;
        assert_eq!(code(&answer), (404, "unknown_endpoint".to_owned()), "{nothing}");
    }
    let half = client.exchange(get(ACME, &format!("{path}?since=3")), b"").await;
    assert_eq!(code(&half), (400, "invalid_query".to_owned()));
    let mut claude = get(ACME, "/v1/receipts/no-uuid");
    claude
        .headers_mut()
        .insert("anthropic-version", "2023-06-01".parse().unwrap());
    let told = client.exchange(claude, b"").await;
    let told: Value = serde_json::from_slice(&told.body).unwrap();
    assert_eq!(told["error"]["type"], "not_found_error");
    gateway.reload(|config| config["tenants"][0]["endpoints"] = json!(["ChatCompletions"]));
    let denied = client.exchange(get(ACME, &path), b"").await;
    assert_eq!(code(&denied), (403, "endpoint_not_allowed".to_owned()));
    gateway.reload(|config| config["tenants"][0]["endpoints"] = json!(["Receipts"]));
    assert_eq!(client.exchange(get(ACME, &path), b"").await.status, 200);
}

#[tokio::test]
async fn a_receipt_counts_as_a_request_and_costs_no_tokens_and_leaves_no_record() {
    let mut gateway = Gateway::with(|config| {
        config["tenants"][0]["limits"] = json!({"requestsPerMinute": 3, "tokensPerMinute": 1000});
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let (exchanged, _) = exchange(&mut gateway, &mut client, ACME).await;
    gateway.wait_for_metric(SIGNED, OF_ONE_EXCHANGE).await;
    let usage = |answer: Answer| serde_json::from_slice::<Value>(&answer.body).unwrap()["tenant"].clone();
    let before = usage(client.exchange(ask("GET", "/v1/usage"), b"").await);
    let path = format!("/v1/receipts/{exchanged}");
    let first = client.exchange(get(ACME, &path), b"").await;
    assert_eq!(first.status, 200);
    assert!(first.headers.contains_key("ratelimit"), "{:?}", first.headers);
    let written = gateway.worker.status().unwrap().written;
    let second = client.exchange(get(ACME, &path), b"").await;
    assert_eq!(second.status, 200);
    assert_eq!(
        gateway.worker.status().unwrap().written,
        written,
        "nothing is recorded"
    );
    let unrecorded = format!("/v1/receipts/{}", id(&second.headers));
    let third = client.exchange(get(ACME, &unrecorded), b"").await;
    assert_eq!(code(&third), (429, "requests_per_minute_exceeded".to_owned()));
    let after = usage(client.exchange(ask("GET", "/v1/usage"), b"").await);
    assert_eq!(after["requests_per_minute"]["used"], 3);
    assert_eq!(after["tokens_per_minute"], before["tokens_per_minute"]);
}

#[tokio::test]
async fn what_no_checkpoint_covers_is_a_conflict_that_says_when_to_ask_again() {
    let mut gateway =
        Gateway::with(|config| config["ledger"]["checkpointIntervalSeconds"] = 3600.into()).await;
    let mut client = Client::connect(&gateway).await;
    // The first records after `open` are signed as soon as they are seen, and later records after
    // an hour.
    exchange(&mut gateway, &mut client, ACME).await;
    gateway.wait_for_metric_in(SIGNED, 2..).await;
    let (id, _) = exchange(&mut gateway, &mut client, ACME).await;
    let pending = client
        .exchange(get(ACME, &format!("/v1/receipts/{id}")), b"")
        .await;
    assert_eq!(code(&pending), (409, "receipt_pending".to_owned()));
    assert_eq!(pending.headers["retry-after"], "1");
}

#[tokio::test]
async fn whoever_holds_a_checkpoint_gets_the_proof_that_the_log_goes_on_from_it() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let (first, _) = exchange(&mut gateway, &mut client, ACME).await;
    let (_, first) = receipt(&mut client, ACME, &format!("/v1/receipts/{first}")).await;
    let held = |receipt: &Value| {
        let (_, proof) = proofs(receipt).pop().unwrap();
        Checkpoint::verify(&proof.checkpoint, &verifying_key()).unwrap()
    };
    let old = held(&first);
    let (second, _) = exchange(&mut gateway, &mut client, ACME).await;
    let path = |size: u64, origin: &str| {
        let origin = origin.replace('/', "%2F");
        format!("/v1/receipts/{second}?since={size}&origin={origin}")
    };
    let (_, later) = receipt(&mut client, ACME, &path(old.size, &old.origin)).await;
    let new = held(&later);
    assert!(new.size > old.size);
    let link = later["consistency"]
        .as_array()
        .unwrap()
        .iter()
        .find(|link| link["old"] == old.size)
        .unwrap();
    assert_eq!(
        (&link["origin"], &link["new"]),
        (&json!(new.origin), &json!(new.size))
    );
    let hashes: Vec<[u8; 32]> = link["hashes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hash| {
            use base64::Engine as _;
            let hash = base64::engine::general_purpose::STANDARD.decode(hash.as_str().unwrap());
            hash.unwrap().try_into().unwrap()
        })
        .collect();
    check_consistency(&old, &new, &hashes).unwrap();
    for (size, origin) in [(new.size + 1000, &*new.origin), (old.size, "another/0/log")] {
        let (status, receipt) = receipt(&mut client, ACME, &path(size, origin)).await;
        assert_eq!(status, 200);
        let links = receipt["consistency"].as_array().unwrap();
        assert!(links.iter().all(|link| link["old"] != size), "{links:?}");
    }
}
