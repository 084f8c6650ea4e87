//! One attempt: a request to one provider, as far as the head of its answer. It knows neither the client nor the ledger.

use std::cell::Cell;
use std::future::poll_fn;
use std::ops::Range;

use proofgate_config::StreamUsage;
use proofgate_ledger::record::SendOutcome;
use proofgate_providers::{
    Beginning, BeginningReader, Call, Dialect, FrameEvents, RequestTemplate, UpstreamBody,
    says_prompt_is_too_long,
};
use proofgate_stages::{Span, Stage};
use proofgate_wire::{
    BodyDecoder, HeadScanner, Limits, MAX_HEADERS, Method, ResponseFraming, ResponseHead, parse_response,
};

use crate::delivery::{Executed, Leading, deliver};
use crate::failure::Failure;
use crate::upstream::{Upstream, UpstreamStream};

/// Up to so many bytes a copy costs less than a vectored write.
const ONE_PIECE: usize = 16 * 1024;
/// Room for one read from an upstream, in bytes.
pub const READ: usize = 16 * 1024;
/// Most bytes of an answer's head.
const HEAD_BYTES: usize = 64 * 1024;

/// The body that goes upstream: with the model's name replaced where the manifest says so, and, if it is for a stream,
/// asking for usage. Says also whether the client did not ask for that.
///
/// `body` is what the client sent, or what the rules made of it; the value of `model` stands at `model` there.
pub fn upstream_body<'b>(
    usage: StreamUsage,
    replacement: Option<&'b [u8]>,
    call: &Call<'_>,
    body: &'b [u8],
    model: Range<usize>,
    rewritten: bool,
) -> (UpstreamBody<'b>, bool) {
    let usage = match usage {
        StreamUsage::Leave => None,
        StreamUsage::Ask if rewritten && call.has_stream_options() => {
            let call = Call::parse(call.dialect, body).ok();
            call.and_then(|call| call.usage_edit(&model))
        }
        StreamUsage::Ask => call.usage_edit(&model),
    };
    // Where the path names the model, the body does not.
    let name = replacement.filter(|_| !model.is_empty());
    let name = name.map(|name| (model, name));
    (UpstreamBody::new(body, [name, usage.clone()]), usage.is_some())
}

/// How far an attempt has come. It is kept outside of it, so that it is known also when nobody waits for its end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reached {
    pub executed: Executed,
    /// The status of the answer.
    pub status: Option<u16>,
}

impl Reached {
    pub fn sent(self) -> SendOutcome {
        match (self.status, self.executed) {
            (Some(_), _) => SendOutcome::Answered,
            (None, Executed::Maybe) => SendOutcome::Maybe,
            (None, Executed::No) => SendOutcome::No,
        }
    }
}

/// A request for one provider.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    pub to: &'a Upstream,
    pub template: &'a RequestTemplate,
    /// What the path ends in.
    pub model: &'a str,
    /// Header lines of this request alone.
    pub fields: &'a [u8],
    pub id: &'a str,
    /// When it is sent, in unix seconds; 0 where nobody signs it.
    pub at: u64,
    pub body: UpstreamBody<'a>,
    /// Of a body that is still coming, how long all of it is, where that is known: `body` is what there is of it.
    pub rest: Option<Option<u64>>,
}

/// Memory that all attempts share.
#[derive(Clone, Copy)]
pub struct Lent<'a> {
    /// Where a request is put together.
    pub outgoing: &'a Cell<Vec<u8>>,
    /// Of those who wait to read.
    pub incoming: &'a Cell<Vec<u8>>,
}

/// An answer that has begun.
pub struct ResponseStarted<H> {
    pub connection: UpstreamStream,
    /// What was made of its head.
    pub head: H,
    /// Where its body begins in what was read.
    pub body: usize,
}

