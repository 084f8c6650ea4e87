//! A response in which a provider declines a request, kept while other providers are tried.

use proofgate_base::response_head::ClientResponseHead;
use proofgate_upstream::attempt::ResponseStarted;

use super::upstream_outcome::UpstreamOutcome;
use crate::reply::Reply;

/// A response whose head was read. The client gets it unchanged if the request is not sent to
/// another provider.
pub struct DeferredResponse {
    started: ResponseStarted<ClientResponseHead>,
    withholds_usage: bool,
    /// The response head for the client.
    head: Vec<u8>,
    /// The bytes of the response that have been read.
    buffered: Vec<u8>,
}

impl DeferredResponse {
    /// Takes a response out of the connection's buffers.
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

    /// Puts the response back into the connection's buffers, so that it can be relayed.
    pub fn restore(self, reply: &mut Reply<'_>) -> UpstreamOutcome {
        reply.buffers.head = self.head;
        reply.buffers.upstream = self.buffered;
        UpstreamOutcome::Started {
            begun: self.started,
            keeps_usage: self.withholds_usage,
        }
    }
}
