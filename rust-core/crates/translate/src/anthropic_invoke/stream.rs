use super::translate_error;
use proofgate_dialect::{EventKind, ResponseError, StreamStatus, write_event};

/// Passes on a streamed answer, whose events are in the client's format already. It buffers nothing.
#[derive(Debug, Default)]
pub struct Stream {
    final_status: Option<StreamStatus>,
}

impl Stream {
    /// Creates a stream at the start of an answer.
    #[must_use]
    pub fn new() -> Self {
        Stream::default()
    }

    /// Appends the client's event for one event or exception, with its name and its data. Input
    /// after the end is ignored.
    ///
    /// # Errors
    /// Never returns an error: the client interprets the content of an event.
    pub fn push_event(
        &mut self,
        kind: EventKind,
        name: &str,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<StreamStatus, ResponseError> {
        if let Some(end) = self.final_status {
            return Ok(end);
        }
        let step = match (kind, name) {
            (EventKind::Exception, _) => {
                write_event(out, "error", |out| translate_error(500, Some(name), data, out));
                StreamStatus::Failed
            }
            (EventKind::Event, name) => {
                write_event(out, name, |out| out.extend_from_slice(data));
                match name {
                    "message_stop" => StreamStatus::Finished,
                    "error" => StreamStatus::Failed,
                    _ => StreamStatus::InProgress,
                }
            }
        };
        self.final_status = Some(step).filter(|step| *step != StreamStatus::InProgress);
        Ok(step)
    }
}
