//! One attempt: a request to one provider, up to the head of the response. This module knows
//! neither the client nor the ledger.

use std::cell::Cell;
use std::future::poll_fn;
use std::ops::Range;

use proofgate_config::StreamUsage;
use proofgate_ledger::record::SendOutcome;
use proofgate_providers::{
    Dialect, FrameDecoder, ParsedRequest, RequestTemplate, ResponseStart, ResponseStartReader, UpstreamBody,
    is_prompt_too_long,
};
use proofgate_stages::{Span, Stage};
use proofgate_wire::{
    BodyDecoder, HeadScanner, Limits, MAX_HEADERS, Method, ResponseFraming, ResponseHead, parse_response,
};

use crate::delivery::{ExecutionState, PrefixLengths, deliver};
use crate::failure::Failure;
use crate::upstream::{Upstream, UpstreamStream};

/// Maximum body length in bytes that is copied behind the head: up to it, a copy costs less than a
/// vectored write.
const MAX_COPY_BYTES: usize = 16 * 1024;
/// Buffer size of one read from an upstream, in bytes.
pub const READ_BUFFER_BYTES: usize = 16 * 1024;
/// Maximum length of a response head, in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Builds the body for the upstream: replaces the model's name with `replacement`, and adds a
/// request for usage to a streaming request if `usage` says so. Also returns whether a request for
/// usage was added.
///
/// `body` is the client's body, or the body that the rules rewrote (`rewritten`); `model` is the
/// range of its `model` value.
pub fn upstream_body<'b>(
    usage: StreamUsage,
    replacement: Option<&'b [u8]>,
    call: &ParsedRequest<'_>,
    body: &'b [u8],
    model: Range<usize>,
    rewritten: bool,
) -> (UpstreamBody<'b>, bool) {
    let usage = match usage {
        StreamUsage::Leave => None,
        StreamUsage::Ask if rewritten && call.has_stream_options() => {
            let call = ParsedRequest::parse(call.dialect, body).ok();
            call.and_then(|call| call.usage_edit(&model))
        }
        StreamUsage::Ask => call.usage_edit(&model),
    };
    // The range is empty if the path names the model.
    let name = replacement.filter(|_| !model.is_empty());
    let name = name.map(|name| (model, name));
    (UpstreamBody::new(body, [name, usage.clone()]), usage.is_some())
}

/// The progress of an attempt. It is stored outside the attempt, so that it is known even if the
/// attempt is dropped before its end.
#[derive(Debug, Clone, Copy, Default)]
pub struct AttemptProgress {
    /// Whether the upstream may have acted on the request.
    pub execution: ExecutionState,
    /// The status of the response; `None` before its head arrives.
    pub status: Option<u16>,
}

impl AttemptProgress {
    /// Returns whether the request was sent, in the form that records use.
    pub fn send_outcome(self) -> SendOutcome {
        match (self.status, self.execution) {
            (Some(_), _) => SendOutcome::Answered,
            (None, ExecutionState::MaybeExecuted) => SendOutcome::Maybe,
            (None, ExecutionState::NotExecuted) => SendOutcome::No,
        }
    }
}

/// A request for one provider.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub upstream: &'a Upstream,
    pub template: &'a RequestTemplate,
    /// The suffix of the path.
    pub model: &'a str,
    /// Header lines that only this request has.
    pub header_lines: &'a [u8],
    /// The id of the exchange.
    pub id: &'a str,
    /// The time of sending, in Unix seconds; 0 if the request is not signed.
    pub sent_at: u64,
    pub body: UpstreamBody<'a>,
    /// `Some` if the body is still arriving, with its total length if known; `body` is the part
    /// received so far.
    pub incoming_length: Option<Option<u64>>,
}

/// Buffers that all attempts share.
#[derive(Clone, Copy)]
pub struct SharedBuffers<'a> {
    /// The buffer in which a request is assembled.
    pub outgoing: &'a Cell<Vec<u8>>,
    /// The buffer of the attempts that wait to read.
    pub incoming: &'a Cell<Vec<u8>>,
}

/// A response whose head was received.
pub struct ResponseStarted<H> {
    pub connection: UpstreamStream,
    /// The result of `accept` for the head.
    pub head: H,
    /// Offset of the body in the bytes read so far.
    pub body_start: usize,
}

