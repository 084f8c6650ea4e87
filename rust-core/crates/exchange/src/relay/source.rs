//! Reading an upstream's answer.

use std::future::poll_fn;
use std::time::Duration;

use proofgate_base::lifecycle::Phase;
use proofgate_upstream::attempt::READ;
use proofgate_upstream::failure::{Aborted, Failure, Timeout};
use proofgate_upstream::upstream::UpstreamStream;
use tokio::time::Instant;

use super::sink::send_heartbeat;
use crate::gateway::Gateway;
use crate::open_exchange::OpenExchange;
use crate::reply::Reply;

/// Room for what is read that is kept for others, in bytes.
const MAX_KEPT: usize = 64 * 1024;

/// How long the end of a whole answer waits for the end of its transfer, so that the connection can serve again.
pub(super) const END: Duration = Duration::from_secs(1);

/// How long a part of an event waits for the rest before it is looked at.
pub(super) const PAUSE: Duration = Duration::from_millis(100);

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
    /// Waits for bytes from upstream; `false` at the end of its stream. It has waited for `waited` already.
    pub(super) async fn read(&mut self, reply: &mut Reply<'_>, waited: Duration) -> Result<bool, Aborted> {
        self.read_within(reply, self.silence.saturating_sub(waited)).await
    }

    /// The same, with less patience.
    pub(super) async fn read_for(
        &mut self,
        reply: &mut Reply<'_>,
        patience: Duration,
    ) -> Result<bool, Aborted> {
        self.read_within(reply, patience.min(self.silence)).await
    }

    /// Goes on waiting for bytes of a stream that has been silent for `interval`: each time it has been, its client is told
    /// that it goes on.
    pub(super) async fn read_beating(
        &mut self,
        reply: &mut Reply<'_>,
        open: &mut OpenExchange,
        interval: Duration,
    ) -> Result<bool, Aborted> {
        let mut left = self.silence;
        loop {
            left = left.saturating_sub(interval);
            if left.is_zero() {
                return Err(Aborted::Upstream(Failure::timed_out(Timeout::Idle, self.until)));
            }
            send_heartbeat(&self.gateway.buffers, reply, open).await?;
            match self.read_within(reply, left.min(interval)).await {
                Err(Aborted::Upstream(Failure::TimedOut(Timeout::Idle))) => {}
                read => return read,
            }
        }
    }

    /// The same for what only ends the transfer of an answer that is whole, of whose patience so much is left.
    pub(super) async fn read_end(&mut self, reply: &mut Reply<'_>, left: Duration) -> Result<bool, Aborted> {
        self.read_within(reply, left).await
    }

    async fn read_within(&mut self, reply: &mut Reply<'_>, patience: Duration) -> Result<bool, Aborted> {
        let (upstream, incoming, buffer) = (
            &mut self.upstream,
            &self.gateway.buffers.incoming,
            &mut reply.buffers.upstream,
        );
        // What waits has no memory: of the connections that wait, one reads at a time.
        let read = poll_fn(|context| upstream.poll_fill(context, incoming, buffer, READ));
        tokio::select! {
            biased;
            read = reply.deadline.within_until(patience, self.until, read) => match read {
                Ok(Ok(length)) => Ok(length != 0),
                Ok(Err(_)) => Err(Aborted::Upstream(Failure::Unreachable)),
                Err(_) => Err(Aborted::Upstream(Failure::timed_out(Timeout::Idle, self.until))),
            },
            () = reply.client.gone() => Err(Aborted::Client),
            () = reply.lifecycle.reached(Phase::Cancelled) => Err(Aborted::Upstream(Failure::Drained)),
        }
    }

    /// Gives the upstream buffer, of which everything has been used, to whoever reads next.
    pub(super) fn lend(&self, reply: &mut Reply<'_>) {
        let buffer = std::mem::take(&mut reply.buffers.upstream);
        if buffer.capacity() <= MAX_KEPT {
            self.gateway.buffers.incoming.set(buffer);
        }
    }
}
