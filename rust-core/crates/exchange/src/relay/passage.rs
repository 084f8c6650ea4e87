//! What of an answer may leave: whole events, of what the rules have cleared, less the answer's end.

use proofgate_base::response_head::{AnswerHead, Scrutiny};
use proofgate_base::workspace::Workspace;
use proofgate_inspect::Denial;
use proofgate_providers::{
    BYTE_ORDER_MARK, BodyKind, CandidateEnds, Dialect, EventEnds, EventMeaning, FrameEvents, Growth,
    StreamFinish, is_usage_alone,
};
use proofgate_upstream::failure::{Aborted, Failure};
use proofgate_upstream::translation::Translation;

use super::inspection::{append, inspect};
use crate::gateway::Gateway;
use crate::open_exchange::OpenExchange;

/// How much is held back behind what may be the end, and how much an upstream may send behind its end marker, in bytes.
const MAX_HELD: usize = 64 * 1024;
/// Of a longer event the parts leave as they come, in bytes.
const MOST_OF_AN_EVENT: usize = 64 * 1024;
/// In so many bytes a body must say what it is.
const MOST_UNKNOWN: usize = 4096;

/// How far an answer has come.
pub(super) struct Progress {
    /// Whether its first bytes have said what it is, or need not.
    pub(super) known: bool,
    pub(super) ends: EventEnds,
    /// Whether its end marker has come: all from there on is held back until the completion is written.
    pub(super) ended: bool,
    /// How far the candidates of a stream are that has no end marker: it leaves as it came, in Gemini's dialect.
    pub(super) candidates: Option<CandidateEnds>,
    /// What the stream has told of why its choices finished: without an end marker it is whole with that.
    pub(super) finish: StreamFinish,
    /// Whether all from some event on is held back, because that may be the last one.
    holds: bool,
    /// Bytes that have come since the end marker was seen.
    behind: usize,
    /// Whether a part of the event at hand has been let go; the rules, which clear whole events, may hold it still.
    in_event: bool,
    /// What that event means, by its begin.
    meaning: EventMeaning,
    /// How far an event that is not whole has been looked at.
    growth: Growth,
    /// How many events there have been.
    pub(super) events: u64,
    /// What the provider speaks.
    pub(super) dialect: Dialect,
    /// The way back, where that is not the client's dialect.
    pub(super) translation: Option<Box<Translation>>,
    /// What reads the frames that it comes in, where it does.
    pub(super) frames: Option<Box<FrameEvents>>,
    /// What an event was translated to; kept for the next one.
    pub(super) translated: Vec<u8>,
    /// Whether the event that brings usage alone is kept from the client, who did not ask for it.
    keeps_usage: bool,
    /// Whether the rules, which only observe, have failed.
    blind: bool,
}

impl Progress {
    pub(super) fn new(
        dialect: Dialect,
        choices: u64,
        keeps_usage: bool,
        translation: Option<Box<Translation>>,
        frames: Option<Box<FrameEvents>>,
    ) -> Self {
        Progress {
            known: frames.is_some(),
            frames,
            ends: EventEnds::default(),
            ended: false,
            candidates: (translation.is_none() && dialect == Dialect::Gemini).then(CandidateEnds::default),
            finish: StreamFinish::new(dialect, choices),
            holds: false,
            behind: 0,
            in_event: false,
            meaning: EventMeaning::Part,
            growth: Growth::default(),
            events: 0,
            dialect,
            translation,
            translated: Vec::new(),
            keeps_usage,
            blind: false,
        }
    }

    /// Takes note of bytes that come; `false` where too many do behind the end marker: the answer is whole without them.
    pub(super) fn has_room_for(&mut self, length: usize) -> bool {
        if self.ended {
            self.behind = self.behind.saturating_add(length);
        }
        self.behind <= MAX_HELD
    }

