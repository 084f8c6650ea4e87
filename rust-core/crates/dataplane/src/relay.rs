//! Carries an upstream's answer to the client as it arrives, and holds back its end until it is recorded.

use std::rc::Rc;
use std::time::Duration;

use proofgate_ledger::record::{Outcome, Usage};
use proofgate_providers::{DoneScanner, UsageTail};
use proofgate_wire::{
    BodyDecoder, HeadScanner, Limits, Method, Refusal, ResponseFraming, ResponseHead, encode, parse_response,
};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use crate::client::Client;
use crate::connection::After;
use crate::exchange::{CLIENT_CLOSED_REQUEST, Failure, OpenExchange, finish_with_answer};
use crate::gateway::Gateway;
use crate::lifecycle::{Lifecycle, Phase};
use crate::upstream::{Upstream, UpstreamStream};

/// How much an upstream may send behind its end marker.
const MAX_HELD: usize = 64 * 1024;
/// Room for one read from an upstream, in bytes.
const READ: usize = 16 * 1024;

/// Buffers of a connection, kept from exchange to exchange.
#[derive(Default)]
pub(crate) struct Buffers {
    /// A head under construction: of the request upstream, then of the answer.
    pub(crate) head: Vec<u8>,
    /// What was read from upstream and is not decoded yet.
    upstream: Vec<u8>,
    /// Decoded bytes on their way to the client.
    piece: Vec<u8>,
    /// The end of the answer, held back until its completion is written.
    held: Vec<u8>,
    usage: UsageTail,
}

/// Everything that one answer's way needs.
pub(crate) struct Relay<'c> {
    pub(crate) gateway: &'c Rc<Gateway>,
    pub(crate) client: &'c mut Client,
    pub(crate) buffers: &'c mut Buffers,
    pub(crate) lifecycle: &'c mut Lifecycle,
    pub(crate) close: bool,
    /// How long an upstream may be silent.
    pub(crate) silence: Duration,
}

/// The answer's head as far as the relay needs it after writing it anew.
struct Answering {
    status: u16,
    framing: ResponseFraming,
    /// Whether the body goes to the client in chunks.
    chunked: bool,
    events: bool,
    keep_alive: bool,
}

/// Why an answer did not come to its end.
enum Cut {
    Upstream(Failure),
    Client,
}

