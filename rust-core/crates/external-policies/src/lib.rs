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
    reason = "only the layers above use it, and the names are clear enough"
)]

mod breaker;
mod counters;
mod document;
mod hook;
mod in_service;
mod queue;
mod room;
mod verdict;

pub use document::RequestTexts;
pub use hook::{Hook, Hooks, OnFailure};
pub use in_service::ActiveHooks;
pub use queue::PolicyRequest;
pub use queue::{PolicyItem, PolicyQueue};
pub use room::HookMemory;
pub use verdict::{PolicyFailure, Replacement, Verdict};
