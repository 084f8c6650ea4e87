//! A provider that dies under load, and another one that continues.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep, timeout};

use crate::client::{Client, next, post};
use crate::gateway::{Gateway, MODEL, PATIENCE, chat};

const CLIENTS: usize = 20;
const REQUESTS: usize = 30;
const WORDS: usize = 10;
/// Number of requests after which the first provider dies, while others are running.
const LIFE: usize = CLIENTS * REQUESTS / 3;

/// Returns a socket at an address that it shares with other such sockets.
fn bound(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseport(true).unwrap();
    socket.bind(address).unwrap();
    socket
}

/// Starts a provider that dies at request number `life`. Returns its URL, its number of requests,
/// and a socket that reserves its port after its death.
fn provider(life: usize) -> (String, Arc<AtomicUsize>, TcpSocket) {
    let socket = bound(SocketAddr::from(([127, 0, 0, 1], 0)));
    let address = socket.local_addr().unwrap();
    let kept = bound(address);
    let listener = socket.listen(1024).unwrap();
    let url = format!("http://{address}/v1");
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while count.load(Ordering::SeqCst) < life {
            tokio::select! {
                Ok((stream, _)) = listener.accept() => {
                    let count = Arc::clone(&count);
                    connections.spawn(async move {
                        let _ = serve(stream, &count, life).await;
                    });
                }
                // The connection with the provider's last request ends.
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
            }
        }
        // Dropping the provider ends all its connections immediately.
    });
    (url, asked, kept)
}

async fn serve(mut stream: TcpStream, asked: &AtomicUsize, life: usize) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let mut request = Vec::new();
        while !request.ends_with(b"}") {
            if stream.read_buf(&mut request).await? == 0 {
                return Ok(());
            }
        }
        if asked.fetch_add(1, Ordering::SeqCst) + 1 >= life {
            return Ok(());
        }
        let request = String::from_utf8_lossy(&request);
        if !request.contains(r#""stream":true"#) {
            sleep(Duration::from_millis(2)).await;
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"choices\":[]}";
            stream.write_all(answer.as_bytes()).await?;
            continue;
        }
        let head =
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head).await?;
        for _ in 0..WORDS {
            let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n";
            stream
                .write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())
                .await?;
            sleep(Duration::from_millis(5)).await;
        }
        stream.write_all(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n").await?;
    }
}

/// The response as seen by a client.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    Whole,
    /// A stream with an error event and without an end.
    BrokenAndSaid,
    Else(String),
}

async fn see(client: &mut Client, stream: bool) -> Seen {
    let body = chat(10, stream);
    let answer = client.send(post(Some(body.len())), &body).await;
    let answer = timeout(PATIENCE, answer).await.expect("no answer").unwrap();
    let status = answer.status().as_u16();
    let mut pieces = answer.into_body();
    let mut said = Vec::new();
    let whole = loop {
        match next(&mut pieces).await {
            Ok(Some(piece)) => said.extend_from_slice(&piece),
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    let said = String::from_utf8(said).unwrap();
    let (good_end, bad_end) = (
        said.ends_with("data: [DONE]\n\n"),
        said.contains("data: {\"error\":"),
    );
    match (status, whole, stream) {
        (200, true, false) => Seen::Whole,
        (200, true, true) if good_end && !bad_end => Seen::Whole,
        (200, false, true) if bad_end && !good_end => Seen::BrokenAndSaid,
        _ => Seen::Else(format!("{status}, whole: {whole}: {said}")),
    }
}

#[tokio::test]
async fn a_provider_that_dies_under_load_fails_no_plain_request_and_each_stream_that_breaks_says_so() {
    let (dying, asked, _port) = provider(LIFE);
    let (well, asked_then, _) = provider(usize::MAX);
    let gateway = Gateway::with(|document| {
        let mut second = document["providers"][0].clone();
        document["providers"][0]["baseURL"] = json!(dying);
        second["name"] = json!("well");
        second["baseURL"] = json!(well);
        document["providers"].as_array_mut().unwrap().push(second);
        let targets = document["models"][0]["routes"].as_array_mut().unwrap();
        targets.push(json!({"provider": "well", "upstreamModel": MODEL, "weight": 0}));
        document["models"][0]["fallbackOn"] = json!(["Unreachable", "ServerError"]);
    })
    .await;
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let mut client = Client::connect(&gateway).await;
        clients.spawn(async move {
            let mut seen = Vec::new();
            for place in 0..REQUESTS {
                let stream = (number + place) % 3 == 0;
                seen.push((stream, see(&mut client, stream).await));
            }
            seen
        });
    }
    let seen = timeout(3 * PATIENCE, clients.join_all()).await;
    let seen: Vec<_> = seen.expect("requests hang").into_iter().flatten().collect();
    assert_eq!(seen.len(), CLIENTS * REQUESTS);
    for (stream, seen) in &seen {
        match seen {
            Seen::Whole => {}
            Seen::BrokenAndSaid => assert!(stream),
            Seen::Else(other) => assert_eq!(other, "", "stream: {stream}"),
        }
    }
    assert!(asked.load(Ordering::SeqCst) >= LIFE, "it died in the midst of it");
    assert!(asked_then.load(Ordering::SeqCst) >= CLIENTS * REQUESTS - LIFE);
    gateway.wait_for_metric("proofgate_exchanges_in_flight", 0).await;
    // `open`, two records for each, and one for each further attempt.
    let attempts =
        gateway.metric("proofgate_ledger_records_written_total") - 1 - 2 * (CLIENTS * REQUESTS) as u64;
    assert!(attempts > 0, "none of them was sent on");
}
