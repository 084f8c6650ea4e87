//! External policies: evaluated by Python, outside the data plane. They run after the rules have passed a request,
//! and before it is recorded as admitted or sent.
//!
//! The data-plane thread never waits for an evaluator and shares no lock with it. A request is copied into its
//! policy's bounded queue, and the connection's task waits for the verdict or for the policy's deadline. Anything
//! that prevents a verdict is a [`PolicyFailure`]; the policy's [`OnFailure`] decides what happens to the request
//! then. Requests of tenants without external policies pay for one branch.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::new_without_default,
    reason = "internal crate: the names of the items describe them"
)]

mod breaker;
mod counters;
mod external_policy;
mod policy_copy_memory;
mod policy_metrics;
mod queue;
mod request_texts;
mod verdict;

pub use external_policy::{ExternalPolicies, ExternalPolicy, OnFailure};
pub use policy_copy_memory::PolicyCopyMemory;
pub use policy_metrics::ActivePolicyMetrics;
pub use queue::PolicyRequest;
pub use queue::{PolicyItem, PolicyQueue};
pub use request_texts::RequestTexts;
pub use verdict::{PolicyFailure, Replacement, Verdict};
