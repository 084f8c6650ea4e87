//! The state that the judgement of requests keeps from one request to the next.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use proofgate_base::approvals::ApprovalIssuer;
use proofgate_base::memory::MemoryBudget;
use proofgate_external_policies::PolicyCopyMemory;
use proofgate_inspect::ScanCache;
use proofgate_observe::metrics::Metrics;
use proofgate_upstream::catalog::Catalog;

/// Earlier findings, approvals, and the memory of requests that wait for external policies.
pub struct PolicyState {
    /// Findings in messages that were already scanned.
    pub scan_cache: RefCell<ScanCache>,
    /// Approvals of calls of guarded tools.
    pub approvals: ApprovalIssuer,
    /// The memory that requests use while they wait for policies.
    pub policy_copy_memory: PolicyCopyMemory,
}

impl PolicyState {
    pub(crate) fn new(catalog: &Catalog, budget: &Rc<MemoryBudget>) -> Self {
        PolicyState {
            scan_cache: RefCell::new(ScanCache::new(catalog.settings.scan_cache_bytes())),
            approvals: ApprovalIssuer::new(),
            policy_copy_memory: PolicyCopyMemory::new(budget),
        }
    }

    /// Discards findings of rules that differ from those of `after`.
    pub(crate) fn apply_catalog(&self, before: &Catalog, after: &Catalog, metrics: &Metrics) {
        let most = after.settings.scan_cache_bytes();
        let mut known = self.scan_cache.borrow_mut();
        if !Arc::ptr_eq(&before.settings.engine, &after.settings.engine) || known.max_memory_bytes() != most {
            known.reset(most);
            metrics.scan_cache.record_memory(&known);
        }
    }
}
