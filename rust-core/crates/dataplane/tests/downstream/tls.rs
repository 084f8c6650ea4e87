//! TLS: the selected protocol, rejected clients, and replacement of a certificate.

use rustls::version::{TLS12, TLS13};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::client::{Client, ask, read, tcp, tls, tls_of};
use crate::gateway::{ACME, FIRST, Gateway, PATIENCE, SECOND, certificate};

async fn ask_over_http_1(stream: &mut TlsStream<TcpStream>) -> String {
    let request =
        format!("GET /v1/models HTTP/1.1\r\nHost: gateway.test\r\nAuthorization: Bearer {ACME}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"}") {
        let read = timeout(PATIENCE, stream.read_buf(&mut answer)).await;
        assert_ne!(read.unwrap().unwrap(), 0, "the connection ended");
    }
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn http_1_is_spoken_with_clients_that_do_not_offer_http_2() {
    let gateway = Gateway::start().await;
    for protocols in [&[][..], &[&b"http/1.1"[..]]] {
        let mut stream = tls(tcp(&gateway).await, FIRST[0], protocols).await.unwrap();
        for _ in 0..2 {
            assert!(
                ask_over_http_1(&mut stream)
                    .await
                    .starts_with("HTTP/1.1 200 OK\r\n")
            );
        }
    }
}

#[tokio::test]
async fn http_2_is_preferred() {
    let gateway = Gateway::start().await;
    let stream = tls(tcp(&gateway).await, FIRST[0], &[b"http/1.1", b"h2"]).await;
    assert_eq!(stream.unwrap().get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let other = tls(tcp(&gateway).await, FIRST[0], &[b"spdy/3"]).await;
    assert!(other.is_err());
}

#[tokio::test]
async fn a_client_below_the_oldest_version_that_is_allowed_is_turned_away() {
    let gateway = Gateway::with(|config| config["tls"]["minVersion"] = "1.3".into()).await;
    let old = tls_of(&[&TLS12], tcp(&gateway).await, FIRST[0], &[b"h2"]).await;
    assert!(old.is_err());
    let new = tls_of(&[&TLS13], tcp(&gateway).await, FIRST[0], &[b"h2"]).await;
    assert!(new.is_ok());
}

#[tokio::test]
async fn a_request_without_tls_gets_no_answer() {
    let gateway = Gateway::start().await;
    let mut stream = tcp(&gateway).await;
    stream
        .write_all(b"GET /v1/models HTTP/1.1\r\nHost: gateway.test\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    let end = timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap();
    end.expect("the connection was reset");
    // A fatal alert (RFC 8446 section 6).
    assert_eq!((answer[0], answer[5]), (21, 2));
    assert_eq!(gateway.metric(r#"proofgate_rejections_total{status="400"}"#), 0);
}

#[tokio::test]
async fn a_client_that_does_not_finish_its_handshake_is_dropped() {
    let gateway = Gateway::with(|config| config["timeouts"]["clientHeadSeconds"] = 1.into()).await;
    let mut silent = tcp(&gateway).await;
    // A client that completes the TLS handshake and then sends no HTTP/2 data.
    let mut half = tls(tcp(&gateway).await, FIRST[0], &[b"h2"]).await.unwrap();
    let mut received = Vec::new();
    let end = timeout(PATIENCE, silent.read_to_end(&mut received))
        .await
        .unwrap();
    assert!(end.is_err() || received.is_empty());
    let _ = timeout(PATIENCE, half.read_to_end(&mut received)).await.unwrap();
    gateway.wait_for_metric("proofgate_connections", 0).await;
}

#[tokio::test]
async fn a_replaced_certificate_is_shown_to_new_connections_while_the_open_ones_go_on() {
    let mut gateway = Gateway::start().await;
    let mut http_1 = tls(tcp(&gateway).await, FIRST[0], &[]).await.unwrap();
    let mut http_2 = Client::connect(&gateway).await;
    let under_way = http_2.send_chat(false).await;
    let exchange = gateway.upstream.exchange().await;

    gateway.reload(|config| config["tls"] = certificate(SECOND));

    exchange.answer(b"{}").await;
    assert_eq!(read(under_way).await.unwrap().status, 200);
    assert_eq!(http_2.exchange(ask("GET", "/v1/models"), b"").await.status, 200);
    assert!(
        ask_over_http_1(&mut http_1)
            .await
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
    assert!(tls(tcp(&gateway).await, FIRST[0], &[b"h2"]).await.is_err());
    let mut fresh = tls(tcp(&gateway).await, SECOND[0], &[]).await.unwrap();
    assert!(
        ask_over_http_1(&mut fresh)
            .await
            .starts_with("HTTP/1.1 200 OK\r\n")
    );
}
