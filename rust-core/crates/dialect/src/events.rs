/// What a frame of Bedrock's streams is, by its `:message-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// `event`, named by `:event-type`.
    Event,
    /// `exception`, named by `:exception-type`, or `error`, named by `:error-code`.
    Exception,
}

/// How far an event has brought a streamed answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamStatus {
    /// More is to come.
    InProgress,
    /// It was the good end of its dialect; what was written is the end of the client's.
    Finished,
    /// The provider said that the answer failed; what was written says so to the client. There is no good end behind it.
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