impl Relay<'_> {
    /// Relays one answer to its end, whatever that is, and records it.
    pub(crate) async fn run(
        mut self,
        mut open: OpenExchange,
        mut upstream: UpstreamStream,
        home: &Upstream,
    ) -> After {
        self.buffers.upstream.clear();
        self.buffers.piece.clear();
        self.buffers.held.clear();
        self.buffers.usage.clear();
        let answering = match self.response_head(&open, &mut upstream).await {
            Ok(answering) => answering,
            Err(Cut::Client) => {
                open.end(Outcome::ClientDisconnect, CLIENT_CLOSED_REQUEST, None);
                return After::Close;
            }
            Err(Cut::Upstream(failure)) => {
                let close = self.close;
                let (outcome, answer) = (failure.outcome(), failure.answer());
                return finish_with_answer(
                    self.gateway,
                    self.client,
                    self.buffers,
                    open,
                    outcome,
                    answer,
                    close,
                )
                .await;
            }
        };
        open.upstream_status = Some(answering.status);
        match self.body(&answering, &mut open, &mut upstream).await {
            Ok(reusable) => {
                if reusable {
                    home.put_back(upstream);
                }
                self.finish(&answering, open).await
            }
            Err(Cut::Client) => {
                open.end(Outcome::ClientDisconnect, answering.status, self.usage());
                After::Close
            }
            Err(Cut::Upstream(failure)) => self.break_off(&answering, open, failure).await,
        }
    }

    /// Reads the upstream's head and writes ours into the head buffer; it is not sent yet.
    async fn response_head(
        &mut self,
        open: &OpenExchange,
        upstream: &mut UpstreamStream,
    ) -> Result<Answering, Cut> {
        let limits = Limits {
            head_bytes: 64 * 1024,
            ..self.gateway.limits
        };
        let unreachable = |_| Cut::Upstream(Failure::Unreachable);
        let mut scanner = HeadScanner::new();
        loop {
            if let Some(length) = scanner
                .scan(&self.buffers.upstream, &limits)
                .map_err(unreachable)?
            {
                let head = parse_response(&self.buffers.upstream[..length], Method::Post, &limits);
                let head = head.map_err(unreachable)?;
                if head.status >= 200 {
                    let answering = write_head(&head, open.id.as_str(), self.close, &mut self.buffers.head);
                    self.buffers.upstream.drain(..length);
                    return answering.map_err(unreachable);
                }
                self.buffers.upstream.drain(..length);
                scanner.reset();
            } else if !self.read(upstream).await? {
                return Err(Cut::Upstream(Failure::Unreachable));
            }
        }
    }

    /// Relays the body up to what must be held back; says whether the upstream's connection can serve again.
    async fn body(
        &mut self,
        answering: &Answering,
        open: &mut OpenExchange,
        upstream: &mut UpstreamStream,
    ) -> Result<bool, Cut> {
        let mut decoder = BodyDecoder::for_response(answering.framing);
        let mut marker = DoneScanner::new();
        let mut ending = false;
        loop {
            let mut used = 0;
            let done = loop {
                let input = &self.buffers.upstream[used..];
                let step = decoder
                    .decode(input)
                    .map_err(|_| Cut::Upstream(Failure::Unreachable))?;
                let data = &input[step.data];
                if !data.is_empty() {
                    open.response.update(data);
                    open.bytes += data.len() as u64;
                    self.buffers.usage.push(data);
                    let released = match (ending, answering.events) {
                        (true, _) => 0,
                        (false, true) => marker.scan(data).inspect(|_| ending = true).unwrap_or(data.len()),
                        (false, false) => data.len(),
                    };
                    self.buffers.piece.extend_from_slice(&data[..released]);
                    self.buffers.held.extend_from_slice(&data[released..]);
                }
                used += step.consumed;
                if step.done || step.consumed == 0 {
                    break step.done;
                }
            };
            self.buffers.upstream.drain(..used);
            if done {
                return Ok(answering.keep_alive && self.buffers.upstream.is_empty());
            }
            if self.buffers.held.len() > MAX_HELD {
                return Err(Cut::Upstream(Failure::Unreachable));
            }
            if !self.buffers.piece.is_empty() || (answering.chunked && !self.buffers.head.is_empty()) {
                self.send_piece(answering).await?;
            }
            if !self.read(upstream).await? {
                return match answering.framing {
                    ResponseFraming::UntilClose => Ok(false),
                    _ => Err(Cut::Upstream(Failure::Unreachable)),
                };
            }
        }
    }

    /// Waits for bytes from upstream; `false` at the end of its stream.
    async fn read(&mut self, upstream: &mut UpstreamStream) -> Result<bool, Cut> {
        self.buffers.upstream.reserve(READ);
        tokio::select! {
            biased;
            read = timeout(self.silence, upstream.read_buf(&mut self.buffers.upstream)) => match read {
                Ok(Ok(length)) => Ok(length != 0),
                Ok(Err(_)) => Err(Cut::Upstream(Failure::Unreachable)),
                Err(_) => Err(Cut::Upstream(Failure::TimedOut)),
            },
            () = self.client.gone() => Err(Cut::Client),
            () = self.lifecycle.reached(Phase::Cancelled) => Err(Cut::Upstream(Failure::Drained)),
        }
    }

    /// Sends what is decoded, with the head before it if that has not left yet.
    async fn send_piece(&mut self, answering: &Answering) -> Result<(), Cut> {
        let Buffers { head, piece, .. } = &mut *self.buffers;
        let sent = if answering.chunked && !piece.is_empty() {
            encode::write_chunk_header(head, piece.len());
            self.client.send([head, piece, encode::CRLF]).await
        } else {
            self.client.send([head, piece, b""]).await
        };
        head.clear();
        piece.clear();
        sent.map_err(|_| Cut::Client)
    }

    /// Records the completion, then lets the end of the answer go.
    async fn finish(self, answering: &Answering, mut open: OpenExchange) -> After {
        let completion = open.end(Outcome::Complete, answering.status, self.usage());
        if self
            .gateway
            .recorder
            .written_or_stopped(completion)
            .await
            .is_err()
        {
            return After::Close;
        }
        let Buffers {
            head, piece, held, ..
        } = &mut *self.buffers;
        piece.append(held);
        let end: &[u8] = match (answering.chunked, piece.is_empty()) {
            (false, _) => b"",
            (true, true) => encode::LAST_CHUNK,
            (true, false) => {
                encode::write_chunk_header(head, piece.len());
                b"\r\n0\r\n\r\n"
            }
        };
        match self.client.send([head, piece, end]).await {
            Ok(()) if self.close => After::Linger,
            Ok(()) => After::Continue,
            Err(_) => After::Close,
        }
    }

    /// Ends an answer that its upstream left unfinished, so that no client can take it for a whole one.
    async fn break_off(mut self, answering: &Answering, mut open: OpenExchange, failure: Failure) -> After {
        let completion = open.end(failure.outcome(), answering.status, self.usage());
        if answering.events && self.gateway.recorder.written_or_stopped(completion).await.is_ok() {
            self.buffers.piece.extend_from_slice(b"data: ");
            self.buffers.piece.extend_from_slice(&failure.answer().json());
            self.buffers.piece.extend_from_slice(b"\n\n");
            let _ = self.send_piece(answering).await;
        }
        After::Close
    }

    fn usage(&self) -> Option<Usage> {
        let usage = self.buffers.usage.usage()?;
        Some(Usage {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
        })
    }
}

