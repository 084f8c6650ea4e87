//! An answer by which a provider declines a request, while it is not known whether another one takes it.

use proofgate_base::response_head::ClientResponseHead;
use proofgate_upstream::attempt::ResponseStarted;

use super::heard::UpstreamOutcome;
use crate::reply::Reply;

/// An answer whose head is read. If nobody else is sent the request, its client gets it as it came.
pub struct DeferredResponse {
    started: ResponseStarted<ClientResponseHead>,
    withholds_usage: bool,
    /// The client's head for it.
    head: Vec<u8>,
    /// What was read of it.
    buffered: Vec<u8>,
}

impl DeferredResponse {
    /// Keeps an answer, with the buffers that it stands in.
    pub(super) fn new(
        begun: ResponseStarted<ClientResponseHead>,
        keeps_usage: bool,
        head: &mut Vec<u8>,
        answer: &mut Vec<u8>,
    ) -> Self {
        DeferredResponse {
            started: begun,
            withholds_usage: keeps_usage,
            head: std::mem::take(head),
            buffered: std::mem::take(answer),
        }
    }

    /// Puts it back, to be relayed.
    pub fn restore(self, reply: &mut Reply<'_>) -> UpstreamOutcome {
        reply.buffers.head = self.head;
        reply.buffers.upstream = self.buffered;
        UpstreamOutcome::Started {
            begun: self.started,
            keeps_usage: self.withholds_usage,
        }
    }
}
