//! Comes to the verdicts of recorded exchanges again, with the rules that were in force or with others.
//!
//! | what | where |
//! |---|---|
//! | the exchanges of a ledger, as far as checkpoints cover them, each with the name of its configuration | `exchanges` |
//! | their bodies, as they were stored or as somebody kept them | `bodies` |
//! | a configuration as it is archived: the engine and what holds for each tenant | `configuration` |
//! | a verdict, as a record tells it or as rules come to it | `side` |
//! | what rules make of bodies | `judge` |
//! | a record beside that | `compare` |
//!
//! Rules, reading of bodies and inspection of answers are those of the worker. A verdict follows from text and rules alone,
//! except for one thing: a worker gives up a text whose evaluation takes more than its time of the processor. Here it has
//! [`TIME_BUDGET_FACTOR`] times as much, and a second at least, so that what a worker decided is decided here, too.
#![forbid(unsafe_code)]

mod bodies;
mod compare;
mod configuration;
mod exchanges;
mod judge;
mod side;

pub use bodies::MissingReason;
pub use compare::{Agreement, Comparison, Replayer};
pub use configuration::{ReplayError, RuleSource, TIME_BUDGET_FACTOR};
pub use exchanges::{Exchange, ExchangeFilter, Exchanges};
pub use proofgate_payloads::PayloadField;
pub use side::{DirectionVerdict, FlaggedToolTexts, GuardedToolCall, VerdictKind};
