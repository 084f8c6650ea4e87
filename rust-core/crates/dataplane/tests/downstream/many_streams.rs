//! Many concurrent streams, half of which are dropped by their clients: no resources are leaked,
//! and each exchange is recorded once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, sleep, timeout};

use crate::client::{Client, next, post};
use crate::gateway::{Gateway, MODEL, PATIENCE};

const CONNECTIONS: usize = 40;
const STREAMS: usize = 50;
/// Number of words in a stream. A stream that will be dropped has no end.
const WORDS: usize = 20;
const DROPPED: &str = "to be dropped";

/// Starts a provider that sends a word every few milliseconds. Returns its URL and its number of
/// open connections.
async fn provider() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let open = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&open);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let count = Arc::clone(&count);
            tokio::spawn(async move {
                count.fetch_add(1, Ordering::SeqCst);
                // The task ends when the gateway closes the connection.
                let _ = serve(stream).await;
                count.fetch_sub(1, Ordering::SeqCst);
            });
        }
    });
    (url, open)
}

/// The end of all request bodies in this test.
const END_OF_REQUEST: &[u8] = br#""end":1}}"#;

fn body(dropped: bool) -> Vec<u8> {
    let said = if dropped { DROPPED } else { "to be read" };
    format!(
        r#"{{"model":"{MODEL}","stream":true,"messages":[{{"role":"user","content":"{said}"}}],"metadata":{{"end":1}}}}"#
    )
    .into_bytes()
}

async fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    loop {
        let mut request = Vec::new();
        while !request.ends_with(END_OF_REQUEST) {
            if stream.read_buf(&mut request).await? == 0 {
                return Ok(());
            }
        }
        let request = String::from_utf8_lossy(&request);
        let words = if request.contains(DROPPED) {
            usize::MAX
        } else {
            WORDS
        };
        let head =
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head).await?;
        for number in 0..words {
            let event = json!({"choices": [{"index": 0, "delta": {"content": format!("word {number} ")}}]});
            let event = format!("data: {event}\n\n");
            stream
                .write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())
                .await?;
            sleep(Duration::from_millis(5)).await;
        }
        stream.write_all(b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n").await?;
    }
}

/// Raises this process's limit of descriptors, at most to `most`.
fn allow_descriptors(most: u64) {
    let mut limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.map_or(most, |hard| hard.min(most));
    limit.current = limit.current.map(|soft| soft.max(most));
    setrlimit(Resource::Nofile, limit).unwrap();
}

#[tokio::test]
async fn two_thousand_streams_of_which_half_are_dropped_leave_nothing_and_one_record_each() {
    // Both ends of each stream's connection are in this process.
    allow_descriptors(10_000);
    let (url, open) = provider().await;
    let gateway = Gateway::with(|document| {
        document["providers"][0]["baseURL"] = json!(url);
        document["ledger"]["segmentBytes"] = json!(1 << 25);
        document["limits"]["connections"] = json!(4 * CONNECTIONS * STREAMS);
        document["tenants"][0]["limits"] = json!({"tokensPerDay": 1_000_000_000, "concurrency": 100_000});
    })
    .await;
    let mut clients = Vec::new();
    for number in 0..CONNECTIONS {
        let mut client = Client::connect(&gateway).await;
        clients.push(tokio::spawn(async move {
            let mut random = StdRng::seed_from_u64(number as u64);
            let mut streams = Vec::new();
            for place in 0..STREAMS {
                let body = body(place % 2 == 0);
                let answer = client.send(post(Some(body.len())), &body).await;
                // The position of the drop: before the head, or after a number of pieces.
                let drops_at = (place % 2 == 0).then(|| random.random_range(0..WORDS));
                streams.push(tokio::spawn(read(answer, drops_at)));
            }
            for stream in streams {
                stream.await.unwrap();
            }
            drop(client);
        }));
    }
    for client in clients {
        timeout(6 * PATIENCE, client)
            .await
            .expect("streams hang")
            .unwrap();
    }
    let all = (CONNECTIONS * STREAMS) as u64;
    let ended = |outcome: &str| format!("proofgate_exchanges_total{{outcome=\"{outcome}\"}}");
    gateway.wait_for_metric(&ended("complete"), all / 2).await;
    gateway
        .wait_for_metric(&ended("client_disconnect"), all / 2)
        .await;
    for nothing in ["exchanges_in_flight", "connections", "buffered_bytes"] {
        gateway.wait_for_metric(&format!("proofgate_{nothing}"), 0).await;
    }
    // `open`, and two records for each exchange.
    assert_eq!(
        gateway.metric("proofgate_ledger_records_written_total"),
        1 + 2 * all
    );
    // Connections that are open at the provider wait for the next request, and close if none
    // arrives.
    let kept = open.load(Ordering::SeqCst) as u64;
    assert!(kept <= all / 2, "{kept} connections are kept");
    gateway.worker.drain();
    assert!(gateway.join().await, "the log is sealed");
    let gone = async {
        while open.load(Ordering::SeqCst) != 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, gone)
        .await
        .expect("connections to the provider are left");
}

/// Reads a stream to its end, or drops it after `drops_at` pieces.
async fn read(answer: h2::client::ResponseFuture, drops_at: Option<usize>) {
    if drops_at == Some(0) {
        return;
    }
    let answer = timeout(PATIENCE, answer).await.expect("no answer").unwrap();
    let mut pieces = answer.into_body();
    let mut said = Vec::new();
    let mut number = 0;
    while Some(number) != drops_at {
        match next(&mut pieces).await.unwrap() {
            Some(piece) => said.extend_from_slice(&piece),
            None => break,
        }
        number += 1;
    }
    if drops_at.is_none() {
        let said = String::from_utf8(said).unwrap();
        assert!(said.ends_with("data: [DONE]\n\n"), "{said}");
    }
}
