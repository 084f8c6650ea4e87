//! HTTP/2 to providers: requests and responses, the number of sessions, and their lifetime.

use bytes::Bytes;
use h2::server::Builder;
use h2::{Reason, client};
use http::{HeaderMap, Request, Response};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

use crate::client::{Answer, Client, ask, next, post, read, tcp};
use crate::gateway::{ACME, Gateway, MODEL, PATIENCE, chat};
use crate::http2_provider::{Call, Provider, acceptor, gateway};

const ANSWER: &str = r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
const IDLE: &str = "proofgate_provider_idle_connections{provider=\"stand-in\"}";

/// Makes a request whose response is [`ANSWER`]. Returns the number of its session.
async fn exchange(client: &mut Client, provider: &mut Provider) -> usize {
    let answer = client.send_chat(false).await;
    let mut call = provider.call().await;
    call.answer(ANSWER);
    assert_eq!(read(answer).await.unwrap().body, ANSWER.as_bytes());
    call.session
}

#[tokio::test]
async fn a_request_has_its_target_in_pseudo_fields_and_none_of_the_fields_of_http_1() {
    let mut provider = Provider::start().await;
    let gateway = provider
        .gateway_with("Http2", |document| {
            document["providers"][0]["apiKey"] = json!("provider-key");
        })
        .await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(10, false);
    let answer = client.send(post(Some(body.len())), &body).await;
    let mut call = provider.call().await;
    assert_eq!(call.rest().await.unwrap(), body);
    let uri = &call.parts.uri;
    assert_eq!(call.parts.method, "POST");
    assert_eq!(
        (uri.scheme_str(), uri.path()),
        (Some("https"), "/v1/chat/completions")
    );
    assert!(uri.authority().unwrap().as_str().starts_with("127.0.0.1:"));
    let fields = &call.parts.headers;
    assert_eq!(fields["authorization"], "Bearer provider-key");
    assert_eq!(fields["content-length"], body.len().to_string());
    assert!(!fields.contains_key("host") && !fields.contains_key("transfer-encoding"));
    call.answer(ANSWER);
    let answer = read(answer).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (200, ANSWER.as_bytes())
    );
    assert_eq!(answer.headers["content-length"], ANSWER.len().to_string());
}

#[tokio::test]
async fn what_is_asked_of_a_provider_of_files_has_its_own_method_and_no_body() {
    let mut provider = Provider::start().await;
    let gateway = provider
        .gateway_with("Http2", |document| {
            document["providers"][0]["objectsOf"] = json!("acme");
        })
        .await;
    let mut client = Client::connect(&gateway).await;
    for (method, path) in [
        ("GET", "/v1/files?limit=2"),
        ("DELETE", "/v1/files/file-1"),
        ("POST", "/v1/batches/batch_1/cancel"),
    ] {
        let answer = client.send(ask(method, path), b"").await;
        let mut call = provider.call().await;
        assert_eq!(call.rest().await.unwrap(), b"", "its stream has ended");
        let target = call.parts.uri.path_and_query().unwrap().as_str();
        assert_eq!((call.parts.method.as_str(), target), (method, path));
        call.answer("{}");
        assert_eq!(read(answer).await.unwrap().body, b"{}".as_slice());
    }
}

#[tokio::test]
async fn a_stream_passes_event_by_event_and_its_end_is_that_of_the_answer() {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(true).await;
    let mut call = provider.call().await;
    let mut stream = call.begin(200, "text/event-stream", None);
    let mut body = answer.await.unwrap().into_body();
    for text in ["one", "two"] {
        let event =
            format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n");
        stream.send_data(event.clone().into(), false).unwrap();
        assert_eq!(next(&mut body).await.unwrap().unwrap(), event);
    }
    stream.send_data("data: [DONE]\n\n".into(), true).unwrap();
    let mut rest = Vec::new();
    while let Some(piece) = next(&mut body).await.unwrap() {
        rest.extend_from_slice(&piece);
    }
    assert!(rest.ends_with(b"data: [DONE]\n\n"));
}

