//! What an answer is made of while it passes: memory that serves one answer after another, whoever's they are.
//!
//! Of many exchanges at a time most wait. An answer takes a draft when its head has come and gives it back before it
//! waits for its record, so that few drafts do for many connections, and those stay in the processor's cache.

use std::cell::RefCell;
use std::rc::Rc;

use proofgate_inspect::{AnswerKind, ResponseInspector};
use proofgate_ledger::record::Usage;
use proofgate_providers::UsageReader;

use crate::memory::{Budget, Exhausted, Share};

/// Drafts that are kept for answers to come.
const MOST_SPARE: usize = 64;
/// Bytes of memory that an inspector keeps for the next answer.
const KEPT: usize = 64 * 1024;
/// A draft that has more memory is not kept, in bytes.
const MOST_BYTES: usize = 128 * 1024;

pub(crate) struct AnswerBuffers {
    /// Decoded bytes on their way to the client.
    pub(crate) piece: Vec<u8>,
    /// The end of the answer, held back until its completion is written.
    pub(crate) held: Vec<u8>,
    /// What has come of an answer whose kind is not known yet, or of an event.
    pub(crate) partial: Vec<u8>,
    pub(crate) usage: UsageReader,
    /// What looks at answers, once there were rules for them.
    inspector: Option<ResponseInspector>,
    /// What it has let pass.
    pub(crate) passed: Vec<u8>,
    /// Most bytes of an answer that the inspector holds.
    limit: usize,
    /// Whether the inspector is at work on this answer.
    inspected: bool,
    /// What is taken of the budget for what is held of the answer.
    share: Share,
}

impl AnswerBuffers {
    fn new(budget: &Rc<Budget>) -> Self {
        AnswerBuffers {
            piece: Vec::new(),
            held: Vec::new(),
            partial: Vec::new(),
            usage: UsageReader::default(),
            inspector: None,
            passed: Vec::new(),
            limit: 0,
            inspected: false,
            share: Share::new(budget),
        }
    }

    /// Takes room for what the inspector holds and for `more` bytes.
    ///
    /// # Errors
    /// [`Exhausted`]: it must not be given these bytes.
    pub(crate) fn make_room(&mut self, more: usize) -> Result<(), Exhausted> {
        let held = self.inspector.as_ref().map_or(0, ResponseInspector::capacity);
        self.share.resize(held.saturating_add(more))
    }

    /// Gives back what the inspector no longer needs: it has seen the end of the answer, or sees no more of it.
    ///
    /// # Errors
    /// [`Exhausted`] when what it made of the answer takes more room than there is.
    pub(crate) fn end_inspection(&mut self) -> Result<(), Exhausted> {
        if let Some(inspector) = &mut self.inspector {
            inspector.give_back(KEPT);
        }
        let made = self.piece.capacity() + self.held.capacity() + self.passed.capacity();
        self.make_room(made)
    }

    /// The room of what is still to be sent, for the time after the draft has been given back.
    pub(crate) fn take_share(&mut self) -> Share {
        self.share.take()
    }

    /// Bytes of memory that it takes, for the most part.
    fn capacity(&self) -> usize {
        let out = self.piece.capacity() + self.held.capacity();
        let buffers = out + self.passed.capacity() + self.partial.capacity();
        buffers + self.inspector.as_ref().map_or(0, ResponseInspector::capacity)
    }

    /// Has the inspector look at the answer from here on, if it does not yet.
    pub(crate) fn inspect(&mut self, kind: AnswerKind, limit: u64) {
        if std::mem::replace(&mut self.inspected, true) {
            return;
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        match &mut self.inspector {
            Some(inspector) if self.limit == limit => inspector.reset(kind),
            other => *other = Some(ResponseInspector::new(kind, limit)),
        }
        self.limit = limit;
        // What an answer before this one has left may be more than there is room for.
        if self.make_room(0).is_err() {
            self.inspector = Some(ResponseInspector::new(kind, limit));
        }
    }

    /// The inspector, if it has seen anything of this answer, and where it puts what it lets pass.
    pub(crate) fn inspector(&mut self) -> Option<(&mut ResponseInspector, &mut Vec<u8>)> {
        let inspector = self.inspector.as_mut().filter(|_| self.inspected)?;
        Some((inspector, &mut self.passed))
    }

    /// The tokens that the upstream says it has used.
    pub(crate) fn usage(&self) -> Option<Usage> {
        let usage = self.usage.usage()?;
        Some(Usage {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
        })
    }
}

/// Drafts that nobody uses.
#[expect(clippy::vec_box, reason = "an answer holds its box, and gives back that")]
pub(crate) struct Drafts {
    spare: RefCell<Vec<Box<AnswerBuffers>>>,
    budget: Rc<Budget>,
}

impl Drafts {
    pub(crate) fn new(budget: &Rc<Budget>) -> Self {
        Drafts {
            spare: RefCell::default(),
            budget: Rc::clone(budget),
        }
    }

