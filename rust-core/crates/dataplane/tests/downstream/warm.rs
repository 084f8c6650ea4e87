//! Connections to providers that are opened before a request.

use serde_json::json;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::client::Client;
use crate::gateway::{Gateway, PATIENCE};

const IDLE: &str = "proofgate_provider_idle_connections{provider=\"stand-in\"}";

/// Starts a gateway that keeps two connections to a provider ready. Returns it with the provider's
/// listener.
async fn warm() -> (Gateway, TcpListener) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let gateway = Gateway::with(|document| {
        document["providers"][0]["baseURL"] = json!(url);
        document["providers"][0]["minIdleConnections"] = json!(2);
    });
    (gateway.await, listener)
}

async fn accept(listener: &TcpListener) -> TcpStream {
    let accepted = timeout(PATIENCE, listener.accept()).await;
    accepted.expect("no connection is made").unwrap().0
}

#[tokio::test]
async fn a_request_finds_a_connection_that_was_made_before_and_another_one_takes_its_place() {
    let (gateway, listener) = warm().await;
    let (mut first, mut second) = (accept(&listener).await, accept(&listener).await);
    gateway.wait_for_metric(IDLE, 2).await;
    let mut client = Client::connect(&gateway).await;
    let _sent = client.send_chat(false).await;
    let arrived = async {
        tokio::select! {
            byte = first.read_u8() => byte,
            byte = second.read_u8() => byte,
        }
    };
    assert_eq!(timeout(PATIENCE, arrived).await.unwrap().unwrap(), b'P');
    let _third = accept(&listener).await;
    gateway.wait_for_metric(IDLE, 2).await;
}

#[tokio::test]
async fn connections_that_a_provider_closes_are_made_anew_while_it_is_configured() {
    let (mut gateway, listener) = warm().await;
    drop((accept(&listener).await, accept(&listener).await));
    let (_third, _fourth) = (accept(&listener).await, accept(&listener).await);
    gateway.wait_for_metric(IDLE, 2).await;
    gateway.change(|document| document["providers"][0]["baseURL"] = json!("http://127.0.0.1:1/v1"));
    gateway.wait_for_metric(IDLE, 0).await;
}