#[tokio::test]
async fn interim_answers_and_trailers_are_left_out() {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    let mut call = provider.call().await;
    let hints = Response::builder()
        .status(103)
        .header("link", "x")
        .body(())
        .unwrap();
    call.respond.send_informational(hints).unwrap();
    let mut stream = call.begin(200, "application/json", None);
    stream.send_data(ANSWER.into(), false).unwrap();
    let mut trailers = HeaderMap::new();
    trailers.insert("x-trailer", "1".parse().unwrap());
    stream.send_trailers(trailers).unwrap();
    let answer = read(answer).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (200, ANSWER.as_bytes())
    );
    assert!(!answer.headers.contains_key("link") && !answer.headers.contains_key("x-trailer"));
}

#[tokio::test]
async fn an_answer_without_a_body_is_one() {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    for status in [200, 204, 404] {
        let answer = client.send_chat(false).await;
        let mut call = provider.call().await;
        let response = Response::builder().status(status).body(()).unwrap();
        call.respond.send_response(response, true).unwrap();
        let answer = read(answer).await.unwrap();
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (status, &b""[..]));
    }
}

#[tokio::test]
async fn many_requests_at_a_time_share_one_session() {
    const MANY: usize = 60;
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    let mut answers = Vec::new();
    for _ in 0..MANY {
        answers.push(client.send_chat(false).await);
    }
    let mut calls = Vec::new();
    for _ in 0..MANY {
        calls.push(provider.call().await);
    }
    for mut call in calls {
        assert_eq!(call.session, 1);
        call.answer(ANSWER);
    }
    for answer in answers {
        assert_eq!(read(answer).await.unwrap().status, 200);
    }
    assert_eq!(provider.sessions(), 1);
}

#[tokio::test]
async fn a_provider_gets_no_more_streams_on_a_session_than_it_takes() {
    let mut settings = Builder::new();
    settings.max_concurrent_streams(1);
    let mut provider = Provider::with(true, settings).await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    let (mut answers, mut calls) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        answers.push(client.send_chat(false).await);
    }
    for _ in 0..3 {
        calls.push(provider.call().await);
    }
    let mut sessions: Vec<_> = calls.iter().map(|call| call.session).collect();
    sessions.sort_unstable();
    assert_eq!(sessions, [1, 2, 3]);
    for call in &mut calls {
        call.answer(ANSWER);
    }
    for answer in answers {
        assert_eq!(read(answer).await.unwrap().status, 200);
    }
    drop(calls);
    assert!(
        exchange(&mut client, &mut provider).await <= 3,
        "they serve again"
    );
}

#[tokio::test]
async fn a_session_that_a_provider_leaves_ends_with_its_streams_and_the_next_request_has_another() {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    let under_way = client.send_chat(false).await;
    let mut call = provider.call().await;
    call.leave_session();
    let mut sessions = 1;
    while sessions == 1 {
        // Until the GOAWAY has arrived.
        sessions = exchange(&mut client, &mut provider).await;
    }
    call.answer(ANSWER);
    assert_eq!(read(under_way).await.unwrap().body, ANSWER.as_bytes());
    drop(call);
    assert_eq!(provider.ended().await, 1);
}

#[tokio::test]
async fn without_tls_http_2_is_spoken_with_prior_knowledge_and_auto_is_http_1() {
    let mut provider = Provider::with(false, Builder::new()).await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    assert_eq!(exchange(&mut client, &mut provider).await, 1);

    let mut gateway = Gateway::with(|document| document["providers"][0]["http"] = json!("Auto")).await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    gateway.upstream.exchange().await.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
}

/// Starts a TLS provider that speaks HTTP/1.1 and selects one of `protocols`.
async fn old_provider(protocols: &'static [&'static [u8]]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(mut tls) = acceptor(protocols).accept(tcp).await else {
                    return;
                };
                let mut request = Vec::new();
                while tls.read_buf(&mut request).await.is_ok_and(|read| read > 0) {
                    if request.ends_with(b"}") {
                        request.clear();
                        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
                        tls.write_all(answer).await.unwrap();
                        tls.flush().await.unwrap();
                    }
                }
            });
        }
    });
    url
}

