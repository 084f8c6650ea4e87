//! What an answer is made of while it passes: memory that serves one answer after another, whoever's they are.
//!
//! Of many exchanges at a time most wait. An answer takes a draft when its head has come and gives it back before it
//! waits for its record, so that few drafts do for many connections, and those stay in the processor's cache.

use std::cell::RefCell;

use proofgate_inspect::{AnswerKind, ResponseInspector};
use proofgate_ledger::record::Usage;
use proofgate_providers::UsageTail;

/// Drafts that are kept for answers to come.
const MOST_SPARE: usize = 64;
/// Of an answer of more bytes the draft is not kept.
const MOST_BYTES: u64 = 64 * 1024;

#[derive(Default)]
pub(crate) struct Draft {
    /// Decoded bytes on their way to the client.
    pub(crate) piece: Vec<u8>,
    /// The end of the answer, held back until its completion is written.
    pub(crate) held: Vec<u8>,
    pub(crate) tail: UsageTail,
    /// What looks at answers, once there were rules for them.
    inspector: Option<ResponseInspector>,
    /// What it has let pass.
    pub(crate) passed: Vec<u8>,
    /// Most bytes of an answer that the inspector holds.
    limit: usize,
    /// Whether the inspector is at work on this answer.
    inspected: bool,
}

impl Draft {
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
    }

    /// The inspector, if it has seen anything of this answer, and where it puts what it lets pass.
    pub(crate) fn inspector(&mut self) -> Option<(&mut ResponseInspector, &mut Vec<u8>)> {
        let inspector = self.inspector.as_mut().filter(|_| self.inspected)?;
        Some((inspector, &mut self.passed))
    }

    /// The tokens that the upstream says it has used.
    pub(crate) fn usage(&mut self) -> Option<Usage> {
        let usage = self.tail.usage()?;
        Some(Usage {
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
        })
    }
}

/// Drafts that nobody uses.
#[derive(Default)]
#[expect(clippy::vec_box, reason = "an answer holds its box, and gives back that")]
pub(crate) struct Drafts(RefCell<Vec<Box<Draft>>>);

impl Drafts {
    /// An empty draft; the one that was used last, if there is any.
    pub(crate) fn take(&self) -> Box<Draft> {
        let Some(mut draft) = self.0.borrow_mut().pop() else {
            return Box::default();
        };
        draft.piece.clear();
        draft.held.clear();
        draft.tail.clear();
        draft.passed.clear();
        draft.inspected = false;
        draft
    }

    /// Takes back the draft of an answer of `bytes` bytes.
    pub(crate) fn put_back(&self, draft: Box<Draft>, bytes: u64) {
        let mut drafts = self.0.borrow_mut();
        if bytes <= MOST_BYTES && drafts.len() < MOST_SPARE {
            drafts.push(draft);
        }
    }
}

#[cfg(test)]
mod tests {
    use proofgate_inspect::{AnswerKind, Reading, Stop};
    use proofgate_policy::{Engine, PolicyConfig, Scratch};

    use super::{Drafts, MOST_BYTES};

    #[test]
    fn a_draft_that_is_taken_again_knows_nothing_of_the_answer_before() {
        let drafts = Drafts::default();
        let mut draft = drafts.take();
        draft.inspect(AnswerKind::Unary, 100);
        assert!(draft.inspector().is_some());
        for part in [&mut draft.piece, &mut draft.held, &mut draft.passed] {
            part.extend_from_slice(b"secret");
        }
        draft
            .tail
            .push(br#"{"usage":{"prompt_tokens":1,"completion_tokens":1}}"#);
        assert!(draft.usage().is_some());
        drafts.put_back(draft, 6);

        let mut draft = drafts.take();
        assert_eq!(drafts.0.borrow().len(), 0);
        assert!(draft.piece.is_empty() && draft.held.is_empty() && draft.passed.is_empty());
        assert!(draft.usage().is_none());
        assert!(draft.inspector().is_none());
    }

    #[test]
    fn a_limit_that_has_changed_holds_for_the_next_answer() {
        let engine = Engine::compile(&PolicyConfig::default()).unwrap();
        let (profile, mut scratch) = (engine.profile(None).unwrap(), Scratch::new());
        let mut draft = Drafts::default().take();
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
        assert_eq!(ends, [Ok(()), Err(Stop::TooLarge), Ok(())]);
    }

    #[test]
    fn the_draft_of_a_long_answer_is_not_kept() {
        let drafts = Drafts::default();
        drafts.put_back(drafts.take(), MOST_BYTES);
        assert_eq!(drafts.0.borrow().len(), 1);
        drafts.put_back(drafts.take(), MOST_BYTES + 1);
        assert_eq!(drafts.0.borrow().len(), 0);
    }
}