    /// An empty draft; the one that was used last, if there is any.
    pub(crate) fn take(&self) -> Box<AnswerBuffers> {
        let Some(mut draft) = self.spare.borrow_mut().pop() else {
            return Box::new(AnswerBuffers::new(&self.budget));
        };
        draft.piece.clear();
        draft.held.clear();
        draft.partial.clear();
        draft.usage.clear();
        draft.passed.clear();
        draft.inspected = false;
        draft
    }

    /// Takes back the draft of an answer that is over.
    pub(crate) fn put_back(&self, mut draft: Box<AnswerBuffers>) {
        draft.take_share();
        let mut spare = self.spare.borrow_mut();
        if draft.capacity() <= MOST_BYTES && spare.len() < MOST_SPARE {
            spare.push(draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use prometheus_client::metrics::gauge::Gauge;
    use proofgate_inspect::{AnswerKind, Denial, Reading};
    use proofgate_policy::{Engine, PolicyConfig, Scratch};

    use super::{Drafts, MOST_BYTES};
    use crate::memory::{Budget, Exhausted, OWN};

    fn drafts(budget: u64) -> (Drafts, Gauge) {
        let used = Gauge::default();
        (Drafts::new(&Rc::new(Budget::new(budget, used.clone()))), used)
    }

    #[test]
    fn a_draft_that_is_taken_again_knows_nothing_of_the_answer_before() {
        let (drafts, _) = drafts(1 << 20);
        let mut draft = drafts.take();
        draft.inspect(AnswerKind::Unary, 100);
        assert!(draft.inspector().is_some());
        for part in [
            &mut draft.piece,
            &mut draft.held,
            &mut draft.passed,
            &mut draft.partial,
        ] {
            part.extend_from_slice(b"secret");
        }
        draft
            .usage
            .push(br#"{"usage":{"prompt_tokens":1,"completion_tokens":1}}"#);
        assert!(draft.usage().is_some());
        drafts.put_back(draft);

        let mut draft = drafts.take();
        assert_eq!(drafts.spare.borrow().len(), 0);
        assert!(draft.piece.is_empty() && draft.held.is_empty());
        assert!(draft.passed.is_empty() && draft.partial.is_empty());
        assert!(draft.usage().is_none());
        assert!(draft.inspector().is_none());
    }

    #[test]
    fn a_limit_that_has_changed_holds_for_the_next_answer() {
        let engine = Engine::compile(&PolicyConfig::default()).unwrap();
        let (profile, mut scratch) = (engine.profile(None).unwrap(), Scratch::new());
        let mut draft = drafts(1 << 20).0.take();
        let ends = [100, 5, 100].map(|limit| {
            draft.inspected = false;
            draft.inspect(AnswerKind::Unary, limit);
            let (inspector, passed) = draft.inspector().unwrap();
            inspector.push(
                &engine,
                &profile,
                &mut scratch,
                &mut Reading::default(),
                b"0123456789",
                passed,
            )
        });
        assert_eq!(ends, [Ok(()), Err(Denial::TooLarge), Ok(())]);
    }

    #[test]
    fn a_draft_that_has_grown_large_is_not_kept() {
        let (drafts, _) = drafts(1 << 20);
        let mut draft = drafts.take();
        draft.piece.reserve_exact(MOST_BYTES);
        drafts.put_back(draft);
        assert_eq!(drafts.spare.borrow().len(), 1);
        let mut draft = drafts.take();
        draft.held.reserve_exact(1);
        drafts.put_back(draft);
        assert_eq!(drafts.spare.borrow().len(), 0);
    }

    #[test]
    fn what_an_inspector_holds_is_counted_until_the_draft_is_given_back() {
        let engine = Engine::compile(&PolicyConfig::default()).unwrap();
        let (profile, mut scratch) = (engine.profile(None).unwrap(), Scratch::new());
        let (drafts, used) = drafts(1 << 20);
        let mut draft = drafts.take();
        draft.inspect(AnswerKind::Unary, 1 << 30);
        let piece = [b'x'; 16 * 1024];
        let mut taken = 0;
        while draft.make_room(piece.len()).is_ok() {
            taken += piece.len();
            assert!(used.get() as usize + OWN >= taken, "{used:?} {taken}");
            let (inspector, passed) = draft.inspector().unwrap();
            let reading = &mut Reading::default();
            let pushed = inspector.push(&engine, &profile, &mut scratch, reading, &piece, passed);
            assert_eq!(pushed, Ok(()));
        }
        assert!(taken > 500 << 10, "{taken}");
        assert_eq!(draft.make_room(1 << 20), Err(Exhausted));
        drafts.put_back(draft);
        assert_eq!(used.get(), 0);
        assert_eq!(drafts.spare.borrow().len(), 0, "its memory is given back, too");
    }

    #[test]
    fn the_room_of_what_is_being_sent_outlives_its_draft() {
        let (drafts, used) = drafts(1 << 20);
        let mut draft = drafts.take();
        draft.make_room(100_000).unwrap();
        let share = draft.take_share();
        drafts.put_back(draft);
        assert_eq!(used.get() as usize, 100_000 - OWN);
        drop(share);
        assert_eq!(used.get(), 0);
    }
}
