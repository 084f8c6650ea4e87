//! Responses in Amazon's frames, which are decoded to the events that they contain.

use proofgate_base::memory::MemoryExhausted;
use proofgate_base::rejection::Rejection;
use proofgate_base::response_head::{AMAZON_EVENT_STREAM, ClientResponseHead, EVENT_STREAM};
use proofgate_providers::{BodyKind, Family, FrameDecoder};
use proofgate_upstream::failure::{AbortReason, Failure};
use proofgate_upstream::translation::ResponseTranslator;

use super::pipeline::ResponsePipeline;

/// Returns the decoder of a response in frames of at most `most` bytes; `None` if the response is
/// not framed. Adapts the fields of the unsent head to the client's format.
pub(super) fn frame_reader(
    translation: Option<&ResponseTranslator>,
    answer_head: &mut ClientResponseHead,
    head: &mut Vec<u8>,
    most: u64,
) -> Option<Box<FrameDecoder>> {
    let spoken = translation?.upstream_dialect();
    if spoken.family() != Family::Amazon {
        return None;
    }
    if answer_head.status == 424 && answer_head.is_head_incomplete {
        // Status 424 means that the model failed. A retry may succeed, but no client retries this
        // status by itself.
        head.extend_from_slice(b"x-should-retry: true\r\n");
    }
    if !answer_head.is_amazon_framed || !answer_head.is_success() {
        return None;
    }
    if !answer_head.writes_amazon_frames
        && let Some(at) = head
            .windows(AMAZON_EVENT_STREAM.len())
            .position(|part| part.eq_ignore_ascii_case(AMAZON_EVENT_STREAM))
    {
        head.splice(at..at + AMAZON_EVENT_STREAM.len(), EVENT_STREAM.iter().copied());
    }
    answer_head.set_body_kind(BodyKind::Events, head);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    Some(Box::new(FrameDecoder::new(spoken, most)))
}

impl ResponsePipeline<'_> {
    /// Decodes the next bytes and releases the client's data for complete events.
    pub(super) fn relay_frames(
        &mut self,
        frames: &mut FrameDecoder,
        bytes: &[u8],
    ) -> Result<(), AbortReason> {
        if self.progress.has_end_marker {
            // The client's response has its end, so bytes after the provider's end are dropped.
            return Ok(());
        }
        let room = self.workspace.reserve(frames.max_size_after(bytes.len()));
        room.map_err(|MemoryExhausted| AbortReason::Policy(Rejection::RESPONSE_OVERLOADED))?;
        if let Some(buffer) = frames.idle_buffer() {
            self.gateway.buffers.pool.acquire(buffer);
        }
        frames.push(bytes);
        let mut event = Vec::new();
        self.gateway.buffers.pool.acquire(&mut event);
        let taken = loop {
            event.clear();
            match frames.next_event(&mut event) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(_) if self.progress.has_end_marker => break Ok(()),
                Err(_) => break Err(AbortReason::Upstream(Failure::Untranslatable)),
            }
            if let Err(aborted) = self.translate_event(&event) {
                break Err(aborted);
            }
        };
        event.clear();
        self.gateway.buffers.pool.release(&mut event);
        if let Some(buffer) = frames.idle_buffer() {
            self.gateway.buffers.pool.release(buffer);
        }
        // The start of an incomplete frame is kept in memory until the rest arrives.
        let room = self.workspace.reserve(frames.max_size_after(0));
        taken.and(room.map_err(|MemoryExhausted| AbortReason::Policy(Rejection::RESPONSE_OVERLOADED)))
    }
}
