//! A server that answers every request with what hyper read of it, as JSON in the header `x-read`.
#![forbid(unsafe_code)]

use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::HOST;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::error::Error;
use tokio::net::TcpListener;

async fn answer(request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Box<dyn Error + Send + Sync>> {
    let (head, body) = request.into_parts();
    let framing = match body.size_hint().exact() {
        Some(0) => "empty",
        Some(_) => "length",
        None => "chunked",
    };
    let body = body.collect().await?.to_bytes();
    let digest: String = Sha256::digest(&body)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let host = head
        .headers
        .get(HOST)
        .map(|host| String::from_utf8_lossy(host.as_bytes()));
    let read = json!({
        "method": head.method.as_str(),
        "target": head.uri.to_string(),
        "host": host,
        "framing": framing,
        "length": body.len(),
        "sha256": digest,
    });
    Ok(Response::builder()
        .header("x-read", read.to_string())
        .body(Empty::new())?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let _ = http1::Builder::new()
                .max_buf_size(128 * 1024)
                .max_headers(128)
                .serve_connection(TokioIo::new(stream), service_fn(answer))
                .await;
        });
    }
}
