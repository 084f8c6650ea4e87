//! Buffers for relaying responses; each buffer is used by the responses of all clients, one after
//! another.
//!
//! Most exchanges are waiting at any time. A response acquires a workspace when its head arrives,
//! and releases it before it waits for its record. So a few workspaces are enough for many
//! connections, and they stay in the processor's cache.

use std::cell::RefCell;
use std::rc::Rc;

use proofgate_inspect::{ResponseInspector, ResponseKind};
use proofgate_ledger::record::{TierName, Usage};
use proofgate_providers::{Dialect, UsageReader};

use crate::memory::{MemoryBudget, MemoryExhausted, MemoryReservation};

/// Maximum number of pooled workspaces.
const MAX_POOLED: usize = 64;
/// Bytes of memory that an inspector keeps for the next response.
const RETAINED_INSPECTOR_BYTES: usize = 64 * 1024;
/// Maximum size of a workspace that is kept, in bytes.
const MAX_RETAINED_BYTES: usize = 128 * 1024;

/// The buffers of one response while it is relayed.
pub struct ResponseWorkspace {
    /// Decoded bytes on their way to the client.
    pub chunk: Vec<u8>,
    /// The end of the response, held back until the completion record is written.
    pub held_back: Vec<u8>,
    /// The first part of a response of unknown kind, or of an event.
    pub partial: Vec<u8>,
    pub usage: UsageReader,
    /// The inspector of responses; `None` if there are no rules.
    inspector: Option<ResponseInspector>,
    /// Bytes that the inspector has cleared.
    pub approved_bytes: Vec<u8>,
    /// Maximum bytes of a response that the inspector holds.
    inspection_limit: usize,
    /// Whether the inspector is active for this response.
    is_inspecting: bool,
    /// The reservation for held bytes of the response.
    reservation: MemoryReservation,
}

impl ResponseWorkspace {
    fn new(budget: &Rc<MemoryBudget>) -> Self {
        ResponseWorkspace {
            chunk: Vec::new(),
            held_back: Vec::new(),
            partial: Vec::new(),
            usage: UsageReader::default(),
            inspector: None,
            approved_bytes: Vec::new(),
            inspection_limit: 0,
            is_inspecting: false,
            reservation: MemoryReservation::new(budget),
        }
    }

    /// Reserves memory for the bytes that the inspector holds and for `more` bytes.
    ///
    /// # Errors
    /// [`MemoryExhausted`]: these bytes must not be passed to the inspector.
    pub fn reserve(&mut self, more: usize) -> Result<(), MemoryExhausted> {
        let held = self.inspector.as_ref().map_or(0, ResponseInspector::capacity);
        self.reservation.resize(held.saturating_add(more))
    }

    /// Releases the memory that the inspector no longer needs, because it has seen the end of the
    /// response or no longer inspects it.
    ///
    /// # Errors
    /// [`MemoryExhausted`] if its output needs more memory than there is.
    pub fn finish_inspection(&mut self) -> Result<(), MemoryExhausted> {
        if let Some(inspector) = &mut self.inspector {
            inspector.release_memory(RETAINED_INSPECTOR_BYTES);
        }
        let made = self.chunk.capacity() + self.held_back.capacity() + self.approved_bytes.capacity();
        self.reserve(made)
    }

    /// Takes the reservation for bytes that still have to be sent after the workspace is released.
    pub fn take_reservation(&mut self) -> MemoryReservation {
        self.reservation.take()
    }

    /// Returns the approximate memory of the workspace, in bytes.
    fn capacity(&self) -> usize {
        let out = self.chunk.capacity() + self.held_back.capacity();
        let buffers = out + self.approved_bytes.capacity() + self.partial.capacity();
        buffers + self.inspector.as_ref().map_or(0, ResponseInspector::capacity)
    }