/// Sends a request and reads the head of the response into `response_bytes`; `accept` converts the
/// head.
///
/// # Errors
/// The failure that prevented a response, or the error of `accept`.
pub async fn attempt<H>(
    request: Request<'_>,
    limits: Limits,
    progress: &mut AttemptProgress,
    span: &mut Span,
    buffers: SharedBuffers<'_>,
    response_bytes: &mut Vec<u8>,
    mut accept: impl FnMut(&ResponseHead<'_>) -> Result<H, Failure>,
) -> Result<ResponseStarted<H>, Failure> {
    let mut again = true;
    loop {
        response_bytes.clear();
        let connection = send(request, limits, progress, span, buffers, response_bytes).await?;
        match read_response_head(
            connection,
            limits,
            progress,
            span,
            buffers,
            response_bytes,
            &mut accept,
        )
        .await
        {
            // A provider that closed a session (GOAWAY) has not processed this request, so it is
            // sent again, once.
            Err(Failure::ConnectFailed) if std::mem::take(&mut again) => {}
            heard => return heard,
        }
    }
}

/// Reads the head of the response on a connection over which a request was sent; `response_bytes`
/// contains the bytes that have already arrived.
pub async fn read_response_head<H>(
    mut connection: UpstreamStream,
    limits: Limits,
    progress: &mut AttemptProgress,
    span: &mut Span,
    buffers: SharedBuffers<'_>,
    response_bytes: &mut Vec<u8>,
    mut accept: impl FnMut(&ResponseHead<'_>) -> Result<H, Failure>,
) -> Result<ResponseStarted<H>, Failure> {
    let limits = Limits {
        head_bytes: MAX_HEAD_BYTES,
        headers: MAX_HEADERS,
        ..limits
    };
    let mut scanner = HeadScanner::new();
    let mut begun = false;
    loop {
        let scanned = scanner.scan(response_bytes, &limits);
        if let Some(length) = scanned.map_err(|_| Failure::Unreachable)? {
            let parsed = parse_response(&response_bytes[..length], Method::Post, &limits);
            let head = parsed.as_ref().map_err(|_| Failure::Unreachable)?;
            if head.status >= 200 {
                progress.status = Some(head.status);
                let head = accept(head)?;
                return Ok(ResponseStarted {
                    connection,
                    head,
                    body_start: length,
                });
            }
            drop(parsed);
            response_bytes.drain(..length);
            scanner.reset();
        } else {
            let read = poll_fn(|context| {
                connection.poll_fill(context, buffers.incoming, response_bytes, READ_BUFFER_BYTES)
            });
            if !read.await.is_ok_and(|read| read != 0) {
                if connection.is_unprocessed() {
                    progress.execution = ExecutionState::NotExecuted;
                    return Err(Failure::ConnectFailed);
                }
                return Err(Failure::Unreachable);
            }
            if !std::mem::replace(&mut begun, true) {
                span.lap_now(Stage::UpstreamWait);
            }
        }
    }
}

/// Sends a request; returns the connection from which to read the response. Response bytes that
/// arrive before the request is fully sent are appended to `early_bytes`.
pub async fn send(
    request: Request<'_>,
    limits: Limits,
    progress: &mut AttemptProgress,
    span: &mut Span,
    buffers: SharedBuffers<'_>,
    early_bytes: &mut Vec<u8>,
) -> Result<UpstreamStream, Failure> {
    let Request {
        upstream: to,
        template,
        model,
        header_lines: fields,
        id,
        sent_at: at,
        body,
        incoming_length: rest,
    } = request;
    let mut signed = Vec::new();
    if let Some(signer) = &to.signer {
        signed.extend_from_slice(fields);
        signer.sign(template, model, &body, at, &mut signed).await;
    }
    let fields = if signed.is_empty() { fields } else { &signed };
    let mut head = buffers.outgoing.take();
    head.clear();
    let length = body.length();
    match rest {
        None => template.write(id, length, model, fields, &mut head),
        Some(all) => template.write_with_framing(id, all, model, fields, &mut head),
    }
    let mut leading = PrefixLengths {
        head: head.len(),
        framing: 0,
    };
    if rest == Some(None) {
        // Starts the first chunk; the line end after its data is written before the next chunk.
        head.extend_from_slice(format!("{length:x}\r\n").as_bytes());
        leading.framing = head.len() - leading.head;
    }
    let mut parts = body.parts();
    if length <= MAX_COPY_BYTES {
        for part in &mut parts {
            head.extend_from_slice(part);
            *part = &[];
        }
    }
    span.lap_now(Stage::Adapt);
    let [one, two, three, four, five] = parts;
    let message = [&head[..], one, two, three, four, five];
    let mut partly = ExecutionState::NotExecuted;
    let executed = match rest {
        None => &mut progress.execution,
        Some(_) => &mut partly,
    };
    let message = (message, leading);
    let delivered = deliver(to, message, limits, executed, span, buffers.incoming, early_bytes).await;

    buffers.outgoing.set(head);
    delivered
}

/// Maximum bytes of an error body that are read to classify it.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// Maximum bytes of the excerpt of a response that starts with a failure.
const MAX_EXCERPT_BYTES: usize = 4096;

/// Reads the body of a response to its end and returns it decoded; the raw bytes stay in
/// `response_bytes`. Returns `None` if the body is incomplete or too long for an error.
pub async fn read_full_body<H>(
    started: &mut ResponseStarted<H>,
    framing: ResponseFraming,
    buffers: SharedBuffers<'_>,
    response_bytes: &mut Vec<u8>,
) -> Option<Vec<u8>> {
    let mut whole = None;
    read_body(started, framing, buffers, response_bytes, |body, is_whole| {
        whole = is_whole.then(|| body.to_vec());
        is_whole
    })
    .await;
    whole
}

/// Reads the body of a response until `enough` returns true; the raw bytes stay in
/// `response_bytes`. `enough` gets the decoded bytes and whether they are complete. Reading also
/// stops after [`MAX_ERROR_BYTES`] or if the connection ends.
async fn read_body<H>(
    started: &mut ResponseStarted<H>,
    framing: ResponseFraming,
    buffers: SharedBuffers<'_>,
    response_bytes: &mut Vec<u8>,
    mut enough: impl FnMut(&[u8], bool) -> bool,
) {
    let mut decoder = BodyDecoder::for_response(framing);
    let (mut at, mut body) = (started.body_start, Vec::new());
    loop {
        let is_whole = loop {
            let Ok(step) = decoder.decode(&response_bytes[at..]) else {
                return;
            };
            body.extend_from_slice(&response_bytes[at + step.data.start..at + step.data.end]);
            at += step.consumed;
            if step.done || step.consumed == 0 {
                break step.done;
            }
        };
        if enough(&body, is_whole) || is_whole || response_bytes.len() - started.body_start > MAX_ERROR_BYTES
        {
            return;
        }
        let connection = &mut started.connection;
        let read = poll_fn(|context| {
            connection.poll_fill(context, buffers.incoming, response_bytes, READ_BUFFER_BYTES)
        });
        match read.await {
            Ok(0) if framing == ResponseFraming::UntilClose => {
                enough(&body, true);
                return;
            }
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// A failure at the start of a response with a success status.
pub struct EarlyFailure {
    /// The HTTP status that the failure is equivalent to.
    pub status: u16,
    /// Whether the failure reports that the prompt is too long.
    pub is_too_long: bool,
    /// The beginning of the text that reports the failure.
    pub excerpt: Vec<u8>,
}

/// Reads the beginning of a success response in `dialect`, and appends the raw bytes to `response_bytes`. Returns the
/// failure if the response starts with one. `framed`: whether the response arrives in AWS event-stream frames.
pub async fn read_early_failure<H>(
    started: &mut ResponseStarted<H>,
    (framing, framed): (ResponseFraming, bool),
    dialect: Dialect,
    buffers: SharedBuffers<'_>,
    response_bytes: &mut Vec<u8>,
) -> Option<EarlyFailure> {
    let mut failure = None;
    let mut reader = ResponseStartReader::new(dialect);
    let mut frames = framed.then(|| UnframedEvents::new(dialect));
    read_body(started, framing, buffers, response_bytes, |body, is_whole| {
        let events = match &mut frames {
            Some(frames) => match frames.events(body) {
                Some(events) => events,
                None => return true,
            },
            None => body,
        };
        let beginning = reader.inspect(events, is_whole);
        if let ResponseStart::Failure { status } = beginning {
            failure = Some(EarlyFailure {
                status,
                is_too_long: matches!(status, 400 | 413) && is_prompt_too_long(events),
                excerpt: events
                    .get(..events.len().min(MAX_EXCERPT_BYTES))
                    .unwrap_or_default()
                    .to_vec(),
            });
        }
        beginning != ResponseStart::Unknown
    })
    .await;
    failure
}

/// The events in Amazon's event-stream frames, decoded as they arrive.
struct UnframedEvents {
    frames: FrameDecoder,
    /// Bytes of the body that have been read.
    bytes_read: usize,
    events: Vec<u8>,
}

impl UnframedEvents {
    fn new(spoken: Dialect) -> Self {
        UnframedEvents {
            frames: FrameDecoder::new(spoken, MAX_ERROR_BYTES),
            bytes_read: 0,
            events: Vec::new(),
        }
    }

    /// Returns the events whose frames are complete in the body received so far; `None` if the frames are malformed.
    fn events(&mut self, body: &[u8]) -> Option<&[u8]> {
        self.frames.push(body.get(self.bytes_read..).unwrap_or_default());
        self.bytes_read = body.len();
        while self.frames.next_event(&mut self.events).ok()? {}
        Some(&self.events)
    }
}
