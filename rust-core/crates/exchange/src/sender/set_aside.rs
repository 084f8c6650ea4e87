//! An answer by which a provider declines a request, while it is not known whether another one takes it.

use proofgate_base::response_head::AnswerHead;
use proofgate_upstream::attempt::ResponseStarted;

use super::heard::UpstreamOutcome;
use crate::reply::Reply;

/// An answer whose head is read. If nobody else is sent the request, its client gets it as it came.
pub struct SetAside {
    begun: ResponseStarted<AnswerHead>,
    keeps_usage: bool,
    /// The client's head for it.
    head: Vec<u8>,
    /// What was read of it.
    answer: Vec<u8>,
}

impl SetAside {
    /// Keeps an answer, with the buffers that it stands in.
    pub(super) fn new(
        begun: ResponseStarted<AnswerHead>,
        keeps_usage: bool,
        head: &mut Vec<u8>,
        answer: &mut Vec<u8>,
    ) -> Self {
        SetAside {
            begun,
            keeps_usage,
            head: std::mem::take(head),
            answer: std::mem::take(answer),
        }
    }

    /// Puts it back, to be relayed.
    pub fn restore(self, reply: &mut Reply<'_>) -> UpstreamOutcome {
        reply.buffers.head = self.head;
        reply.buffers.upstream = self.answer;
        UpstreamOutcome::Begun {
            begun: self.begun,
            keeps_usage: self.keeps_usage,
        }
    }
}