    /// Starts the inspection of the response; returns whether it was not active before.
    pub fn inspect(&mut self, dialect: Dialect, kind: ResponseKind, limit: u64) -> bool {
        if std::mem::replace(&mut self.is_inspecting, true) {
            return false;
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        match &mut self.inspector {
            Some(inspector) if self.inspection_limit == limit => inspector.reset(dialect, kind),
            other => *other = Some(ResponseInspector::new(dialect, kind, limit)),
        }
        self.inspection_limit = limit;
        // The previous response may have left more memory than the budget permits.
        if self.reserve(0).is_err() {
            self.inspector = Some(ResponseInspector::new(dialect, kind, limit));
        }
        true
    }

    /// Returns the inspector and its output; `None` if it has not inspected this response.
    pub fn inspector(&mut self) -> Option<(&mut ResponseInspector, &mut Vec<u8>)> {
        let inspector = self.inspector.as_mut().filter(|_| self.is_inspecting)?;
        Some((inspector, &mut self.approved_bytes))
    }

    /// Returns the token usage that the upstream reported.
    pub fn usage(&self) -> Option<Usage> {
        self.usage.usage().map(to_record_usage)
    }
}

/// Converts a usage to the form of records.
pub fn to_record_usage(usage: proofgate_providers::Usage) -> Usage {
    Usage {
        prompt_tokens: usage.prompt_tokens,
        completion_tokens: usage.completion_tokens,
        cached_prompt_tokens: usage.cached_prompt_tokens,
        cache_write_tokens: usage.cache_write_tokens,
        cache_write_1h_tokens: usage.cache_write_1h_tokens,
        audio_prompt_tokens: usage.audio_prompt_tokens,
        reasoning_tokens: usage.reasoning_tokens,
        audio_completion_tokens: usage.audio_completion_tokens,
        web_search_requests: usage.web_search_requests,
        web_fetch_requests: usage.web_fetch_requests,
        partial: usage.is_partial,
        service_tier: usage.tier.map(|tier| TierName::new(tier.as_str())),
    }
}

/// A pool of unused workspaces.
#[expect(clippy::vec_box, reason = "an answer returns its box to the pool")]
pub struct WorkspacePool {
    free: RefCell<Vec<Box<ResponseWorkspace>>>,
    budget: Rc<MemoryBudget>,
}

impl WorkspacePool {
    pub fn new(budget: &Rc<MemoryBudget>) -> Self {
        WorkspacePool {
            free: RefCell::default(),
            budget: Rc::clone(budget),
        }
    }

    /// Returns an empty workspace: the most recently used one, if there is any.
    pub fn acquire(&self) -> Box<ResponseWorkspace> {
        let Some(mut workspace) = self.free.borrow_mut().pop() else {
            return Box::new(ResponseWorkspace::new(&self.budget));
        };
        workspace.chunk.clear();
        workspace.held_back.clear();
        workspace.partial.clear();
        workspace.approved_bytes.clear();
        workspace.is_inspecting = false;
        workspace
    }

