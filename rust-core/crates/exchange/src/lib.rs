//! One exchange, from the body of a request to the last byte of its response. The steps are limits,
//! rules, admission record, sending, relaying and completion record.
//!
//! [`exchange::run`] performs these steps in order. [`gateway::Gateway`] is the state that the exchanges of the
//! data-plane thread share.
#![forbid(unsafe_code)]
#![allow(
    missing_docs,
    clippy::new_without_default,
    reason = "internal crate: the names of the items describe them"
)]

pub mod admission;
mod batch_input;
mod batch_lines;
pub mod body;
mod denial;
mod denied_betas;
pub mod endpoint;
mod estimate;
pub mod exchange;
mod fallback;
mod form;
pub mod gateway;
mod gateway_response;
mod guarded_tools;
mod hooks;
mod hosted_tools;
pub mod incoming_call;
mod limit_wait;
mod open_exchange;
mod policy_decision;
mod reasoning_removal;
pub mod receipts;
mod relay;
pub mod reply;
mod request_policy;
mod rewritten_body;
mod sender;
mod settlement;
#[cfg(test)]
mod settlement_money_tests;
pub mod upload;
pub mod usage_report;
