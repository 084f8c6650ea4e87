//! Decides which part of a response can be sent: complete events that the rules approved, except
//! the response's end.

use proofgate_base::response_head::{ClientResponseHead, InspectionLevel};
use proofgate_base::workspace::ResponseWorkspace;
use proofgate_inspect::Denial;
use proofgate_providers::{
    BYTE_ORDER_MARK, BodyKind, CandidateProgress, Dialect, EventBoundaries, EventMeaning, FinishTracker,
    FrameDecoder, GrowthCheck, is_usage_only,
};
use proofgate_upstream::failure::{AbortReason, Failure};
use proofgate_upstream::translation::ResponseTranslator;

use super::inspection::{append, inspect};
use crate::gateway::Gateway;
use crate::open_exchange::OpenExchange;

/// Maximum bytes that are held back after a possible end, and that an upstream may send after its
/// end marker.
const MAX_HELD: usize = 64 * 1024;
/// Length in bytes above which parts of an event are sent as they arrive.
const MAX_EVENT_BYTES: usize = 64 * 1024;
/// Maximum bytes from which the kind of a body is detected.
const MAX_SNIFF_BYTES: usize = 4096;

/// The progress of relaying a response.
pub(super) struct Progress {
    /// Whether the kind of the body is known from its first bytes, or does not matter.
    pub(super) is_kind_known: bool,
    /// The detector of event boundaries in the stream.
    pub(super) event_ends: EventBoundaries,
    /// Whether the end marker has arrived. All data from the end marker on is held back until the
    /// completion is written.
    pub(super) has_end_marker: bool,
    /// The state of the candidates of a stream in Gemini's dialect that is forwarded unchanged.
    /// Such a stream has no end marker. `None` for other responses.
    pub(super) candidates: Option<CandidateProgress>,
    /// The finish reasons of the stream's choices. A stream without an end marker is complete if
    /// all choices have one.
    pub(super) stream_finish: FinishTracker,
    /// Whether all data from an event on is held back, because that event may be the last one.
    is_holding_back: bool,
    /// Number of bytes that arrived after the end marker.
    bytes_after_end: usize,
    /// Whether a part of the current event was released. The rules may still hold that part,
    /// because they approve only complete events.
    is_event_partly_sent: bool,
    /// The meaning of that event, derived from its start.
    event_meaning: EventMeaning,
    /// The length up to which an incomplete event has been examined.
    event_scan: GrowthCheck,
    /// Number of events so far.
    pub(super) event_count: u64,
    /// The provider's dialect.
    pub(super) dialect: Dialect,
    /// The translator of the response; `None` if the provider's dialect is the client's dialect.
    pub(super) translation: Option<Box<ResponseTranslator>>,
    /// The decoder of the response's frames; `None` if the response is not framed.
    pub(super) frame_reader: Option<Box<FrameDecoder>>,
    /// Output buffer of the translation, reused between events.
    pub(super) translated: Vec<u8>,
    /// Whether the event that only contains usage is withheld, because the client did not ask for
    /// it.
    withholds_usage: bool,
    /// Whether the rules failed in a mode in which they only observe.
    has_inspection_failed: bool,
}

impl Progress {
    pub(super) fn new(
        dialect: Dialect,
        choices: u64,
        keeps_usage: bool,
        translation: Option<Box<ResponseTranslator>>,
        frames: Option<Box<FrameDecoder>>,
    ) -> Self {
        Progress {
            is_kind_known: frames.is_some(),
            frame_reader: frames,
            event_ends: EventBoundaries::default(),
            has_end_marker: false,
            candidates: (translation.is_none() && dialect == Dialect::Gemini)
                .then(CandidateProgress::default),
            stream_finish: FinishTracker::new(dialect, choices),
            is_holding_back: false,
            bytes_after_end: 0,
            is_event_partly_sent: false,
            event_meaning: EventMeaning::Part,
            event_scan: GrowthCheck::default(),
            event_count: 0,
            dialect,
            translation,
            translated: Vec::new(),
            withholds_usage: keeps_usage,
            has_inspection_failed: false,
        }
    }

    /// Counts arrived bytes. Returns `false` if too many bytes follow the end marker; the response
    /// is complete without them.
    pub(super) fn accept_bytes(&mut self, length: usize) -> bool {
        if self.has_end_marker {
            self.bytes_after_end = self.bytes_after_end.saturating_add(length);
        }
        self.bytes_after_end <= MAX_HELD
    }

