//! Reads an upstream's response.

use std::future::poll_fn;
use std::time::Duration;

use proofgate_base::lifecycle::Phase;
use proofgate_upstream::attempt::READ_BUFFER_BYTES;
use proofgate_upstream::failure::{AbortReason, Failure, Timeout};
use proofgate_upstream::upstream::UpstreamStream;
use tokio::time::Instant;

use super::sink::send_heartbeat;
use crate::gateway::Gateway;
use crate::open_exchange::OpenExchange;
use crate::reply::Reply;

/// Maximum capacity in bytes of a read buffer that is kept for other connections.
const MAX_RETAINED_BYTES: usize = 64 * 1024;

/// Maximum wait for the end of the transfer after a complete response. Without that end, the
/// connection cannot be reused.
pub(super) const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum wait for the rest of an incomplete event before its part is examined.
pub(super) const PARTIAL_EVENT_WAIT: Duration = Duration::from_millis(100);

/// The upstream side of a response.
pub(super) struct Source<'r> {
    pub(super) gateway: &'r Gateway,
    pub(super) upstream: UpstreamStream,
    /// The maximum time between two reads from the upstream.
    pub(super) silence_timeout: Duration,
    /// Deadline of the complete response; `None` without a limit.
    pub(super) response_deadline: Option<Instant>,
}

impl Source<'_> {
    /// Waits for bytes from the upstream; returns `false` at the end of the stream. `waited` is the
    /// time that the caller has already waited.
    pub(super) async fn read(
        &mut self,
        reply: &mut Reply<'_>,
        waited: Duration,
    ) -> Result<bool, AbortReason> {
        self.read_with_timeout(reply, self.silence_timeout.saturating_sub(waited))
            .await
    }

    /// Like [`Source::read`], with a shorter timeout.
    pub(super) async fn read_at_most(
        &mut self,
        reply: &mut Reply<'_>,
        patience: Duration,
    ) -> Result<bool, AbortReason> {
        self.read_with_timeout(reply, patience.min(self.silence_timeout))
            .await
    }

    /// Waits for more bytes of a stream that has already been silent for `interval`. Sends the
    /// client a heartbeat now and after each further silent interval.
    pub(super) async fn read_with_heartbeats(
        &mut self,
        reply: &mut Reply<'_>,
        open: &mut OpenExchange,
        interval: Duration,
    ) -> Result<bool, AbortReason> {
        let mut left = self.silence_timeout;
        loop {
            left = left.saturating_sub(interval);
            if left.is_zero() {
                return Err(AbortReason::Upstream(Failure::timed_out(
                    Timeout::Idle,
                    self.response_deadline,
                )));
            }
            send_heartbeat(&self.gateway.buffers, reply, open).await?;
            match self.read_with_timeout(reply, left.min(interval)).await {
                Err(AbortReason::Upstream(Failure::TimedOut(Timeout::Idle))) => {}
                read => return read,
            }
        }
    }

    /// Like [`Source::read`], for a complete response of which only the end of the transfer is
    /// missing. `left` is the remaining time.
    pub(super) async fn read_end(
        &mut self,
        reply: &mut Reply<'_>,
        left: Duration,
    ) -> Result<bool, AbortReason> {
        self.read_with_timeout(reply, left).await
    }

    async fn read_with_timeout(
        &mut self,
        reply: &mut Reply<'_>,
        patience: Duration,
    ) -> Result<bool, AbortReason> {
        let (upstream, incoming, buffer) = (
            &mut self.upstream,
            &self.gateway.buffers.incoming,
            &mut reply.buffers.upstream,
        );
        // A waiting connection has no buffer, because only one connection reads at a time.
        let read = poll_fn(|context| upstream.poll_fill(context, incoming, buffer, READ_BUFFER_BYTES));
        tokio::select! {
            biased;
            read = reply.deadline.with_timeout_and_deadline(patience, self.response_deadline, read) => match read {
                Ok(Ok(length)) => Ok(length != 0),
                Ok(Err(_)) => Err(AbortReason::Upstream(Failure::Unreachable)),
                Err(_) => Err(AbortReason::Upstream(Failure::timed_out(Timeout::Idle, self.response_deadline))),
            },
            () = reply.client.wait_for_disconnect() => Err(AbortReason::Client),
            () = reply.lifecycle.wait_for(Phase::Cancelled) => Err(AbortReason::Upstream(Failure::Draining)),
        }
    }

    /// Gives the fully consumed upstream buffer to the next reader.
    pub(super) fn release_buffer(&self, reply: &mut Reply<'_>) {
        let buffer = std::mem::take(&mut reply.buffers.upstream);
        if buffer.capacity() <= MAX_RETAINED_BYTES {
            self.gateway.buffers.incoming.set(buffer);
        }
    }
}
