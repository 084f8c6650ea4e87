//! Requests over HTTP/2 and their responses.

use crate::client::{Client, ask, post, post_as, read};
use crate::gateway::{ACME, BODY_BYTES, GLOBEX, Gateway, chat};
use bytes::Bytes;
use h2::Reason;

#[tokio::test]
async fn a_completion_is_answered_and_recorded() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    let answer = client.send(post(Some(body.len())), &body).await;
    let exchange = gateway.upstream.exchange().await;
    assert!(
        exchange
            .head
            .starts_with("POST /v1/chat/completions HTTP/1.1\r\n")
    );
    assert_eq!(exchange.body, body);
    exchange.answer(br#"{"id":"1"}"#).await;

    let answer = read(answer).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (200, &br#"{"id":"1"}"#[..])
    );
    assert_eq!(answer.headers["x-seen"], "yes");
    assert!(!answer.headers.contains_key("connection"));
    let id = answer.headers["x-request-id"].to_str().unwrap().to_owned();
    let worker = std::sync::Arc::clone(&gateway.worker);
    let evidence = tokio::task::spawn_blocking(move || worker.prove(&id, crate::gateway::PATIENCE));
    let kinds: Vec<_> = evidence
        .await
        .unwrap()
        .unwrap()
        .into_iter()
        .map(|one| one.kind)
        .collect();
    assert_eq!(kinds, ["admission", "completion"]);
}

#[tokio::test]
async fn a_body_of_unknown_length_and_its_trailers_reach_the_upstream_as_one_body() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    let (answer, mut stream) = client.send_head(post(None), false).await.unwrap();
    let (first, second) = body.split_at(7);
    stream.send_data(Bytes::copy_from_slice(first), false).unwrap();
    stream.send_data(Bytes::copy_from_slice(second), false).unwrap();
    let mut trailers = http::HeaderMap::new();
    trailers.insert("x-checksum", "another".parse().unwrap());
    stream.send_trailers(trailers).unwrap();
    let exchange = gateway.upstream.exchange().await;
    assert_eq!(exchange.body, body);
    assert!(!exchange.head.contains("another"));
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
}