    /// Whether the response has ended. An end event in `partial` that lacks only its empty line
    /// counts, because its sender may consider it complete.
    pub(super) fn has_ended(&mut self, partial: &[u8]) -> bool {
        // A translated response ends as its dialect defines.
        if !self.has_end_marker && self.translation.is_none() {
            self.has_end_marker =
                EventMeaning::classify(self.dialect, partial) == EventMeaning::SuccessfulEnd;
        }
        self.has_end_marker
    }

    /// Whether `partial` may be the end without its empty line, and has grown since it was
    /// examined.
    pub(super) fn may_have_ended(&self, partial: &[u8]) -> bool {
        let is_looked_at = self.translation.is_none() && self.candidates.is_none();
        is_looked_at && !self.has_end_marker && self.event_scan.has_grown(partial.len())
    }

    /// Whether an event was partly sent, so that no other event can be inserted now.
    pub(super) fn has_open_event(&self, answer_head: &ClientResponseHead) -> bool {
        self.is_event_partly_sent && answer_head.inspection != InspectionLevel::Enforce
    }
}

/// The action for a complete event.
enum EventAction {
    Forward,
    Withhold,
    /// Holds back the event, which may be the last one, until an event arrives after which the
    /// response is not complete.
    HoldBack,
    /// Starts the end of the response with this event.
    End,
    /// Sends the event, which reports that the response failed, and nothing after it.
    Fail,
}

/// A response that is being relayed to the client.
pub(super) struct ResponsePipeline<'p> {
    pub(super) gateway: &'p Gateway,
    pub(super) response_head: &'p mut ClientResponseHead,
    pub(super) open_exchange: &'p mut OpenExchange,
    pub(super) progress: &'p mut Progress,
    pub(super) workspace: &'p mut ResponseWorkspace,
    /// The head of the response, until it is sent.
    pub(super) head: &'p mut Vec<u8>,
}

