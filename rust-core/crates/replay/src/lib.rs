//! Replays the verdicts of recorded exchanges, with the rules that were in force or with others.
//!
//! | what | where |
//! |---|---|
//! | the exchanges of a ledger that checkpoints cover, each with the digest of its configuration | `exchanges` |
//! | their bodies, stored beside the log or elsewhere | `bodies` |
//! | an archived configuration: the engine and the terms of each tenant | `configuration` |
//! | a recorded or replayed verdict | `direction_verdict` |
//! | evaluating the rules on bodies | `judge` |
//! | comparing a record with the result | `compare` |
//!
//! The rules, the parsing of bodies and the inspection of answers are the worker's code. A verdict depends only on text
//! and rules, with one exception: a worker gives up on a text whose evaluation exceeds its CPU time
//! limit. A replay has [`TIME_BUDGET_FACTOR`] times this limit, and at least a second, so that it
//! can repeat every decision of a worker.
#![forbid(unsafe_code)]

mod bodies;
mod compare;
mod configuration;
mod direction_verdict;
mod exchanges;
mod judge;

pub use bodies::MissingReason;
pub use compare::{Agreement, Comparison, Replayer};
pub use configuration::{ReplayError, RuleSource, TIME_BUDGET_FACTOR};
pub use direction_verdict::{DirectionVerdict, FlaggedToolTexts, GuardedToolCall, VerdictKind};
pub use exchanges::{Exchange, ExchangeFilter, Exchanges};
pub use proofgate_payloads::PayloadField;
