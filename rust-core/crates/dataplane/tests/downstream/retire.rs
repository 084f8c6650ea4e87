//! A retiring worker, which is the first phase of ending and can be cancelled.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use crate::client::{Client, ask, read, tcp, tls};
use crate::gateway::{ACME, FIRST, Gateway, PATIENCE};

/// An HTTP/1.1 client with a persistent connection.
struct KeptAlive(TlsStream<TcpStream>);

impl KeptAlive {
    async fn connect(gateway: &Gateway) -> Self {
        let stream = tls(tcp(gateway).await, FIRST[0], &[b"http/1.1"]).await;
        KeptAlive(stream.unwrap())
    }

    /// Sends one request and returns the head of the response.
    async fn exchange(&mut self) -> String {
        let request =
            format!("GET /v1/models HTTP/1.1\r\nhost: gateway.test\r\nauthorization: Bearer {ACME}\r\n\r\n");
        self.0.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        // The list of models ends with the end of its object.
        while !answer.ends_with(b"]}") {
            let read = timeout(PATIENCE, self.0.read_buf(&mut answer)).await;
            assert_ne!(read.expect("no answer").unwrap(), 0, "the connection ended");
        }
        String::from_utf8(answer).unwrap().to_lowercase()
    }

    /// Waits until the worker closes the connection.
    async fn ended(mut self) {
        let mut rest = Vec::new();
        let read = timeout(PATIENCE, self.0.read_to_end(&mut rest)).await;
        // An idle connection ends without further data.
        assert!(read.is_ok() && rest.is_empty(), "the connection is still open");
    }
}

#[tokio::test]
async fn a_worker_that_retires_serves_what_comes_and_ends_each_connection_after_an_answer() {
    let gateway = Gateway::with(|config| config["timeouts"]["lameDuckSeconds"] = 60.into()).await;
    let mut before = KeptAlive::connect(&gateway).await;
    assert!(!before.exchange().await.contains("connection: close"));
    assert!(gateway.worker.set_retired(true).unwrap());
    assert_eq!(gateway.worker.not_ready_reason(), Some("retiring"));
    assert!(gateway.worker.status().unwrap().retiring);
    for mut client in [before, KeptAlive::connect(&gateway).await] {
        assert!(client.exchange().await.contains("connection: close"));
        client.ended().await;
    }
    gateway.wait_for_metric("proofgate_connections", 0).await;
}

#[tokio::test]
async fn a_connection_that_is_old_ends_with_its_next_answer() {
    let gateway = Gateway::with(|config| config["timeouts"]["connectionAgeSeconds"] = 0.001.into()).await;
    let mut client = KeptAlive::connect(&gateway).await;
    // The connection reaches its maximum age a millisecond after it was accepted, which may be
    // after it was opened.
    let until_it_closes = async { while !client.exchange().await.contains("connection: close") {} };
    timeout(PATIENCE, until_it_closes).await.unwrap();
    client.ended().await;
}

#[tokio::test]
async fn an_old_connection_says_goodbye_over_http_2_and_lets_its_streams_finish() {
    let mut gateway = Gateway::with(|config| config["timeouts"]["connectionAgeSeconds"] = 0.001.into()).await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    let exchange = gateway.upstream.exchange().await;
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
    assert!(client.ended().await.is_ok());
}

#[tokio::test]
async fn a_retiring_worker_says_goodbye_over_http_2_and_lets_streams_finish() {
    let mut gateway = Gateway::with(|config| config["timeouts"]["lameDuckSeconds"] = 60.into()).await;
    let mut client = Client::connect(&gateway).await;
    let answer = client.send_chat(false).await;
    let exchange = gateway.upstream.exchange().await;
    assert!(gateway.worker.set_retired(true).unwrap());
    exchange.answer(b"{}").await;
    assert_eq!(read(answer).await.unwrap().status, 200);
    client.ended().await.unwrap();
    let mut later = Client::connect(&gateway).await;
    assert_eq!(later.exchange(ask("GET", "/v1/models"), b"").await.status, 200);
    later.ended().await.unwrap();
}

#[tokio::test]
async fn an_idle_connection_ends_once_the_worker_retires() {
    let gateway = Gateway::start().await;
    let mut client = KeptAlive::connect(&gateway).await;
    client.exchange().await;
    gateway.worker.set_retired(true).unwrap();
    client.ended().await;
    gateway.wait_for_metric("proofgate_connections", 0).await;
}

#[tokio::test]
async fn a_worker_that_is_told_to_stay_is_as_it_was_before() {
    let gateway = Gateway::with(|config| config["timeouts"]["lameDuckSeconds"] = 60.into()).await;
    let mut client = KeptAlive::connect(&gateway).await;
    client.exchange().await;
    for _ in 0..2 {
        assert!(gateway.worker.set_retired(true).unwrap());
        assert!(gateway.worker.set_retired(true).unwrap());
        assert!(!gateway.worker.set_retired(false).unwrap());
        assert!(!gateway.worker.set_retired(false).unwrap());
    }
    assert_eq!(gateway.worker.not_ready_reason(), None);
    for _ in 0..2 {
        assert!(!client.exchange().await.contains("connection: close"));
    }
}

#[tokio::test]
async fn a_retired_worker_drains_and_seals_and_cannot_turn_back_then() {
    let gateway = Gateway::start().await;
    gateway.worker.set_retired(true).unwrap();
    gateway.worker.drain();
    assert!(gateway.worker.set_retired(false).unwrap(), "it came back");
    assert_eq!(gateway.worker.not_ready_reason(), Some("draining"));
    assert!(gateway.join().await, "the log is not sealed");
}
