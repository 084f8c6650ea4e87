//! Reading an upstream's answer.

use std::future::poll_fn;
use std::pin::pin;
use std::time::Duration;

use proofgate_stages::Stage;
use proofgate_wire::{HeadScanner, Limits, Method, parse_response};
use tokio::io::AsyncReadExt;
use tokio::time::Instant;

use crate::answer::AnswerOptions;
use crate::failure::{Aborted, Failure};
use crate::gateway::Gateway;
use crate::lifecycle::Phase;
use crate::open_exchange::OpenExchange;
use crate::reply::Reply;
use crate::response_head::{AnswerHead, Scrutiny, write_head};
use crate::upstream::UpstreamStream;

/// Room for one read from an upstream, in bytes.
const READ: usize = 16 * 1024;
/// Room for what is read that is kept for others, in bytes.
const MAX_KEPT: usize = 64 * 1024;

/// How long the end of a whole answer waits for the end of its transfer, so that the connection can serve again.
const END: Duration = Duration::from_secs(1);

/// Where an answer comes from.
pub(super) struct Source<'r> {
    pub(super) gateway: &'r Gateway,
    pub(super) upstream: UpstreamStream,
    /// How long it may be silent.
    pub(super) silence: Duration,
    /// When its answer must be over.
    pub(super) until: Option<Instant>,
}

impl Source<'_> {
    /// Reads the upstream's head and writes ours into the head buffer; it is not sent yet. Says also where the body
    /// begins in the upstream buffer.
    pub(super) async fn head(
        &mut self,
        reply: &mut Reply<'_>,
        open: &mut OpenExchange,
    ) -> Result<(AnswerHead, usize), Aborted> {
        let limits = Limits {
            head_bytes: 64 * 1024,
            ..open.catalog.terms.limits
        };
        let unreachable = |_| Aborted::Upstream(Failure::Unreachable);
        let mut scanner = HeadScanner::new();
        let mut begun = false;
        loop {
            if let Some(length) = scanner
                .scan(&reply.buffers.upstream, &limits)
                .map_err(unreachable)?
            {
                let buffers = &mut *reply.buffers;
                let parsed = parse_response(&buffers.upstream[..length], Method::Post, &limits);
                let head = parsed.as_ref().map_err(|refusal| unreachable(*refusal))?;
                if matches!(head.status, 401 | 403) {
                    // It speaks of the gateway's key, and may quote it.
                    open.upstream_status = Some(head.status);
                    return Err(Aborted::Upstream(Failure::Unauthorized));
                }
                let answer_head = (head.status >= 200).then(|| {
                    let options = AnswerOptions {
                        close: reply.close,
                        head_only: false,
                        extra: reply.extra,
                        family: reply.dialect.family(),
                    };
                    let scrutiny = match open.masks {
                        // It is held to its end, as for rules.
                        Some(_) => Scrutiny::Enforce,
                        None => Scrutiny::of(&open.catalog.terms.plan(&open.tenant).profile),
                    };
                    self.gateway.spare.lend(&mut buffers.head);
                    write_head(head, open.id.as_str(), options, scrutiny, &mut buffers.head)
                });
                drop(parsed);
                if let Some(answer_head) = answer_head {
                    return Ok((answer_head.map_err(unreachable)?, length));
                }
                buffers.upstream.drain(..length);
                scanner.reset();
            } else {
                if !self.read(reply).await? {
                    return Err(Aborted::Upstream(Failure::Unreachable));
                }
                if !std::mem::replace(&mut begun, true) {
                    open.span.lap_now(Stage::UpstreamWait);
                }
            }
        }
    }

    /// Waits for bytes from upstream; `false` at the end of its stream.
    pub(super) async fn read(&mut self, reply: &mut Reply<'_>) -> Result<bool, Aborted> {
        self.read_within(reply, self.silence).await
    }

    /// The same for what only ends the transfer of an answer that is whole.
    pub(super) async fn read_end(&mut self, reply: &mut Reply<'_>) -> Result<bool, Aborted> {
        self.read_within(reply, END).await
    }

    async fn read_within(&mut self, reply: &mut Reply<'_>, patience: Duration) -> Result<bool, Aborted> {
        let (incoming, buffer) = (&self.gateway.incoming, &mut reply.buffers.upstream);
        // What waits has no memory: of the connections that wait, one reads at a time.
        let read = poll_fn(|context| {
            if buffer.is_empty() {
                *buffer = incoming.take();
                buffer.clear();
            }
            buffer.reserve(READ);
            let polled = pin!(self.upstream.read_buf(buffer)).poll(context);
            if polled.is_pending() && buffer.is_empty() {
                incoming.set(std::mem::take(buffer));
            }
            polled
        });
        tokio::select! {
            biased;
            read = reply.deadline.within_until(patience, self.until, read) => match read {
                Ok(Ok(length)) => Ok(length != 0),
                Ok(Err(_)) => Err(Aborted::Upstream(Failure::Unreachable)),
                Err(_) => Err(Aborted::Upstream(Failure::TimedOut)),
            },
            () = reply.client.gone() => Err(Aborted::Client),
            () = reply.lifecycle.reached(Phase::Cancelled) => Err(Aborted::Upstream(Failure::Drained)),
        }
    }

    /// Gives the upstream buffer, of which everything has been used, to whoever reads next.
    pub(super) fn lend(&self, reply: &mut Reply<'_>) {
        let buffer = std::mem::take(&mut reply.buffers.upstream);
        if buffer.capacity() <= MAX_KEPT {
            self.gateway.incoming.set(buffer);
        }
    }
}
