//! Policies that are evaluated outside of the data plane, by Python: asked once the rules have let a request pass, before
//! anything of it is recorded as admitted or sent.
//!
//! The data-plane thread never waits for an evaluator and shares no lock with it: a request is copied into the bounded
//! queue of its policy, and the connection's task waits for the verdict, or for the policy's deadline. Whatever keeps a
//! policy from a verdict is a [`PolicyFailure`], and what follows from one is the policy's to say. Requests of tenants without
//! such policies pay for one branch.
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
