//! A mock provider, all of whose bytes a test determines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::gateway::PATIENCE;

/// A provider whose requests wait until the test answers them.
pub struct Upstream {
    url: String,
    requests: Arc<AtomicUsize>,
    exchanges: mpsc::UnboundedReceiver<Exchange>,
}

/// One request, and the connection for its response.
pub struct Exchange {
    pub head: String,
    pub body: Vec<u8>,
    stream: TcpStream,
}

impl Upstream {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let (sender, exchanges) = mpsc::unbounded_channel();
        let count = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(receive(stream, Arc::clone(&count), sender.clone()));
            }
        });
        Upstream {
            url,
            requests,
            exchanges,
        }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the number of requests that have arrived at least in part.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    /// Returns the next request.
    pub async fn exchange(&mut self) -> Exchange {
        let exchange = timeout(PATIENCE, self.exchanges.recv()).await;
        exchange.expect("no request reached the upstream").unwrap()
    }
}

async fn receive(mut stream: TcpStream, count: Arc<AtomicUsize>, exchanges: mpsc::UnboundedSender<Exchange>) {
    let mut bytes = Vec::new();
    let end = loop {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
    };
    count.fetch_add(1, Ordering::SeqCst);
    let mut body = bytes.split_off(end);
    let head = String::from_utf8(bytes).unwrap();
    let length = head.lines().find_map(|line| {
        line.to_ascii_lowercase()
            .strip_prefix("content-length: ")?
            .parse()
            .ok()
    });
    while body.len() < length.unwrap_or(0) {
        if stream.read_buf(&mut body).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let _ = exchanges.send(Exchange { head, body, stream });
}

impl Exchange {
    /// Answers with a JSON document.
    pub async fn answer(mut self, json: &[u8]) {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: keep-alive\r\nX-Seen: yes\r\n\
             Content-Length: {}\r\n\r\n",
            json.len()
        );
        self.send(head.as_bytes()).await;
        self.send(json).await;
    }

    /// Starts a response with a stream of events.
    pub async fn begin_events(&mut self) {
        self.send(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        )
        .await;
    }

    /// Sends bytes in a separate chunk.
    pub async fn send_chunk(&mut self, data: &str) {
        self.send(format!("{:x}\r\n{data}\r\n", data.len()).as_bytes())
            .await;
    }

    /// Sends bytes as they are.
    pub async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Sends raw bytes; returns `false` if the connection is closed.
    pub async fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// Waits for the next request on the same connection.
    pub async fn next_request(&mut self) {
        let read = timeout(PATIENCE, self.stream.read(&mut [0; 4096])).await;
        assert_ne!(read.expect("no request on the connection").unwrap(), 0);
    }

    /// Waits until the gateway closes the connection.
    pub async fn given_up(mut self) {
        let end = timeout(PATIENCE, self.stream.read(&mut [0])).await;
        assert!(matches!(end, Ok(Ok(0) | Err(_))), "the connection is still used");
    }
}
