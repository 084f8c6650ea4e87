//! The client side of one exchange: the state that a response needs, and responses that the gateway
//! itself creates.

use proofgate_base::buffer_pool::BufferPool;
use proofgate_base::client::{Client, ConnectionAction};
use proofgate_base::deadline::Deadline;
use proofgate_base::error_response::{ErrorResponse, ResponseOptions};
use proofgate_base::lifecycle::Lifecycle;
use proofgate_providers::{Dialect, Family, FrameWriter};

/// Buffers of a connection during a response.
#[derive(Default)]
pub struct ConnectionBuffers {
    /// The head of a response that is being built, and the bytes that are sent after it.
    pub head: Vec<u8>,
    /// Bytes from the upstream that are not decoded yet. While the buffer is empty, other
    /// connections use its memory.
    pub upstream: Vec<u8>,
}

impl ConnectionBuffers {
    /// Releases the memory for other connections while this connection waits for its next request.
    pub fn release(&mut self, spare: &BufferPool) {
        for buffer in [&mut self.head, &mut self.upstream] {
            buffer.clear();
            spare.release(buffer);
        }
    }
}

/// The client side of an exchange, for its response.
pub struct Reply<'c> {
    pub client: &'c mut Client,
    pub buffers: &'c mut ConnectionBuffers,
    /// Additional header lines of the response.
    pub extra_headers: &'c mut Vec<u8>,
    pub lifecycle: &'c mut Lifecycle,
    pub deadline: &'c mut Deadline,
    /// Whether the connection closes after the response.
    pub close: bool,
    /// The client's dialect.
    pub dialect: Dialect,
    /// The encoder of events as Amazon's frames; `None` unless the client uses Bedrock's
    /// InvokeModel.
    pub frame_writer: Option<Box<FrameWriter>>,
}

impl Reply<'_> {
    /// Returns the API family whose error format applies.
    pub fn family(&self) -> Family {
        match self.frame_writer {
            Some(_) => Family::Amazon,
            None => self.dialect.family(),
        }
    }
}

/// Sends an error response that the gateway itself creates.
pub(crate) async fn send_error(
    reply: &mut Reply<'_>,
    answer: &ErrorResponse<'_>,
    id: &str,
) -> ConnectionAction {
    reply.buffers.head.clear();
    let options = ResponseOptions {
        close: reply.close,
        head_only: false,
        extra_headers: reply.extra_headers,
        family: reply.family(),
    };
    answer.write(id, options, &mut reply.buffers.head);
    match reply.client.send(&reply.buffers.head).await {
        Ok(()) if reply.close => ConnectionAction::Linger,
        Ok(()) => ConnectionAction::Continue,
        Err(_) => ConnectionAction::Close,
    }
}