/// Sends a request, and reads the head of the answer into `answer`; `accept` says what is made of it.
///
/// # Errors
/// Why there is no answer, or what `accept` has against it.
pub async fn attempt<H>(
    request: Request<'_>,
    limits: Limits,
    reached: &mut Reached,
    span: &mut Span,
    lent: Lent<'_>,
    answer: &mut Vec<u8>,
    mut accept: impl FnMut(&ResponseHead<'_>) -> Result<H, Failure>,
) -> Result<ResponseStarted<H>, Failure> {
    let mut again = true;
    loop {
        answer.clear();
        let connection = send(request, limits, reached, span, lent, answer).await?;
        match hear(connection, limits, reached, span, lent, answer, &mut accept).await {
            // A provider that takes leave of a session has not looked at what came last: it has that once more.
            Err(Failure::Unconnected) if std::mem::take(&mut again) => {}
            heard => return heard,
        }
    }
}

/// Reads the head of the answer on a connection over which a request was sent; of it `answer` has what came before.
pub async fn hear<H>(
    mut connection: UpstreamStream,
    limits: Limits,
    reached: &mut Reached,
    span: &mut Span,
    lent: Lent<'_>,
    answer: &mut Vec<u8>,
    mut accept: impl FnMut(&ResponseHead<'_>) -> Result<H, Failure>,
) -> Result<ResponseStarted<H>, Failure> {
    let limits = Limits {
        head_bytes: HEAD_BYTES,
        headers: MAX_HEADERS,
        ..limits
    };
    let mut scanner = HeadScanner::new();
    let mut begun = false;
    loop {
        let scanned = scanner.scan(answer, &limits);
        if let Some(length) = scanned.map_err(|_| Failure::Unreachable)? {
            let parsed = parse_response(&answer[..length], Method::Post, &limits);
            let head = parsed.as_ref().map_err(|_| Failure::Unreachable)?;
            if head.status >= 200 {
                reached.status = Some(head.status);
                let head = accept(head)?;
                return Ok(ResponseStarted {
                    connection,
                    head,
                    body: length,
                });
            }
            drop(parsed);
            answer.drain(..length);
            scanner.reset();
        } else {
            let read = poll_fn(|context| connection.poll_fill(context, lent.incoming, answer, READ));
            if !read.await.is_ok_and(|read| read != 0) {
                if connection.is_unprocessed() {
                    reached.executed = Executed::No;
                    return Err(Failure::Unconnected);
                }
                return Err(Failure::Unreachable);
            }
            if !std::mem::replace(&mut begun, true) {
                span.lap_now(Stage::UpstreamWait);
            }
        }
    }
}

/// Sends a request; returns the connection on which the answer is to be read. What came of it before the request had left
/// is in `early`.
pub async fn send(
    request: Request<'_>,
    limits: Limits,
    reached: &mut Reached,
    span: &mut Span,
    lent: Lent<'_>,
    early: &mut Vec<u8>,
) -> Result<UpstreamStream, Failure> {
    let Request {
        to,
        template,
        model,
        fields,
        id,
        at,
        body,
        rest,
    } = request;
    let mut signed = Vec::new();
    if let Some(signer) = &to.signer {
        signed.extend_from_slice(fields);
        signer.sign(template, model, &body, at, &mut signed).await;
    }
    let fields = if signed.is_empty() { fields } else { &signed };
    let mut head = lent.outgoing.take();
    head.clear();
    let length = body.length();
    match rest {
        None => template.write(id, length, model, fields, &mut head),
        Some(all) => template.write_with(id, all, model, fields, &mut head),
    }
    let mut leading = Leading {
        head: head.len(),
        framing: 0,
    };
    if rest == Some(None) {
        // The first chunk; its end stands before the next one.
        head.extend_from_slice(format!("{length:x}\r\n").as_bytes());
        leading.framing = head.len() - leading.head;
    }
    let mut parts = body.parts();
    if length <= ONE_PIECE {
        for part in &mut parts {
            head.extend_from_slice(part);
            *part = &[];
        }
    }
    span.lap_now(Stage::Adapt);
    let [one, two, three, four, five] = parts;
    let message = [&head[..], one, two, three, four, five];
    let mut partly = Executed::No;
    let executed = match rest {
        None => &mut reached.executed,
        Some(_) => &mut partly,
    };
    let message = (message, leading);
    let delivered = deliver(to, message, limits, executed, span, lent.incoming, early).await;

    lent.outgoing.set(head);
    delivered
}

/// Most bytes of an error's body that are read to see what it says.
const ERROR_BYTES: usize = 64 * 1024;

/// What is kept of an answer that begins with a failure, in bytes.
const SAID: usize = 4096;

/// Reads on until the body of an answer is whole, and returns it decoded; what was read stays in `answer`. `None` when it is too long for an
/// error, or does not come to its end.
pub async fn whole_body<H>(
    begun: &mut ResponseStarted<H>,
    framing: ResponseFraming,
    lent: Lent<'_>,
    answer: &mut Vec<u8>,
) -> Option<Vec<u8>> {
    let mut whole = None;
    read_body(begun, framing, lent, answer, |body, is_whole| {
        whole = is_whole.then(|| body.to_vec());
        is_whole
    })
    .await;
    whole
}

/// Reads the body of an answer, of which the bytes stay in `answer`, until `enough` says so of what is decoded and whether that is all; or until it
/// is longer than an error may be, or does not go on.
async fn read_body<H>(
    begun: &mut ResponseStarted<H>,
    framing: ResponseFraming,
    lent: Lent<'_>,
    answer: &mut Vec<u8>,
    mut enough: impl FnMut(&[u8], bool) -> bool,
) {
    let mut decoder = BodyDecoder::for_response(framing);
    let (mut at, mut body) = (begun.body, Vec::new());
    loop {
        let is_whole = loop {
            let Ok(step) = decoder.decode(&answer[at..]) else {
                return;
            };
            body.extend_from_slice(&answer[at + step.data.start..at + step.data.end]);
            at += step.consumed;
            if step.done || step.consumed == 0 {
                break step.done;
            }
        };
        if enough(&body, is_whole) || is_whole || answer.len() - begun.body > ERROR_BYTES {
            return;
        }
        let connection = &mut begun.connection;
        let read = poll_fn(|context| connection.poll_fill(context, lent.incoming, answer, READ));
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

/// A failure with which an answer of success begins.
pub struct EarlyFailure {
    /// The status that says the same.
    pub status: u16,
    /// Whether it says that the prompt is too long.
    pub is_too_long: bool,
    /// The begin of what says so.
    pub said: Vec<u8>,
}

/// Reads an answer of success, in the dialect `spoken`, until it has begun to be one; what was read stays in `answer`. Returns the failure that it begins
/// with instead, if it does. `framed`: whether it comes in Amazon's frames.
pub async fn early_failure<H>(
    begun: &mut ResponseStarted<H>,
    (framing, framed): (ResponseFraming, bool),
    spoken: Dialect,
    lent: Lent<'_>,
    answer: &mut Vec<u8>,
) -> Option<EarlyFailure> {
    let mut failure = None;
    let mut reader = BeginningReader::new(spoken);
    let mut frames = framed.then(|| Unframed::new(spoken));
    read_body(begun, framing, lent, answer, |body, is_whole| {
        let events = match &mut frames {
            Some(frames) => match frames.events(body) {
                Some(events) => events,
                None => return true,
            },
            None => body,
        };
        let beginning = reader.look(events, is_whole);
        if let Beginning::Failure { status } = beginning {
            failure = Some(EarlyFailure {
                status,
                is_too_long: matches!(status, 400 | 413) && says_prompt_is_too_long(events),
                said: events.get(..events.len().min(SAID)).unwrap_or_default().to_vec(),
            });
        }
        beginning != Beginning::Unknown
    })
    .await;
    failure
}

/// The events of Amazon's frames, as these come.
struct Unframed {
    frames: FrameEvents,
    /// Bytes of the body that have been read.
    read: usize,
    events: Vec<u8>,
}

impl Unframed {
    fn new(spoken: Dialect) -> Self {
        Unframed {
            frames: FrameEvents::new(spoken, ERROR_BYTES),
            read: 0,
            events: Vec::new(),
        }
    }

    /// Those whose frames are whole in a body that has come so far; `None` when they are malformed.
    fn events(&mut self, body: &[u8]) -> Option<&[u8]> {
        self.frames.push(body.get(self.read..).unwrap_or_default());
        self.read = body.len();
        while self.frames.next_event(&mut self.events).ok()? {}
        Some(&self.events)
    }
}
