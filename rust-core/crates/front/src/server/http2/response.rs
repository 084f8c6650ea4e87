//! Sends an HTTP/1.1 response as HTTP/2 frames while it arrives.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use h2::SendStream;
use h2::server::SendResponse;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use proofgate_wire::{
    BodyDecoder, HeadScanner, Limits, MAX_HEADERS, Method, ResponseFraming, ResponseHead, parse_response,
};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// Size of one read, in bytes: a piece of a response with its chunk framing.
const READ_BUFFER_BYTES: usize = 16 * 1024 + 256;
/// Limits for response heads, which the gateway itself writes, including fields from the upstream.
const LIMITS: Limits = Limits {
    head_bytes: 128 * 1024,
    target_bytes: 0,
    headers: MAX_HEADERS,
    body_bytes: u64::MAX,
};

/// Why a response was not completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IncompleteResponse {
    /// The response was cut off or is malformed.
    BrokenResponse,
    /// The client reset the stream or disconnected before the response started.
    NotStarted,
    /// The client reset the stream or disconnected.
    ClientAborted,
    /// The client did not open its flow-control window in time.
    WindowTimeout,
}

/// Sends the response read from `source`; `head_only` for a HEAD request. Sending stops when the client does not open
/// its window within `patience` for a piece of at most [`READ_BUFFER_BYTES`] bytes.
pub(super) async fn relay(
    source: &mut (impl AsyncRead + Unpin),
    respond: &mut SendResponse<Bytes>,
    head_only: bool,
    patience: Duration,
) -> Result<(), IncompleteResponse> {
    let mut input = BytesMut::new();
    let mut scanner = HeadScanner::new();
    let method = if head_only { Method::Head } else { Method::Post };
    let (head, framing) = loop {
        if let Some(length) = scanner
            .scan(&input, &LIMITS)
            .map_err(|_| IncompleteResponse::BrokenResponse)?
        {
            let head = parse_response(&input[..length], method, &LIMITS)
                .map_err(|_| IncompleteResponse::BrokenResponse)?;
            let (status, framing) = (head.status, head.framing);
            let answer = (status >= 200).then(|| to_http2_head(&head)).transpose()?;
            drop(head);
            input.advance(length);
            if let Some(answer) = answer {
                break (answer, framing);
            }
            if status == 100 {
                send_continue(respond);
            }
            scanner.reset();
        } else {
            let read = read(source, &mut input, |context| respond.poll_reset(context)).await;
            read.map_err(|incomplete| match incomplete {
                IncompleteResponse::ClientAborted => IncompleteResponse::NotStarted,
                incomplete => incomplete,
            })?;
        }
    };
    let ended = framing == ResponseFraming::Empty;
    let mut body = respond
        .send_response(head, ended)
        .map_err(|_| IncompleteResponse::NotStarted)?;
    if ended {
        return Ok(());
    }
    let mut decoder = BodyDecoder::for_response(framing);
    loop {
        // A copy, so that a small piece that waits for the client does not keep a whole read buffer in memory.
        let mut piece = Vec::with_capacity(input.len());
        let done = loop {
            let step = decoder
                .decode(&input)
                .map_err(|_| IncompleteResponse::BrokenResponse)?;
            piece.extend_from_slice(&input[step.data]);
            input.advance(step.consumed);
            if step.done || step.consumed == 0 {
                break step.done;
            }
        };
        let sent = timeout(patience, send(&mut body, piece.into(), done, &mut input));
        sent.await.map_err(|_| IncompleteResponse::WindowTimeout)??;
        if done {
            return Ok(());
        }
        read(source, &mut input, |context| body.poll_reset(context)).await?;
    }
}

/// Tells the client to send its body (RFC 9110 section 15.2.1).
fn send_continue(respond: &mut SendResponse<Bytes>) {
    let mut interim = Response::new(());
    *interim.status_mut() = StatusCode::CONTINUE;
    // A disconnected client is detected by the next operation.
    let _ = respond.send_informational(interim);
}

/// Reads more of the response, unless the client resets the stream first. End of file is an error: it does not end a
/// response.
async fn read(
    source: &mut (impl AsyncRead + Unpin),
    input: &mut BytesMut,
    mut reset: impl FnMut(&mut Context<'_>) -> Poll<Result<h2::Reason, h2::Error>>,
) -> Result<(), IncompleteResponse> {
    input.reserve(READ_BUFFER_BYTES);
    tokio::select! {
        biased;
        _ = poll_fn(&mut reset) => Err(IncompleteResponse::ClientAborted),
        read = source.read_buf(input) => match read {
            Ok(0) | Err(_) => Err(IncompleteResponse::BrokenResponse),
            Ok(_) => Ok(()),
        },
    }
}

/// Converts the head of a response, without connection-specific fields (RFC 9113 section 8.2.2).
fn to_http2_head(head: &ResponseHead<'_>) -> Result<Response<()>, IncompleteResponse> {
    let mut response = Response::new(());
    *response.status_mut() = head
        .status
        .try_into()
        .map_err(|_| IncompleteResponse::BrokenResponse)?;
    for (name, value) in head.headers.iter() {
        if !head.headers.is_hop_by_hop(name) {
            let name =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| IncompleteResponse::BrokenResponse)?;
            let value = HeaderValue::from_bytes(value).map_err(|_| IncompleteResponse::BrokenResponse)?;
            response.headers_mut().append(name, value);
        }
    }
    Ok(response)
}

/// Sends `data` as the client's window allows, and ends the stream after it if it is the `last` piece. While it waits
/// for the window, `input` keeps no unused memory.
async fn send(
    body: &mut SendStream<Bytes>,
    mut data: Bytes,
    last: bool,
    input: &mut BytesMut,
) -> Result<(), IncompleteResponse> {
    if data.is_empty() && last {
        return body
            .send_data(data, true)
            .map_err(|_| IncompleteResponse::ClientAborted);
    }
    while !data.is_empty() {
        body.reserve_capacity(data.len());
        let room = match body.capacity() {
            0 => {
                if input.is_empty() {
                    *input = BytesMut::new();
                }
                poll_fn(|context| body.poll_capacity(context))
                    .await
                    .and_then(Result::ok)
                    .ok_or(IncompleteResponse::ClientAborted)?
            }
            room => room,
        };
        let part = data.split_to(room.min(data.len()));
        body.send_data(part, last && data.is_empty())
            .map_err(|_| IncompleteResponse::ClientAborted)?;
    }
    Ok(())
}
