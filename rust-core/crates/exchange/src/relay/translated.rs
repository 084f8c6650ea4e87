//! Responses for a client whose dialect differs from the provider's dialect.

use proofgate_base::rejection::Rejection;
use proofgate_providers::EventMeaning;
use proofgate_translate::{ResponseError, StreamStatus};
use proofgate_upstream::failure::{AbortReason, Failure};
use proofgate_upstream::translation::ResponseTranslator;
use proofgate_wire::encode;

use super::pipeline::ResponsePipeline;

/// Maximum bytes of an error body that are read.
const MAX_ERROR_BYTES: usize = 64 * 1024;

impl ResponsePipeline<'_> {
    /// Buffers bytes of a response that is not a stream. The response is translated when it is
    /// complete.
    pub(super) fn buffer_for_translation(&mut self, bytes: &[u8]) -> Result<(), AbortReason> {
        self.workspace.usage.push(bytes);
        self.gateway.buffers.pool.acquire(&mut self.workspace.partial);
        self.workspace.partial.extend_from_slice(bytes);
        self.reserve_for_partial()
    }

    /// Reserves memory for an incomplete response or event.
    pub(super) fn reserve_for_partial(&mut self) -> Result<(), AbortReason> {
        let length = self.workspace.partial.len();
        let most = self.open_exchange.catalog.settings.limits.body_bytes;
        if length as u64 > most || self.workspace.reserve(length).is_err() {
            return Err(AbortReason::Policy(Rejection::RESPONSE_OVERLOADED));
        }
        Ok(())
    }

    /// Translates the events that end in `bytes`, and keeps the rest.
    pub(super) fn translate_events(&mut self, bytes: &[u8]) -> Result<(), AbortReason> {
        let mut at = 0;
        while let Some(length) = self.progress.event_ends.next_boundary(&bytes[at..]) {
            self.translate_event(&bytes[at..at + length])?;
            at += length;
        }
        self.buffer_partial(&bytes[at..])
    }

    /// Translates a complete event, and releases the result.
    pub(super) fn translate_event(&mut self, event: &[u8]) -> Result<(), AbortReason> {
        self.progress.event_count += u64::from(!event.starts_with(b":"));
        self.workspace.usage.push_event(event);
        if self.progress.has_end_marker {
            // The client's response has its end, so events after the provider's end are dropped.
            return Ok(());
        }
        let Some(translation) = &mut self.progress.translation else {
            return Ok(());
        };
        self.progress.stream_finish.read_event(event);
        let mut out = std::mem::take(&mut self.progress.translated);
        out.clear();
        let released = match translation
            .translate_event(event, &mut out)
            .map_err(translation_failed)?
        {
            StreamStatus::InProgress
                if EventMeaning::classify(self.progress.dialect, event) == EventMeaning::SuccessfulEnd =>
            {
                Err(AbortReason::Upstream(Failure::TruncatedStream))
            }
            StreamStatus::InProgress => self.release(&out),
            StreamStatus::Finished => {
                self.progress.has_end_marker = true;
                self.release(&out)
            }
            StreamStatus::Failed => self.relay_failure(&out),
        };
        self.progress.translated = out;
        released
    }

    /// Handles a stream that stopped without a successful end. Returns whether its dialect accepts
    /// that as an end.
    pub(super) fn finish_stream(&mut self) -> Result<bool, AbortReason> {
        let Some(translation) = &mut self.progress.translation else {
            return self.finish_candidates();
        };
        let mut out = std::mem::take(&mut self.progress.translated);
        out.clear();
        let is_whole = match translation.passes_events_through() {
            // A framed stream without its end is not accepted, because Bedrock sends all of its
            // events and the last frame may be cut off.
            true if self.progress.frame_reader.is_some() => false,
            true => self
                .progress
                .stream_finish
                .is_complete_after(&self.workspace.partial),
            false => translation.finish(&mut out).unwrap_or(false),
        };
        if !is_whole {
            return Ok(false);
        }
        self.progress.has_end_marker = true;
        self.release(&out)?;
        Ok(true)
    }

    /// Like `finish_stream`, for a stream that is forwarded unchanged. An event that reports a
    /// failure may lack its end.
    fn finish_candidates(&mut self) -> Result<bool, AbortReason> {
        let Some(candidates) = &mut self.progress.candidates else {
            self.progress.has_end_marker = self
                .progress
                .stream_finish
                .is_complete_after(&self.workspace.partial);
            return Ok(self.progress.has_end_marker);
        };
        if candidates.read_event(&self.workspace.partial) == EventMeaning::Failure {
            let rest = std::mem::take(&mut self.workspace.partial);
            return self.relay_failure(&rest).map(|()| false);
        }
        self.progress.has_end_marker = candidates.are_all_finished();
        Ok(self.progress.has_end_marker)
    }

    /// Adds the retry delay from the provider's body to the unsent head.
    fn write_retry_after(&mut self, seconds: u64) {
        const NAME: &[u8] = b"retry-after:";
        let mut lines = self.head.split(|byte| *byte == b'\n');
        let is_there = lines.any(|line| {
            let name = line.get(..NAME.len());
            name.is_some_and(|name| name.eq_ignore_ascii_case(NAME))
        });
        if self.response_head.is_head_incomplete && !is_there {
            // Digits are a valid field value.
            let _ = encode::write_header(self.head, "retry-after", seconds.to_string().as_bytes());
        }
    }

    /// Translates a complete response that is not a stream.
    pub(super) fn finish_translated(&mut self, translation: &ResponseTranslator) -> Result<(), AbortReason> {
        if self.response_head.is_event_stream {
            return Ok(());
        }
        let body = std::mem::take(&mut self.workspace.partial);
        // The memory stays reserved until the whole response is sent.
        let most = translation.max_response_bytes(body.len());
        if self.workspace.reserve(most).is_err() {
            return Err(AbortReason::Policy(Rejection::RESPONSE_OVERLOADED));
        }
        let mut out = Vec::new();
        if self.response_head.is_success() {
            if translation.is_streamed() {
                return Err(translation_failed(ResponseError::Malformed("it is not a stream")));
            }
            translation
                .write_response(&body, &mut out)
                .map_err(translation_failed)?;
        } else {
            let read = &body[..body.len().min(MAX_ERROR_BYTES)];
            let kind = self.response_head.error_kind.as_deref();
            translation.write_error(self.response_head.status, kind, read, &mut out);
            if let Some(seconds) = translation.retry_after(read) {
                self.write_retry_after(seconds);
            }
        }
        self.release(&out)
    }
}

/// Returns the failure of a response that cannot be translated.
fn translation_failed(_error: ResponseError) -> AbortReason {
    AbortReason::Upstream(Failure::Untranslatable)
}
