use super::translate_error;
use proofgate_dialect::{EventKind, ResponseError, StreamStatus, write_event};

/// A streamed answer, whose events are the client's already. Nothing is kept of it.
#[derive(Debug, Default)]
pub struct Stream {
    final_status: Option<StreamStatus>,
}

impl Stream {
    /// The begin of an answer.
    #[must_use]
    pub fn new() -> Self {
        Stream::default()
    }

    /// Takes one event or exception, its name and its data, and appends what the client gets for it. What comes behind the end
    /// says nothing.
    ///
    /// # Errors
    /// None: what an event holds is the client's to read.
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
