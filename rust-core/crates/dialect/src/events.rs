/// The kind of a frame in Bedrock's streams, by its `:message-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// `event`, named by `:event-type`.
    Event,
    /// `exception`, named by `:exception-type`, or `error`, named by `:error-code`.
    Exception,
}

/// The progress of a streamed response after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamStatus {
    /// More events follow.
    InProgress,
    /// The stream ended successfully, and the end of the client's stream has been written.
    Finished,
    /// The provider reported a failure, and an error has been written for the client. No successful end follows.
    Failed,
}

/// Appends an event that has only data, as OpenAI's chat completions stream.
pub fn write_data(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"data: ");
    write(out);
    out.extend_from_slice(b"\n\n");
}

/// Appends an event with a name, as Anthropic's messages stream.
pub fn write_event(out: &mut Vec<u8>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'\n');
    write_data(out, write);
}