    /// Whether the answer has its end, also where `partial`, what has come of an event, is that but for an empty line: its sender
    /// may think that nothing more is needed.
    pub(super) fn has_ended(&mut self, partial: &[u8]) -> bool {
        // What is translated ends as its dialect says.
        if !self.ended && self.translation.is_none() {
            self.ended = EventMeaning::of(self.dialect, partial) == EventMeaning::GoodEnd;
        }
        self.ended
    }

    /// Whether `partial` may be the end but for an empty line, and was not looked at as it is now.
    pub(super) fn may_have_ended(&self, partial: &[u8]) -> bool {
        let is_looked_at = self.translation.is_none() && self.candidates.is_none();
        is_looked_at && !self.ended && self.growth.is_unseen(partial.len())
    }

    /// Whether a part of an event has left, behind which nothing can be said.
    pub(super) fn has_left_an_event_open(&self, answer_head: &AnswerHead) -> bool {
        self.in_event && answer_head.scrutiny != Scrutiny::Enforce
    }
}

/// What becomes of a whole event.
enum Event {
    Leaves,
    Stays,
    /// It may be the last one: it is held back until another one comes after which the answer is not whole.
    MayEnd,
    /// From it on everything is the answer's end.
    Ends,
    /// It says that the answer failed: the client is told so, and gets nothing behind it.
    Fails,
}

/// An answer on its way.
pub(super) struct Passage<'p> {
    pub(super) gateway: &'p Gateway,
    pub(super) answer_head: &'p mut AnswerHead,
    pub(super) open: &'p mut OpenExchange,
    pub(super) progress: &'p mut Progress,
    pub(super) workspace: &'p mut Workspace,
    /// The head of the answer, while it has not left.
    pub(super) head: &'p mut Vec<u8>,
}