/// Writes our head for an upstream's answer: its end-to-end fields, our framing, our request id.
fn write_head(
    head: &ResponseHead<'_>,
    id: &str,
    close: bool,
    out: &mut Vec<u8>,
) -> Result<Answering, Refusal> {
    out.clear();
    encode::write_status_line(out, head.status)?;
    let mut events = false;
    for (name, value) in head.headers.iter() {
        if name.eq_ignore_ascii_case("content-type") {
            events = value.len() >= 17 && value[..17].eq_ignore_ascii_case(b"text/event-stream");
        }
        if !is_ours(name) && !head.headers.is_hop_by_hop(name) {
            encode::write_header(out, name, value)?;
        }
    }
    let chunked = match head.framing {
        ResponseFraming::Empty => false,
        ResponseFraming::Length(_) => events,
        ResponseFraming::Chunked | ResponseFraming::UntilClose => true,
    };
    match head.framing {
        ResponseFraming::Empty if !matches!(head.status, 204 | 304) => encode::write_content_length(out, 0),
        ResponseFraming::Length(length) if !chunked => encode::write_content_length(out, length),
        _ if chunked => encode::write_chunked(out),
        _ => {}
    }
    encode::write_header(out, "x-request-id", id.as_bytes())?;
    if close {
        encode::write_header(out, "connection", b"close")?;
    }
    out.extend_from_slice(encode::CRLF);
    Ok(Answering {
        status: head.status,
        framing: head.framing,
        chunked,
        events,
        keep_alive: head.keep_alive,
    })
}

/// Fields that the gateway sets itself, or that would carry state between the tenants behind one upstream connection.
fn is_ours(name: &str) -> bool {
    [
        "content-length",
        "transfer-encoding",
        "x-request-id",
        "set-cookie",
        "alt-svc",
    ]
    .iter()
    .any(|ours| name.eq_ignore_ascii_case(ours))
}