#[tokio::test]
async fn a_provider_without_http_2_is_spoken_to_in_http_1_unless_nothing_but_http_2_will_do() {
    let choices: [&[&[u8]]; 2] = [&[], &[b"http/1.1"]];
    for protocols in choices {
        let url = old_provider(protocols).await;
        for (http, status) in [("Auto", 200), ("Http1", 200), ("Http2", 502)] {
            let gateway = gateway(&url, http, |_| ()).await;
            let mut client = Client::connect(&gateway).await;
            for _ in 0..2 {
                let answer = read(client.send_chat(false).await).await.unwrap();
                assert_eq!(answer.status, status, "{http}");
                if status == 502 {
                    assert_eq!(answer.code(), "upstream_unreachable");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_provider_that_speaks_http_1_without_being_asked_gets_no_request_in_http_2() {
    let mut gateway = Gateway::with(|document| document["providers"][0]["http"] = json!("Http2")).await;
    let mut client = Client::connect(&gateway).await;
    let asked = async {
        let answer = client.send_chat(false).await;
        read(answer).await.unwrap()
    };
    let refusing = async {
        loop {
            // The provider reads the preface of HTTP/2 as a request.
            let mut exchange = gateway.upstream.exchange().await;
            assert!(exchange.head.starts_with("PRI * HTTP/2.0\r\n"));
            exchange
                .send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                .await;
        }
    };
    let answer = tokio::select! {
        answer = asked => answer,
        () = refusing => unreachable!(),
    };
    assert_eq!(
        (answer.status.as_u16(), &*answer.code()),
        (502, "upstream_unreachable")
    );
}

#[tokio::test]
async fn a_provider_that_chooses_http_2_gets_it_where_it_may_choose() {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway_with("Auto", |_| ()).await;
    let mut client = Client::connect(&gateway).await;
    assert_eq!(exchange(&mut client, &mut provider).await, 1);
    assert_eq!(exchange(&mut client, &mut provider).await, 1);
}

#[tokio::test]
async fn one_session_is_kept_ready_however_many_connections_are_asked_for() {
    let mut provider = Provider::start().await;
    let gateway = provider
        .gateway_with("Http2", |document| {
            document["providers"][0]["minIdleConnections"] = json!(3)
        })
        .await;
    gateway.wait_for_metric(IDLE, 1).await;
    let mut client = Client::connect(&gateway).await;
    assert_eq!(exchange(&mut client, &mut provider).await, 1);
    assert_eq!(provider.sessions(), 1);
}

#[tokio::test]
async fn a_session_outlives_changes_that_are_none_for_its_provider_and_ends_with_its_streams_at_others() {
    let mut provider = Provider::start().await;
    let mut gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    assert_eq!(exchange(&mut client, &mut provider).await, 1);
    gateway.change(|document| document["models"][0]["maxOutputTokens"] = json!(7));
    assert_eq!(exchange(&mut client, &mut provider).await, 1);
    let under_way = client.send_chat(false).await;
    let mut call = provider.call().await;
    gateway.change(|document| document["providers"][0]["timeouts"] = json!({"connectSeconds": 7}));
    assert_eq!(exchange(&mut client, &mut provider).await, 2);
    call.answer(ANSWER);
    assert_eq!(read(under_way).await.unwrap().body, ANSWER.as_bytes());
    drop(call);
    assert_eq!(provider.ended().await, 1);
}

#[tokio::test]
async fn a_long_request_leaves_as_its_provider_makes_room() {
    let mut settings = Builder::new();
    settings.initial_window_size(1000);
    let mut provider = Provider::with(true, settings).await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    let body = chat(1 << 20, false);
    let answer = client.send(post(Some(body.len())), &body).await;
    let mut call = provider.call().await;
    assert!(call.rest().await.unwrap() == body);
    call.answer(ANSWER);
    assert_eq!(read(answer).await.unwrap().status, 200);
}

/// Sends a form with a file of `length` bytes, with or without Content-Length. `answer` answers it.
async fn upload(
    says_length: bool,
    file: usize,
    answer: impl AsyncFnOnce(&mut Call, &[u8]),
) -> (Answer, Vec<u8>) {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut client = Client::connect(&gateway).await;
    let head = format!(
        "--limit\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{MODEL}\r\n\
         --limit\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.mp3\"\r\n\r\n"
    );
    let form = [head.as_bytes(), &vec![b'x'; file], b"\r\n--limit--\r\n"].concat();
    let request = Request::post("https://gateway.test/v1/audio/transcriptions")
        .header("authorization", format!("Bearer {ACME}"))
        .header("content-type", "multipart/form-data; boundary=limit");
    let request = match says_length {
        true => request.header("content-length", form.len()),
        false => request,
    };
    let sent = client.send(request.body(()).unwrap(), &form).await;
    let mut call = provider.call().await;
    answer(&mut call, &form).await;
    (read(sent).await.unwrap(), form)
}

#[tokio::test]
async fn a_form_passes_as_it_comes_whether_or_not_it_says_how_long_it_is() {
    for says_length in [true, false] {
        for file in [1000, 3 << 20] {
            let (answer, _) = upload(says_length, file, async |call: &mut Call, form: &[u8]| {
                assert!(call.rest().await.unwrap() == form);
                call.answer(r#"{"text":"Hi"}"#);
            })
            .await;
            assert_eq!(answer.body, br#"{"text":"Hi"}"#, "{says_length} {file}");
        }
    }
}

#[tokio::test]
async fn an_answer_amid_an_upload_is_heard_and_ends_it() {
    let (answer, _) = upload(true, 3 << 20, async |call: &mut Call, _: &[u8]| {
        let body = br#"{"error":{"message":"large"}}"#;
        let mut stream = call.begin(413, "application/json", Some(body.len()));
        stream.send_data(Bytes::from_static(body), true).unwrap();
    })
    .await;
    assert_eq!(answer.status, 413);
    assert_eq!(answer.body, br#"{"error":{"message":"large"}}"#);
}

#[tokio::test]
async fn a_client_that_takes_nothing_leaves_an_answer_at_its_provider_and_the_others_alone() {
    const LONG: usize = 4 << 20;
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut slow = Client::on(tcp(&gateway).await, client::Builder::new()).await;
    let answer = slow.send_chat(false).await;
    let mut call = provider.call().await;
    let mut stream = call.begin(200, "application/json", Some(LONG));
    let (told, mut room) = tokio::sync::watch::channel(0);
    let sending = tokio::spawn(async move {
        let mut sent = 0;
        while sent < LONG {
            stream.reserve_capacity(LONG - sent);
            let Some(Ok(capacity)) = std::future::poll_fn(|context| stream.poll_capacity(context)).await
            else {
                return;
            };
            let length = capacity.min(LONG - sent);
            let mut piece = vec![b'x'; length];
            if sent == 0 {
                piece[..6].copy_from_slice(b"{\"a\":\"");
            }
            sent += length;
            told.send_replace(sent);
            stream.send_data(piece.into(), sent == LONG).unwrap();
        }
    });
    let mut body = timeout(PATIENCE, answer).await.unwrap().unwrap().into_body();
    // The window of the provider's stream is full.
    timeout(PATIENCE, room.wait_for(|sent| *sent >= 128 << 10))
        .await
        .unwrap()
        .unwrap();
    let mut client = Client::connect(&gateway).await;
    for _ in 0..20 {
        assert_eq!(exchange(&mut client, &mut provider).await, 1);
    }
    let sent = *room.borrow();
    // At most the windows of both sides and the buffers between them.
    assert!(sent < 512 << 10, "{sent}");
    let mut taken = 0;
    while let Some(piece) = next(&mut body).await.unwrap() {
        taken += piece.len();
    }
    assert_eq!(taken, LONG);
    sending.await.unwrap();
}

#[tokio::test]
async fn a_client_that_leaves_has_its_stream_reset_and_no_other() {
    let mut provider = Provider::start().await;
    let gateway = provider.gateway().await;
    let mut other = Client::connect(&gateway).await;
    let waits = other.send_chat(false).await;
    let mut kept = provider.call().await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    let mut call = provider.call().await;
    drop((answer, client));
    let reset = std::future::poll_fn(|context| call.respond.poll_reset(context));
    let reset = timeout(PATIENCE, reset).await.expect("it is not reset");
    assert_eq!(reset.unwrap(), Reason::CANCEL);
    kept.answer(ANSWER);
    assert_eq!(read(waits).await.unwrap().status, 200);
}
