use super::error;
use proofgate_dialect::{AnswerError, EventKind, Step, write_event};

/// A streamed answer, whose events are the client's already. Nothing is kept of it.
#[derive(Debug, Default)]
pub struct Stream {
    end: Option<Step>,
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
    pub fn event(
        &mut self,
        kind: EventKind,
        name: &str,
        data: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Step, AnswerError> {
        if let Some(end) = self.end {
            return Ok(end);
        }
        let step = match (kind, name) {
            (EventKind::Exception, _) => {
                write_event(out, "error", |out| error(500, Some(name), data, out));
                Step::Failed
            }
            (EventKind::Event, name) => {
                write_event(out, name, |out| out.extend_from_slice(data));
                match name {
                    "message_stop" => Step::Ended,
                    "error" => Step::Failed,
                    _ => Step::Continues,
                }
            }
        };
        self.end = Some(step).filter(|step| *step != Step::Continues);
        Ok(step)
    }
}
