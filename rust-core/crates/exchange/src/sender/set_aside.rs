//! An answer by which a provider declines a request, while it is not known whether another one takes it.

use proofgate_base::response_head::AnswerHead;
use proofgate_upstream::attempt::Begun;

use crate::reply::Reply;
use crate::sender::{Heard, Sender};

/// An answer whose head is read. If nobody else is sent the request, its client gets it as it came.
pub struct SetAside {
    begun: Begun<AnswerHead>,
    keeps_usage: bool,
    /// The client's head for it.
    head: Vec<u8>,
    /// What was read of it.
    answer: Vec<u8>,
}

impl Sender<'_, '_> {
    /// Keeps an answer, with the buffers that it stands in.
    pub(super) fn set_aside(
        &self,
        begun: Begun<AnswerHead>,
        keeps_usage: bool,
        head: &mut Vec<u8>,
        answer: &mut Vec<u8>,
    ) {
        self.set_aside.set(Some(Box::new(SetAside {
            begun,
            keeps_usage,
            head: std::mem::take(head),
            answer: std::mem::take(answer),
        })));
    }
}

impl SetAside {
    /// Puts it back, to be relayed.
    pub fn restore(self, reply: &mut Reply<'_>) -> Heard {
        reply.buffers.head = self.head;
        reply.buffers.upstream = self.answer;
        Heard::Begun {
            begun: self.begun,
            keeps_usage: self.keeps_usage,
        }
    }
}