#[tokio::test]
async fn trailers_that_an_http_1_body_may_not_have_are_refused() {
    let gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    for (length, name) in [(None, "content-length"), (Some(body.len()), "authorization")] {
        let (answer, mut stream) = client.send_head(post(length), false).await.unwrap();
        stream.send_data(Bytes::from(body.clone()), false).unwrap();
        let mut trailers = http::HeaderMap::new();
        trailers.insert(name, "3".parse().unwrap());
        stream.send_trailers(trailers).unwrap();
        let answer = read(answer).await.unwrap();
        assert_eq!(
            (answer.status.as_u16(), &*answer.code()),
            (400, "forbidden_trailer")
        );
    }
    assert_eq!(gateway.metric(r#"proofgate_rejections_total{status="400"}"#), 2);
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn a_long_body_arrives_whole_under_flow_control() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(BODY_BYTES - 1000, false);
    let answer = client.send(post(Some(body.len())), &body).await;
    let exchange = gateway.upstream.exchange().await;
    assert!(exchange.body == body);
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_long_answer_arrives_whole_through_a_small_window() {
    let mut gateway = Gateway::start().await;
    let mut settings = h2::client::Builder::new();
    settings
        .initial_window_size(1000)
        .initial_connection_window_size(70_000);
    let mut client = Client::on(crate::client::tcp(&gateway).await, settings).await;
    let answer = client.send_chat(false).await;
    let long = vec![b'7'; 1_000_000];
    gateway.upstream.exchange().await.answer(&long).await;
    let answer = read(answer).await.unwrap();
    assert_eq!(answer.headers["content-length"], "1000000");
    assert!(answer.body == long);
}

#[tokio::test]
async fn the_gateways_own_answers_look_as_over_http_1() {
    let gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    let models = client.exchange(ask("GET", "/v1/models"), b"").await;
    assert_eq!(models.status, 200);
    assert!(models.body.starts_with(br#"{"object":"list""#));
    let head = client.exchange(ask("HEAD", "/v1/models"), b"").await;
    assert_eq!(head.headers["content-length"], models.body.len().to_string());
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    let options = client.exchange(ask("OPTIONS", "/v1/models"), b"").await;
    assert_eq!((options.status.as_u16(), options.body.len()), (204, 0));

    let stranger = client.exchange(post_as("nobody", Some(body.len())), &body).await;
    assert_eq!(
        (stranger.status.as_u16(), &*stranger.code()),
        (401, "invalid_api_key")
    );
    assert!(stranger.headers.contains_key("www-authenticate"));
    let nowhere = client.exchange(ask("GET", "/nowhere"), b"").await;
    assert_eq!(
        (nowhere.status.as_u16(), &*nowhere.code()),
        (404, "unknown_endpoint")
    );
    let wrong = client.exchange(ask("DELETE", "/v1/models"), b"").await;
    assert_eq!(wrong.status, 405);
    assert_eq!(gateway.metric(r#"proofgate_rejections_total{status="401"}"#), 1);
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn a_client_that_asks_whether_anything_answers_needs_no_key_and_leaves_no_record() {
    let gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let keyless = |method: &str, path: &str| {
        let mut request = ask(method, path);
        request.headers_mut().remove("authorization");
        request
    };
    for path in ["/", "/?beta=true", "/api/hello"] {
        let hello = client.exchange(keyless("GET", path), b"").await;
        assert_eq!(
            (hello.status.as_u16(), &hello.body[..]),
            (200, &br#"{"status":"ok"}"#[..])
        );
        let head = client.exchange(keyless("HEAD", path), b"").await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
        assert_eq!(head.headers["content-length"], hello.body.len().to_string());
        let options = client.exchange(keyless("OPTIONS", path), b"").await;
        assert_eq!(
            (options.status.as_u16(), &options.headers["allow"]),
            (204, &"GET, HEAD, OPTIONS".parse().unwrap())
        );
    }
    assert_eq!(gateway.metric(r#"proofgate_rejections_total{status="401"}"#), 0);
    assert_eq!(client.exchange(keyless("POST", "/"), b"").await.status, 401);
    assert_eq!(client.exchange(ask("POST", "/"), b"").await.status, 405);
    assert_eq!(
        client.exchange(keyless("GET", "/api/hello/x"), b"").await.status,
        401
    );
}

#[tokio::test]
async fn a_provider_without_its_key_costs_its_own_models_and_nothing_else() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    gateway.reload(|config| {
        let mut keyless = config["providers"][0].clone();
        keyless["name"] = "keyless".into();
        keyless["keyMissing"] = true.into();
        config["providers"].as_array_mut().unwrap().insert(0, keyless);
        let mut model = config["models"][0].clone();
        model["name"] = "of-keyless".into();
        model["routes"][0]["provider"] = "keyless".into();
        config["models"].as_array_mut().unwrap().push(model);
    });
    let body = br#"{"model":"of-keyless","messages":[]}"#;
    let refused = client.exchange(post(Some(body.len())), body).await;
    assert_eq!(
        (refused.status.as_u16(), &*refused.code()),
        (503, "provider_key_missing")
    );
    assert_eq!(gateway.upstream.requests(), 0);
    let served = client.send_chat(false).await;
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(read(served).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_by_its_announced_and_by_its_counted_length() {
    let gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let body = vec![b' '; BODY_BYTES + 1];
    let announced = client.exchange(post(Some(body.len())), &body).await;
    assert_eq!(
        (announced.status.as_u16(), &*announced.code()),
        (413, "body_too_large")
    );
    let counted = client.exchange(post(None), &body).await;
    assert_eq!(
        (counted.status.as_u16(), &*counted.code()),
        (413, "body_too_large")
    );
    assert_eq!(gateway.upstream.requests(), 0);
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let mut request = ask("GET", "/v1/models");
    let value = "x".repeat(20_000).parse().unwrap();
    request.headers_mut().insert("x-large", value);
    let answer = client.send(request, b"").await;
    assert_eq!(answer.await.unwrap().status(), 431);
}

#[tokio::test]
async fn a_client_that_waits_to_be_asked_for_the_body_is_asked() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    let mut request = post(Some(body.len()));
    request
        .headers_mut()
        .insert("expect", "100-continue".parse().unwrap());
    let (mut answer, mut stream) = client.send_head(request, false).await.unwrap();
    let interim = std::future::poll_fn(|context| answer.poll_informational(context)).await;
    assert_eq!(interim.unwrap().unwrap().status(), 100);
    stream.send_data(Bytes::from(body), true).unwrap();
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_slow_body_is_refused_and_the_connection_goes_on() {
    let gateway = Gateway::with(|config| config["timeouts"]["clientBodySeconds"] = 0.05.into()).await;
    let mut client = Client::connect(&gateway).await;
    let (answer, _stream) = client.send_head(post(Some(100)), false).await.unwrap();
    let answer = read(answer).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &*answer.code()),
        (408, "request_timeout")
    );
    assert_eq!(client.exchange(ask("GET", "/v1/models"), b"").await.status, 200);
}

#[tokio::test]
async fn two_tenants_on_one_connection_are_kept_apart() {
    let mut gateway = Gateway::with(|config| {
        config["tenants"][0]["limits"] = serde_json::json!({"requestsPerMinute": 1});
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    for key in [ACME, GLOBEX] {
        let answer = client.send(post_as(key, Some(body.len())), &body).await;
        gateway.upstream.exchange().await.answer(b"{}").await;
        assert_eq!(read(answer).await.unwrap().status, 200);
    }
    let second = client.exchange(post_as(ACME, Some(body.len())), &body).await;
    assert_eq!(second.status, 429);
    let answer = client.send(post_as(GLOBEX, Some(body.len())), &body).await;
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
}

#[tokio::test]
async fn behind_a_load_balancer_a_stream_of_another_tenant_is_misdirected_and_the_others_go_on() {
    use tokio::io::AsyncWriteExt;
    let mut gateway =
        Gateway::with(|config| config["proxyProtocol"] = serde_json::json!({"routingKey": "key"})).await;
    let mut tcp = crate::client::tcp(&gateway).await;
    // PROXY v2 of an unspecified family, with the tenant's name as unique id (section 2.2 of the specification).
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x00\x00\x0b\x05\x00\x08".to_vec();
    header.extend_from_slice(b"key:acme");
    tcp.write_all(&header).await.unwrap();
    let mut client = Client::on(tcp, h2::client::Builder::new()).await;
    let body = chat(10, false);
    let answer = client.send_chat(false).await;
    let exchange = gateway.upstream.exchange().await;
    let other = client.exchange(post_as(GLOBEX, Some(body.len())), &body).await;
    assert_eq!(
        (other.status.as_u16(), &*other.code()),
        (421, "misdirected_request")
    );
    assert_eq!(other.headers["x-should-retry"], "true");
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_hundred_requests_run_at_a_time() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let mut answers = Vec::new();
    for _ in 0..100 {
        answers.push(client.send_chat(false).await);
    }
    let mut exchanges = Vec::new();
    for _ in 0..100 {
        exchanges.push(gateway.upstream.exchange().await);
    }
    for exchange in exchanges {
        exchange.answer(b"{}").await;
    }
    for answer in answers {
        assert_eq!(read(answer).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn all_connections_together_have_so_many_streams_and_each_has_one_of_its_own() {
    let mut gateway = Gateway::with(|config| config["limits"]["connections"] = 2.into()).await;
    let (mut first, mut second) = (Client::connect(&gateway).await, Client::connect(&gateway).await);
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(first.send_chat(false).await);
    }
    answers.push(second.send_chat(false).await);
    let mut exchanges = Vec::new();
    for _ in 0..4 {
        exchanges.push(gateway.upstream.exchange().await);
    }
    let refused = second.exchange(ask("GET", "/v1/models"), b"").await;
    assert_eq!((refused.status.as_u16(), &*refused.code()), (503, "overloaded"));
    assert_eq!(refused.headers["retry-after"], "1");
    for exchange in exchanges {
        exchange.answer(b"{}").await;
    }
    for answer in answers {
        assert_eq!(read(answer).await.unwrap().status, 200);
    }
    assert_eq!(second.exchange(ask("GET", "/v1/models"), b"").await.status, 200);
}

#[tokio::test]
async fn an_answer_that_the_upstream_breaks_off_never_looks_finished() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    let mut exchange = gateway.upstream.exchange().await;
    exchange
        .send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"id\"")
        .await;
    let mut body = answer.await.unwrap().into_body();
    assert_eq!(crate::client::next(&mut body).await.unwrap().unwrap(), r#"{"id""#);
    drop(exchange);
    let error = crate::client::next(&mut body).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::INTERNAL_ERROR));
    gateway
        .wait_for_metric(r#"proofgate_exchanges_total{outcome="upstream_error"}"#, 1)
        .await;
}

#[tokio::test]
async fn an_exchange_takes_its_memory_out_of_the_budget_and_gives_it_back() {
    let mut gateway = Gateway::start().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(1_000_000, false);
    let answer = client.send(post(Some(body.len())), &body).await;
    let exchange = gateway.upstream.exchange().await;
    assert!(gateway.metric("proofgate_buffered_bytes") >= body.len() as u64);
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
    gateway.wait_for_metric("proofgate_buffered_bytes", 0).await;
}

#[tokio::test]
async fn streams_for_which_there_is_no_memory_are_refused_and_the_next_one_is_served() {
    // Memory for only one stream with its exchange.
    let mut gateway = Gateway::with(|config| {
        config["limits"]["bodyBytes"] = 10_000.into();
        config["limits"]["bufferedBytes"] = 100_000.into();
    })
    .await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    let first = client.send(post(Some(body.len())), &body).await;
    let exchange = gateway.upstream.exchange().await;
    let second = client.send(post(Some(body.len())), &body).await;
    let refused = read(second).await.unwrap();
    assert_eq!((refused.status.as_u16(), &*refused.code()), (503, "overloaded"));
    exchange.answer(b"{}").await;
    assert_eq!(read(first).await.unwrap().status, 200);
    gateway.wait_for_metric("proofgate_buffered_bytes", 0).await;
    let third = client.send(post(Some(body.len())), &body).await;
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(read(third).await.unwrap().status, 200);
}
