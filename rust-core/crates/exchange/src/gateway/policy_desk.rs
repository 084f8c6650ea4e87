//! What judging requests keeps from one to the next.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use proofgate_base::approvals::Approvals;
use proofgate_base::memory::Budget;
use proofgate_external_policies::HookRoom;
use proofgate_inspect::KnownRuns;
use proofgate_observe::metrics::Metrics;
use proofgate_upstream::catalog::Catalog;

/// Earlier findings, approvals, and the memory of requests that wait for external policies.
pub struct PolicyDesk {
    /// What was found in messages that were scanned.
    pub known_runs: RefCell<KnownRuns>,
    /// Approvals of calls of guarded tools.
    pub approvals: Approvals,
    /// The part of the memory that requests use while they wait for policies.
    pub hook_room: HookRoom,
}

impl PolicyDesk {
    pub(crate) fn new(catalog: &Catalog, budget: &Rc<Budget>) -> Self {
        PolicyDesk {
            known_runs: RefCell::new(KnownRuns::new(catalog.terms.memory_for_known())),
            approvals: Approvals::new(),
            hook_room: HookRoom::new(budget),
        }
    }

    /// Forgets what other rules than those of `after` have found.
    pub(crate) fn follow(&self, before: &Catalog, after: &Catalog, metrics: &Metrics) {
        let most = after.terms.memory_for_known();
        let mut known = self.known_runs.borrow_mut();
        if !Arc::ptr_eq(&before.terms.engine, &after.terms.engine) || known.most() != most {
            known.forget(most);
            metrics.known_runs.show_memory(&known);
        }
    }
}