impl ResponsePipeline<'_> {
    /// Processes decoded bytes of the response.
    pub(super) fn push(&mut self, data: &[u8]) -> Result<(), AbortReason> {
        self.gateway.buffers.pool.acquire(&mut self.workspace.chunk);
        if let Some(mut frames) = self.progress.frame_reader.take() {
            let taken = self.relay_frames(&mut frames, data);
            self.progress.frame_reader = Some(frames);
            return taken;
        }
        if self.progress.is_kind_known {
            return self.relay_bytes(data);
        }
        if self.workspace.partial.is_empty()
            && let Some(kind) = BodyKind::detect(data)
        {
            self.set_body_kind(kind)?;
            return self.relay_first(data);
        }
        self.workspace.partial.extend_from_slice(data);
        let begin = &self.workspace.partial;
        let unknown = (begin.len() > MAX_SNIFF_BYTES).then_some(BodyKind::Other);
        let Some(kind) = BodyKind::detect(begin).or(unknown) else {
            return Ok(());
        };
        self.set_body_kind(kind)?;
        let begin = std::mem::take(&mut self.workspace.partial);
        self.relay_first(&begin)
    }

    /// Processes the end of the response. The remaining bytes are not a complete event, or the kind
    /// of the body is unknown.
    ///
    /// A stream is complete with its dialect's successful end, or if every choice has a finish
    /// reason and the body ends properly. A stream that just stops must not seem complete: official
    /// clients would treat it as a short response.
    pub(super) fn finish(&mut self) -> Result<(), AbortReason> {
        if !self.progress.is_kind_known {
            let begin = std::mem::take(&mut self.workspace.partial);
            if begin.is_empty() {
                self.response_head.set_body_kind(BodyKind::Other, self.head);
            } else {
                self.set_body_kind(BodyKind::Other)?;
                self.relay_first(&begin)?;
            }
        }
        if self.response_head.is_successful_stream()
            && !self.progress.has_ended(&self.workspace.partial)
            && !self.finish_stream()?
        {
            return Err(AbortReason::Upstream(Failure::TruncatedStream));
        }
        if let Some(translation) = self.progress.translation.take() {
            return self.finish_translated(&translation);
        }
        let rest = std::mem::take(&mut self.workspace.partial);
        self.workspace.usage.push(&rest);
        self.release(&rest)
    }

    /// Sets the kind of the body.
    fn set_body_kind(&mut self, kind: BodyKind) -> Result<(), AbortReason> {
        self.progress.is_kind_known = true;
        self.response_head.set_body_kind(kind, self.head);
        if self.response_head.is_unreadable(kind) {
            let engine = &self.open_exchange.catalog.settings.engine;
            return Err(AbortReason::Policy(
                self.gateway
                    .observers
                    .count_stopped_response(engine, Denial::Malformed),
            ));
        }
        Ok(())
    }

    /// Relays the first bytes of the response.
    fn relay_first(&mut self, bytes: &[u8]) -> Result<(), AbortReason> {
        match bytes.strip_prefix(BYTE_ORDER_MARK) {
            Some(events) if self.response_head.is_event_stream => {
                if self.progress.translation.is_none() {
                    self.release(BYTE_ORDER_MARK)?;
                }
                self.relay_bytes(events)
            }
            _ => self.relay_bytes(bytes),
        }
    }

    fn relay_bytes(&mut self, bytes: &[u8]) -> Result<(), AbortReason> {
        if self.response_head.is_event_stream {
            return self.relay_events(bytes);
        }
        if self.progress.translation.is_some() {
            return self.buffer_for_translation(bytes);
        }
        self.workspace.usage.push(bytes);
        self.release(bytes)
    }

    /// Relays the events that end in `bytes`, and keeps the rest.
    fn relay_events(&mut self, mut bytes: &[u8]) -> Result<(), AbortReason> {
        if !self.workspace.partial.is_empty() || self.progress.is_event_partly_sent {
            let Some(end) = self.progress.event_ends.next_boundary(bytes) else {
                return self.buffer_partial(bytes);
            };
            let mut event = std::mem::take(&mut self.workspace.partial);
            event.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end..];
            if self.progress.translation.is_some() {
                self.translate_event(&event)?;
                event.clear();
                self.workspace.partial = event;
                return self.relay_events(bytes);
            }
            match self.classify_event(&event) {
                EventAction::Withhold => {}
                EventAction::Forward => {
                    self.release_held_back();
                    self.release(&event)?;
                }
                EventAction::HoldBack => {
                    self.progress.is_holding_back = true;
                    self.release(&event)?;
                }
                EventAction::End => {
                    self.progress.has_end_marker = true;
                    self.release(&event)?;
                }
                EventAction::Fail => return self.relay_failure(&event),
            }
            self.progress.is_event_partly_sent = false;
            event.clear();
            self.workspace.partial = event;
        }
        if self.progress.translation.is_some() {
            return self.translate_events(bytes);
        }
        // The bytes in `from..at` are sent together.
        let (mut from, mut at) = (0, 0);
        while let Some(length) = self.progress.event_ends.next_boundary(&bytes[at..]) {
            let begin = at;
            at += length;
            match self.classify_event(&bytes[begin..at]) {
                EventAction::Forward if !self.progress.is_holding_back => {}
                EventAction::Forward => {
                    self.release(&bytes[from..begin])?;
                    self.release_held_back();
                    from = begin;
                }
                EventAction::HoldBack => {
                    self.release(&bytes[from..begin])?;
                    self.progress.is_holding_back = true;
                    from = begin;
                }
                EventAction::Withhold => {
                    self.release(&bytes[from..begin])?;
                    from = at;
                }
                EventAction::End => {
                    self.release(&bytes[from..begin])?;
                    self.progress.has_end_marker = true;
                    from = begin;
                }
                EventAction::Fail => return self.relay_failure(&bytes[from..at]),
            }
        }
        self.release(&bytes[from..at])?;
        self.buffer_partial(&bytes[at..])
    }

    fn classify_event(&mut self, event: &[u8]) -> EventAction {
        self.progress.event_count += u64::from(!event.starts_with(b":"));
        if self.progress.is_event_partly_sent {
            self.workspace.usage.push_fragment(event);
            // The client still waits for the empty line. With the last piece, it would have the
            // complete event.
            return match std::mem::replace(&mut self.progress.event_meaning, EventMeaning::Part) {
                EventMeaning::SuccessfulEnd => EventAction::End,
                EventMeaning::Failure
                    if !self.progress.has_end_marker && self.response_head.is_successful_stream() =>
                {
                    EventAction::Fail
                }
                _ => EventAction::Forward,
            };
        }
        let brings_usage = self.workspace.usage.push_event(event);
        if self.progress.has_end_marker {
            return EventAction::Forward;
        }
        if let Some(candidates) = &mut self.progress.candidates {
            return match candidates.read_event(event) {
                EventMeaning::Failure if self.response_head.is_successful_stream() => EventAction::Fail,
                _ if candidates.are_all_finished() => EventAction::HoldBack,
                _ => EventAction::Forward,
            };
        }
        self.progress.stream_finish.read_event(event);
        match EventMeaning::classify(self.progress.dialect, event) {
            EventMeaning::SuccessfulEnd => EventAction::End,
            EventMeaning::Failure if self.response_head.is_successful_stream() => EventAction::Fail,
            _ if brings_usage && self.progress.withholds_usage && is_usage_only(event) => {
                EventAction::Withhold
            }
            _ => EventAction::Forward,
        }
    }

    /// Releases an event that reports that the response failed, and all data before it.
    pub(super) fn relay_failure(&mut self, bytes: &[u8]) -> Result<(), AbortReason> {
        self.release(bytes)?;
        Err(AbortReason::Upstream(Failure::ReportedInStream))
    }

    /// Keeps the start of an event until the rest arrives.
    pub(super) fn buffer_partial(&mut self, part: &[u8]) -> Result<(), AbortReason> {
        if part.is_empty() {
            return Ok(());
        }
        if self.progress.is_event_partly_sent {
            self.workspace.usage.push_fragment(part);
            return self.release(part);
        }
        if self.workspace.partial.is_empty() {
            self.progress.event_scan = GrowthCheck::default();
        }
        self.gateway.buffers.pool.acquire(&mut self.workspace.partial);
        self.workspace.partial.extend_from_slice(part);
        let is_kept_whole = self.progress.translation.is_some() || self.progress.candidates.is_some();
        if is_kept_whole || self.response_head.writes_amazon_frames {
            return self.reserve_for_partial();
        }
        if self.workspace.partial.len() > MAX_EVENT_BYTES {
            self.progress.is_event_partly_sent = true;
            let part = std::mem::take(&mut self.workspace.partial);
            self.progress.event_meaning = EventMeaning::classify_prefix(self.progress.dialect, &part);
            self.workspace.usage.push_fragment(&part);
            return self.release(&part);
        }
        // If no more bytes arrive for `PARTIAL_EVENT_WAIT`, the event is examined in any case.
        if self.progress.event_scan.check_due(self.workspace.partial.len()) {
            self.progress.has_ended(&self.workspace.partial);
        }
        Ok(())
    }

    /// Releases the data that was held back as a possible end.
    fn release_held_back(&mut self) {
        if std::mem::take(&mut self.progress.is_holding_back) {
            append(&mut self.workspace.chunk, &mut self.workspace.held_back);
        }
    }

    /// Passes bytes to the rules, and releases the bytes that they approve.
    pub(super) fn release(&mut self, bytes: &[u8]) -> Result<(), AbortReason> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.progress.is_holding_back && self.workspace.held_back.len() + bytes.len() > MAX_HELD {
            self.release_held_back();
        }
        let is_held = self.progress.has_end_marker || self.progress.is_holding_back;
        let ResponseWorkspace {
            chunk: piece,
            held_back: held,
            ..
        } = &mut *self.workspace;
        let out = if is_held { held } else { piece };
        match self.response_head.inspection {
            InspectionLevel::None => out.extend_from_slice(bytes),
            InspectionLevel::Observe => {
                out.extend_from_slice(bytes);
                if !self.progress.has_inspection_failed {
                    let seen = inspect(
                        self.gateway,
                        self.response_head,
                        self.open_exchange,
                        self.workspace,
                        bytes,
                    );
                    if seen.is_err() {
                        self.progress.has_inspection_failed = true;
                        // The data that the rules held is not needed now.
                        let _ = self.workspace.finish_inspection();
                    }
                }
            }
            InspectionLevel::Enforce => {
                let cleared = inspect(
                    self.gateway,
                    self.response_head,
                    self.open_exchange,
                    self.workspace,
                    bytes,
                );
                let ResponseWorkspace {
                    chunk: piece,
                    held_back: held,
                    approved_bytes: passed,
                    ..
                } = &mut *self.workspace;
                let out = if is_held { held } else { piece };
                out.extend_from_slice(passed);
                return cleared.map_err(AbortReason::Policy);
            }
        }
        Ok(())
    }
}
