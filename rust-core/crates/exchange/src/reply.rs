//! The client's side of one exchange: what an answer needs, and answers of our own.

use proofgate_base::answer::{ErrorResponse, ResponseOptions};
use proofgate_base::client::{AfterExchange, Client};
use proofgate_base::deadline::Deadline;
use proofgate_base::lifecycle::Lifecycle;
use proofgate_base::spare::BufferPool;
use proofgate_providers::{Dialect, Family, FrameWriter};

/// Buffers of a connection while it answers.
#[derive(Default)]
pub struct ConnectionBuffers {
    /// The head of an answer under construction, and what leaves behind it.
    pub head: Vec<u8>,
    /// What was read from upstream and is not decoded yet. While it is empty its memory serves other connections.
    pub upstream: Vec<u8>,
}

impl ConnectionBuffers {
    /// Gives the memory to others: the connection waits for its next request.
    pub fn release(&mut self, spare: &BufferPool) {
        for buffer in [&mut self.head, &mut self.upstream] {
            buffer.clear();
            spare.release(buffer);
        }
    }
}

/// The client's side of an exchange, for its answer.
pub struct Reply<'c> {
    pub client: &'c mut Client,
    pub buffers: &'c mut ConnectionBuffers,
    /// Header lines that the answer gets besides its own.
    pub extra: &'c mut Vec<u8>,
    pub lifecycle: &'c mut Lifecycle,
    pub deadline: &'c mut Deadline,
    /// Whether the connection ends with the answer.
    pub close: bool,
    /// What the client speaks.
    pub dialect: Dialect,
    /// What writes events as Amazon's frames, for a client that speaks to Bedrock's InvokeModel.
    pub frame_writer: Option<Box<FrameWriter>>,
}

impl Reply<'_> {
    /// In whose shape an error is said.
    pub fn family(&self) -> Family {
        match self.frame_writer {
            Some(_) => Family::Amazon,
            None => self.dialect.family(),
        }
    }
}

/// Sends an answer of our own.
pub(crate) async fn send_error(reply: &mut Reply<'_>, answer: &ErrorResponse<'_>, id: &str) -> AfterExchange {
    reply.buffers.head.clear();
    let options = ResponseOptions {
        close: reply.close,
        head_only: false,
        extra: reply.extra,
        family: reply.family(),
    };
    answer.write(id, options, &mut reply.buffers.head);
    match reply.client.send(&reply.buffers.head).await {
        Ok(()) if reply.close => AfterExchange::Linger,
        Ok(()) => AfterExchange::Continue,
        Err(_) => AfterExchange::Close,
    }
}