    /// Returns the workspace of a finished response to the pool.
    pub fn release(&self, mut workspace: Box<ResponseWorkspace>) {
        workspace.take_reservation();
        let mut spare = self.free.borrow_mut();
        if workspace.capacity() <= MAX_RETAINED_BYTES && spare.len() < MAX_POOLED {
            spare.push(workspace);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use prometheus_client::metrics::gauge::Gauge;
    use proofgate_inspect::{Denial, ReadBuffers, ResponseKind};
    use proofgate_policy::{Engine, PolicyConfig, Scratch};
    use proofgate_providers::Dialect;

    use super::{MAX_RETAINED_BYTES, WorkspacePool};
    use crate::memory::{MemoryBudget, MemoryExhausted, UNRESERVED_BYTES};

    fn workspaces(budget: u64) -> (WorkspacePool, Gauge) {
        let used = Gauge::default();
        (
            WorkspacePool::new(&Rc::new(MemoryBudget::new(budget, used.clone()))),
            used,
        )
    }

    #[test]
    fn a_workspace_that_is_taken_again_knows_nothing_of_the_answer_before() {
        let (workspaces, _) = workspaces(1 << 20);
        let mut workspace = workspaces.acquire();
        workspace.inspect(Dialect::Chat, ResponseKind::Unary, 100);
        assert!(workspace.inspector().is_some());
        for part in [
            &mut workspace.chunk,
            &mut workspace.held_back,
            &mut workspace.approved_bytes,
            &mut workspace.partial,
        ] {
            part.extend_from_slice(b"secret");
        }
        workspace
            .usage
            .push(br#"{"usage":{"prompt_tokens":1,"completion_tokens":1}}"#);
        assert!(workspace.usage().is_some());
        workspaces.release(workspace);

        let mut workspace = workspaces.acquire();
        assert_eq!(workspaces.free.borrow().len(), 0);
        assert!(workspace.chunk.is_empty() && workspace.held_back.is_empty());
        assert!(workspace.approved_bytes.is_empty() && workspace.partial.is_empty());
        workspace.usage.reset(Dialect::Chat);
        assert!(workspace.usage().is_none());
        assert!(workspace.inspector().is_none());
    }

    #[test]
    fn a_limit_that_has_changed_holds_for_the_next_answer() {
        let engine = Engine::compile(&PolicyConfig::default()).unwrap();
        let (profile, mut scratch) = (engine.profile(None).unwrap(), Scratch::new());
        let mut workspace = workspaces(1 << 20).0.acquire();
        let ends = [100, 5, 100].map(|limit| {
            workspace.is_inspecting = false;
            workspace.inspect(Dialect::Chat, ResponseKind::Unary, limit);
            let (inspector, passed) = workspace.inspector().unwrap();
            inspector.push(
                &engine,
                &profile,
                &mut scratch,
                &mut ReadBuffers::default(),
                b"0123456789",
                passed,
            )
        });
        assert_eq!(ends, [Ok(()), Err(Denial::TooLarge), Ok(())]);
    }

    #[test]
    fn a_workspace_that_has_grown_large_is_not_kept() {
        let (workspaces, _) = workspaces(1 << 20);
        let mut workspace = workspaces.acquire();
        workspace.chunk.reserve_exact(MAX_RETAINED_BYTES);
        workspaces.release(workspace);
        assert_eq!(workspaces.free.borrow().len(), 1);
        let mut workspace = workspaces.acquire();
        workspace.held_back.reserve_exact(1);
        workspaces.release(workspace);
        assert_eq!(workspaces.free.borrow().len(), 0);
    }

    #[test]
    fn what_an_inspector_holds_is_counted_until_the_workspace_is_given_back() {
        let engine = Engine::compile(&PolicyConfig::default()).unwrap();
        let (profile, mut scratch) = (engine.profile(None).unwrap(), Scratch::new());
        let (workspaces, used) = workspaces(1 << 20);
        let mut workspace = workspaces.acquire();
        workspace.inspect(Dialect::Chat, ResponseKind::Unary, 1 << 30);
        let piece = [b'x'; 16 * 1024];
        let mut taken = 0;
        while workspace.reserve(piece.len()).is_ok() {
            taken += piece.len();
            assert!(
                used.get() as usize + UNRESERVED_BYTES >= taken,
                "{used:?} {taken}"
            );
            let (inspector, passed) = workspace.inspector().unwrap();
            let reading = &mut ReadBuffers::default();
            let pushed = inspector.push(&engine, &profile, &mut scratch, reading, &piece, passed);
            assert_eq!(pushed, Ok(()));
        }
        assert!(taken > 500 << 10, "{taken}");
        assert_eq!(workspace.reserve(1 << 20), Err(MemoryExhausted));
        workspaces.release(workspace);
        assert_eq!(used.get(), 0);
        assert_eq!(workspaces.free.borrow().len(), 0, "its memory is given back, too");
    }

    #[test]
    fn the_room_of_what_is_being_sent_outlives_its_workspace() {
        let (workspaces, used) = workspaces(1 << 20);
        let mut workspace = workspaces.acquire();
        workspace.reserve(100_000).unwrap();
        let share = workspace.take_reservation();
        workspaces.release(workspace);
        assert_eq!(used.get() as usize, 100_000 - UNRESERVED_BYTES);
        drop(share);
        assert_eq!(used.get(), 0);
    }
}
