//! An answer on its way to a client that does not speak what its provider does.

use proofgate_base::rejection::Rejection;
use proofgate_providers::EventMeaning;
use proofgate_translate::{AnswerError, Step};
use proofgate_upstream::failure::{Aborted, Failure};
use proofgate_upstream::translation::Translation;
use proofgate_wire::encode;

use super::passage::Passage;

/// What of an error's body is read, in bytes.
const MOST_OF_AN_ERROR: usize = 64 * 1024;

impl Passage<'_> {
    /// Keeps bytes of an answer that is no stream: it is translated when it is whole.
    pub(super) fn keep_to_translate(&mut self, bytes: &[u8]) -> Result<(), Aborted> {
        self.workspace.usage.push(bytes);
        self.gateway.buffers.spare.lend(&mut self.workspace.partial);
        self.workspace.partial.extend_from_slice(bytes);
        self.take_room_for_partial()
    }

    /// Takes room for what is kept of an answer, or of an event, until it is whole.
    pub(super) fn take_room_for_partial(&mut self) -> Result<(), Aborted> {
        let length = self.workspace.partial.len();
        let most = self.open.catalog.terms.limits.body_bytes;
        if length as u64 > most || self.workspace.make_room(length).is_err() {
            return Err(Aborted::Policy(Rejection::ANSWER_OVERLOADED));
        }
        Ok(())
    }

    /// Translates the events that end in `bytes`, and keeps the rest for theirs.
    pub(super) fn translate_events(&mut self, bytes: &[u8]) -> Result<(), Aborted> {
        let mut at = 0;
        while let Some(length) = self.progress.ends.next_end(&bytes[at..]) {
            self.translate_event(&bytes[at..at + length])?;
            at += length;
        }
        self.keep(&bytes[at..])
    }

    /// Translates a whole event, and lets go what the client gets for it.
    pub(super) fn translate_event(&mut self, event: &[u8]) -> Result<(), Aborted> {
        self.progress.events += u64::from(!event.starts_with(b":"));
        self.workspace.usage.push_event(event);
        if self.progress.ended {
            // The client has its end; what stands behind the provider's is nothing to it.
            return Ok(());
        }
        let Some(translation) = &mut self.progress.translation else {
            return Ok(());
        };
        self.progress.finish.event(event);
        let mut out = std::mem::take(&mut self.progress.translated);
        out.clear();
        let released = match translation.event(event, &mut out).map_err(failed)? {
            Step::Continues if EventMeaning::of(self.progress.dialect, event) == EventMeaning::GoodEnd => {
                Err(Aborted::Upstream(Failure::Unfinished))
            }
            Step::Continues => self.release(&out),
            Step::Ended => {
                self.progress.ended = true;
                self.release(&out)
            }
            Step::Failed => self.fail(&out),
        };
        self.progress.translated = out;
        released
    }

    /// Takes the end of a stream that has had no good end; says whether its dialect takes that for one.
    pub(super) fn finish_stream(&mut self) -> Result<bool, Aborted> {
        let Some(translation) = &mut self.progress.translation else {
            return self.finish_candidates();
        };
        let mut out = std::mem::take(&mut self.progress.translated);
        out.clear();
        let is_whole = match translation.passes_events() {
            // Of frames the last one may be cut, and Bedrock sends all of its events.
            true if self.progress.frames.is_some() => false,
            true => self.progress.finish.is_whole_with(&self.workspace.partial),
            false => translation.finish(&mut out).unwrap_or(false),
        };
        if !is_whole {
            return Ok(false);
        }
        self.progress.ended = true;
        self.release(&out)?;
        Ok(true)
    }

    /// The same of a stream that leaves as it came. What says that it failed may have no end of its own.
    fn finish_candidates(&mut self) -> Result<bool, Aborted> {
        let Some(candidates) = &mut self.progress.candidates else {
            self.progress.ended = self.progress.finish.is_whole_with(&self.workspace.partial);
            return Ok(self.progress.ended);
        };
        if candidates.event(&self.workspace.partial) == EventMeaning::Failure {
            let rest = std::mem::take(&mut self.workspace.partial);
            return self.fail(&rest).map(|()| false);
        }
        self.progress.ended = candidates.are_whole();
        Ok(self.progress.ended)
    }

    /// Adds to the head, which has not left, what the provider said in the body.
    fn say_when_to_retry(&mut self, seconds: u64) {
        const NAME: &[u8] = b"retry-after:";
        let mut lines = self.head.split(|byte| *byte == b'\n');
        let is_there = lines.any(|line| {
            let name = line.get(..NAME.len());
            name.is_some_and(|name| name.eq_ignore_ascii_case(NAME))
        });
        if self.answer_head.open_head && !is_there {
            // Digits can be written as a value.
            let _ = encode::write_header(self.head, "retry-after", seconds.to_string().as_bytes());
        }
    }

    /// Takes the end of an answer that is no stream, and translates it.
    pub(super) fn finish_translated(&mut self, translation: &Translation) -> Result<(), Aborted> {
        if self.answer_head.events {
            return Ok(());
        }
        let body = std::mem::take(&mut self.workspace.partial);
        // The room is kept until all of it is sent.
        let most = translation.most_of_answer(body.len());
        if self.workspace.make_room(most).is_err() {
            return Err(Aborted::Policy(Rejection::ANSWER_OVERLOADED));
        }
        let mut out = Vec::new();
        if self.answer_head.is_success() {
            if translation.is_streamed() {
                return Err(failed(AnswerError::Malformed("it is not a stream")));
            }
            translation.answer(&body, &mut out).map_err(failed)?;
        } else {
            let read = &body[..body.len().min(MOST_OF_AN_ERROR)];
            let kind = self.answer_head.error_kind.as_deref();
            translation.error(self.answer_head.status, kind, read, &mut out);
            if let Some(seconds) = translation.retry_after(read) {
                self.say_when_to_retry(seconds);
            }
        }
        self.release(&out)
    }
}

/// What is wrong with an answer that cannot be translated.
fn failed(_error: AnswerError) -> Aborted {
    Aborted::Upstream(Failure::Untranslatable)
}
