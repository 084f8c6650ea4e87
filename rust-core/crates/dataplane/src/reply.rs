//! The client's side of one exchange: what an answer needs, and answers of our own.

use proofgate_ledger::record::{Outcome, Usage};
use proofgate_providers::{Dialect, Family, FrameWriter};
use proofgate_stages::Stage;

use crate::answer::{Answer, AnswerOptions};
use crate::client::{After, Client};
use crate::deadline::Deadline;
use crate::lifecycle::Lifecycle;
use crate::open_exchange::OpenExchange;
use crate::spare::Spare;

/// Buffers of a connection while it answers.
#[derive(Default)]
pub(crate) struct Buffers {
    /// The head of an answer under construction, and what leaves behind it.
    pub(crate) head: Vec<u8>,
    /// What was read from upstream and is not decoded yet. While it is empty its memory serves other connections.
    pub(crate) upstream: Vec<u8>,
}

impl Buffers {
    /// Gives the memory to others: the connection waits for its next request.
    pub(crate) fn give_back(&mut self, spare: &Spare) {
        for buffer in [&mut self.head, &mut self.upstream] {
            buffer.clear();
            spare.take_back(buffer);
        }
    }
}

/// The client's side of an exchange, for its answer.
pub(crate) struct Reply<'c> {
    pub(crate) client: &'c mut Client,
    pub(crate) buffers: &'c mut Buffers,
    /// Header lines that the answer gets besides its own.
    pub(crate) extra: &'c mut Vec<u8>,
    pub(crate) lifecycle: &'c mut Lifecycle,
    pub(crate) deadline: &'c mut Deadline,
    /// Whether the connection ends with the answer.
    pub(crate) close: bool,
    /// What the client speaks.
    pub(crate) dialect: Dialect,
    /// What writes events as Amazon's frames, for a client that speaks to Bedrock's InvokeModel.
    pub(crate) frames: Option<Box<FrameWriter>>,
}

impl Reply<'_> {
    /// In whose shape an error is said.
    pub(crate) fn family(&self) -> Family {
        match self.frames {
            Some(_) => Family::Amazon,
            None => self.dialect.family(),
        }
    }
}

/// Ends an exchange with an answer of our own, which leaves only after its completion is written.
pub(crate) async fn finish_with_answer(
    reply: &mut Reply<'_>,
    mut open: Box<OpenExchange>,
    outcome: Outcome,
    answer: Answer<'_>,
    usage: Option<Usage>,
) -> After {
    open.error = Some(answer.code);
    open.respond(&answer.json(reply.family()));
    let id = open.id;
    open.store().await;
    let completion = open.end(outcome, answer.status, usage);
    if !open.written(completion, Stage::CompletionRecord).await {
        return After::Close;
    }
    let after = send_answer(reply, &answer, id.as_str()).await;
    open.sent();
    after
}

/// Sends an answer of our own.
pub(crate) async fn send_answer(reply: &mut Reply<'_>, answer: &Answer<'_>, id: &str) -> After {
    reply.buffers.head.clear();
    let options = AnswerOptions {
        close: reply.close,
        head_only: false,
        extra: reply.extra,
        family: reply.family(),
    };
    answer.write(id, options, &mut reply.buffers.head);
    match reply.client.send(&reply.buffers.head).await {
        Ok(()) if reply.close => After::Linger,
        Ok(()) => After::Continue,
        Err(_) => After::Close,
    }
}
