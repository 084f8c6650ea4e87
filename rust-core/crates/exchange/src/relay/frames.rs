//! An answer that comes in Amazon's frames, which are read as the events that they stand for.

use proofgate_base::memory::Exhausted;
use proofgate_base::rejection::Rejection;
use proofgate_base::response_head::{AnswerHead, EVENT_STREAM, FRAMES};
use proofgate_providers::{BodyKind, Family, FrameEvents};
use proofgate_upstream::failure::{Aborted, Failure};
use proofgate_upstream::translation::Translation;

use super::passage::Passage;

/// What reads the frames of an answer; `None` where it has none. Its head, which has not left, says what the client gets.
/// `most`: bytes of a frame.
pub(super) fn frames_of(
    translation: Option<&Translation>,
    answer_head: &mut AnswerHead,
    head: &mut Vec<u8>,
    most: u64,
) -> Option<Box<FrameEvents>> {
    let spoken = translation?.upstream();
    if spoken.family() != Family::Amazon {
        return None;
    }
    if answer_head.status == 424 && answer_head.open_head {
        // The model failed, and another try may succeed; no client knows this status.
        head.extend_from_slice(b"x-should-retry: true\r\n");
    }
    if !answer_head.framed || !answer_head.is_success() {
        return None;
    }
    if !answer_head.to_frames
        && let Some(at) = head
            .windows(FRAMES.len())
            .position(|part| part.eq_ignore_ascii_case(FRAMES))
    {
        head.splice(at..at + FRAMES.len(), EVENT_STREAM.iter().copied());
    }
    answer_head.know(BodyKind::Events, head);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    Some(Box::new(FrameEvents::new(spoken, most)))
}

impl Passage<'_> {
    /// Takes the next bytes of the frames, and lets go what the client gets for the events that are whole.
    pub(super) fn take_frames(&mut self, frames: &mut FrameEvents, bytes: &[u8]) -> Result<(), Aborted> {
        if self.progress.ended {
            // The client has its end; what stands behind the provider's is nothing to it.
            return Ok(());
        }
        let room = self.workspace.make_room(frames.size_with(bytes.len()));
        room.map_err(|Exhausted| Aborted::Policy(Rejection::ANSWER_OVERLOADED))?;
        if let Some(buffer) = frames.idle_buffer() {
            self.gateway.buffers.spare.lend(buffer);
        }
        frames.push(bytes);
        let mut event = Vec::new();
        self.gateway.buffers.spare.lend(&mut event);
        let taken = loop {
            event.clear();
            match frames.next_event(&mut event) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(_) if self.progress.ended => break Ok(()),
                Err(_) => break Err(Aborted::Upstream(Failure::Untranslatable)),
            }
            if let Err(aborted) = self.translate_event(&event) {
                break Err(aborted);
            }
        };
        event.clear();
        self.gateway.buffers.spare.take_back(&mut event);
        if let Some(buffer) = frames.idle_buffer() {
            self.gateway.buffers.spare.take_back(buffer);
        }
        // What waits for the rest of its frame is there until that comes.
        let room = self.workspace.make_room(frames.size_with(0));
        taken.and(room.map_err(|Exhausted| Aborted::Policy(Rejection::ANSWER_OVERLOADED)))
    }
}