impl Passage<'_> {
    /// Takes decoded bytes of the answer on their way to the client.
    pub(super) fn take(&mut self, data: &[u8]) -> Result<(), Aborted> {
        self.gateway.buffers.spare.lend(&mut self.workspace.piece);
        if let Some(mut frames) = self.progress.frames.take() {
            let taken = self.take_frames(&mut frames, data);
            self.progress.frames = Some(frames);
            return taken;
        }
        if self.progress.known {
            return self.pass(data);
        }
        if self.workspace.partial.is_empty()
            && let Some(kind) = BodyKind::of(data)
        {
            self.know(kind)?;
            return self.pass_first(data);
        }
        self.workspace.partial.extend_from_slice(data);
        let begin = &self.workspace.partial;
        let unknown = (begin.len() > MOST_UNKNOWN).then_some(BodyKind::Other);
        let Some(kind) = BodyKind::of(begin).or(unknown) else {
            return Ok(());
        };
        self.know(kind)?;
        let begin = std::mem::take(&mut self.workspace.partial);
        self.pass_first(&begin)
    }

    /// Takes the end of the answer: what is left is no whole event, or has not said what it is.
    ///
    /// A stream is whole with its dialect's good end, or when every choice has told why it finished and the body ends well.
    /// One that just ends, official clients would take for a short answer.
    pub(super) fn finish(&mut self) -> Result<(), Aborted> {
        if !self.progress.known {
            let begin = std::mem::take(&mut self.workspace.partial);
            if begin.is_empty() {
                self.answer_head.know(BodyKind::Other, self.head);
            } else {
                self.know(BodyKind::Other)?;
                self.pass_first(&begin)?;
            }
        }
        if self.answer_head.is_stream_of_success()
            && !self.progress.has_ended(&self.workspace.partial)
            && !self.finish_stream()?
        {
            return Err(Aborted::Upstream(Failure::Unfinished));
        }
        if let Some(translation) = self.progress.translation.take() {
            return self.finish_translated(&translation);
        }
        let rest = std::mem::take(&mut self.workspace.partial);
        self.workspace.usage.push(&rest);
        self.release(&rest)
    }

    /// Takes note of what the answer is.
    fn know(&mut self, kind: BodyKind) -> Result<(), Aborted> {
        self.progress.known = true;
        self.answer_head.know(kind, self.head);
        if self.answer_head.is_unreadable(kind) {
            let engine = &self.open.catalog.terms.engine;
            return Err(Aborted::Policy(
                self.gateway.observers.response_stopped(engine, Denial::Malformed),
            ));
        }
        Ok(())
    }

    /// Passes the first bytes of the answer.
    fn pass_first(&mut self, bytes: &[u8]) -> Result<(), Aborted> {
        match bytes.strip_prefix(BYTE_ORDER_MARK) {
            Some(events) if self.answer_head.events => {
                if self.progress.translation.is_none() {
                    self.release(BYTE_ORDER_MARK)?;
                }
                self.pass(events)
            }
            _ => self.pass(bytes),
        }
    }

    fn pass(&mut self, bytes: &[u8]) -> Result<(), Aborted> {
        if self.answer_head.events {
            return self.events(bytes);
        }
        if self.progress.translation.is_some() {
            return self.keep_to_translate(bytes);
        }
        self.workspace.usage.push(bytes);
        self.release(bytes)
    }

    /// Passes the events that end in `bytes`, and keeps the rest for theirs.
    fn events(&mut self, mut bytes: &[u8]) -> Result<(), Aborted> {
        if !self.workspace.partial.is_empty() || self.progress.in_event {
            let Some(end) = self.progress.ends.next_end(bytes) else {
                return self.keep(bytes);
            };
            let mut event = std::mem::take(&mut self.workspace.partial);
            event.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end..];
            if self.progress.translation.is_some() {
                self.translate_event(&event)?;
                event.clear();
                self.workspace.partial = event;
                return self.events(bytes);
            }
            match self.event(&event) {
                Event::Stays => {}
                Event::Leaves => {
                    self.let_go();
                    self.release(&event)?;
                }
                Event::MayEnd => {
                    self.progress.holds = true;
                    self.release(&event)?;
                }
                Event::Ends => {
                    self.progress.ended = true;
                    self.release(&event)?;
                }
                Event::Fails => return self.fail(&event),
            }
            self.progress.in_event = false;
            event.clear();
            self.workspace.partial = event;
        }
        if self.progress.translation.is_some() {
            return self.translate_events(bytes);
        }
        // What stands from `from` to `at` leaves in one go.
        let (mut from, mut at) = (0, 0);
        while let Some(length) = self.progress.ends.next_end(&bytes[at..]) {
            let begin = at;
            at += length;
            match self.event(&bytes[begin..at]) {
                Event::Leaves if !self.progress.holds => {}
                Event::Leaves => {
                    self.release(&bytes[from..begin])?;
                    self.let_go();
                    from = begin;
                }
                Event::MayEnd => {
                    self.release(&bytes[from..begin])?;
                    self.progress.holds = true;
                    from = begin;
                }
                Event::Stays => {
                    self.release(&bytes[from..begin])?;
                    from = at;
                }
                Event::Ends => {
                    self.release(&bytes[from..begin])?;
                    self.progress.ended = true;
                    from = begin;
                }
                Event::Fails => return self.fail(&bytes[from..at]),
            }
        }
        self.release(&bytes[from..at])?;
        self.keep(&bytes[at..])
    }

    fn event(&mut self, event: &[u8]) -> Event {
        self.progress.events += u64::from(!event.starts_with(b":"));
        if self.progress.in_event {
            self.workspace.usage.push_part(event);
            // The client waits for the empty line: with the last piece it would have the whole.
            return match std::mem::replace(&mut self.progress.meaning, EventMeaning::Part) {
                EventMeaning::GoodEnd => Event::Ends,
                EventMeaning::Failure if !self.progress.ended && self.answer_head.is_stream_of_success() => {
                    Event::Fails
                }
                _ => Event::Leaves,
            };
        }
        let brings_usage = self.workspace.usage.push_event(event);
        if self.progress.ended {
            return Event::Leaves;
        }
        if let Some(candidates) = &mut self.progress.candidates {
            return match candidates.event(event) {
                EventMeaning::Failure if self.answer_head.is_stream_of_success() => Event::Fails,
                _ if candidates.are_whole() => Event::MayEnd,
                _ => Event::Leaves,
            };
        }
        self.progress.finish.event(event);
        match EventMeaning::of(self.progress.dialect, event) {
            EventMeaning::GoodEnd => Event::Ends,
            EventMeaning::Failure if self.answer_head.is_stream_of_success() => Event::Fails,
            _ if brings_usage && self.progress.keeps_usage && is_usage_alone(event) => Event::Stays,
            _ => Event::Leaves,
        }
    }

    /// Lets an event go that says that the answer failed, and what stands before it.
    pub(super) fn fail(&mut self, bytes: &[u8]) -> Result<(), Aborted> {
        self.release(bytes)?;
        Err(Aborted::Upstream(Failure::Reported))
    }

    /// Keeps what has come of an event until the rest of it does.
    pub(super) fn keep(&mut self, part: &[u8]) -> Result<(), Aborted> {
        if part.is_empty() {
            return Ok(());
        }
        if self.progress.in_event {
            self.workspace.usage.push_part(part);
            return self.release(part);
        }
        if self.workspace.partial.is_empty() {
            self.progress.growth = Growth::default();
        }
        self.gateway.buffers.spare.lend(&mut self.workspace.partial);
        self.workspace.partial.extend_from_slice(part);
        let is_kept_whole = self.progress.translation.is_some() || self.progress.candidates.is_some();
        if is_kept_whole || self.answer_head.to_frames {
            return self.take_room_for_partial();
        }
        if self.workspace.partial.len() > MOST_OF_AN_EVENT {
            self.progress.in_event = true;
            let part = std::mem::take(&mut self.workspace.partial);
            self.progress.meaning = EventMeaning::of_begin(self.progress.dialect, &part);
            self.workspace.usage.push_part(&part);
            return self.release(&part);
        }
        // When no more comes for a moment it is looked at in any case.
        if self.progress.growth.is_due(self.workspace.partial.len()) {
            self.progress.has_ended(&self.workspace.partial);
        }
        Ok(())
    }

    /// Lets go what was held back as the end that it was not.
    fn let_go(&mut self) {
        if std::mem::take(&mut self.progress.holds) {
            append(&mut self.workspace.piece, &mut self.workspace.held);
        }
    }

    /// Lets bytes go, as far as the rules clear them.
    pub(super) fn release(&mut self, bytes: &[u8]) -> Result<(), Aborted> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.progress.holds && self.workspace.held.len() + bytes.len() > MAX_HELD {
            self.let_go();
        }
        let is_held = self.progress.ended || self.progress.holds;
        let Workspace { piece, held, .. } = &mut *self.workspace;
        let out = if is_held { held } else { piece };
        match self.answer_head.scrutiny {
            Scrutiny::None => out.extend_from_slice(bytes),
            Scrutiny::Observe => {
                out.extend_from_slice(bytes);
                if !self.progress.blind {
                    let seen = inspect(self.gateway, self.answer_head, self.open, self.workspace, bytes);
                    if seen.is_err() {
                        self.progress.blind = true;
                        // What they have held is of no use any more.
                        let _ = self.workspace.end_inspection();
                    }
                }
            }
            Scrutiny::Enforce => {
                let cleared = inspect(self.gateway, self.answer_head, self.open, self.workspace, bytes);
                let Workspace {
                    piece, held, passed, ..
                } = &mut *self.workspace;
                let out = if is_held { held } else { piece };
                out.extend_from_slice(passed);
                return cleared.map_err(Aborted::Policy);
            }
        }
        Ok(())
    }
}
