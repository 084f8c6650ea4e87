//! The auditor: follows all logs of a ledger from outside, with a key that no worker holds.
//!
//! | what | where |
//! |---|---|
//! | a look at one log: its checkpoint first, then its records up to that | `look`, `tail`, `facts` |
//! | the logs of a shard against each other | `chain` |
//! | which logs are looked at | `intake` |
//! | what is wrong, once a second look has confirmed it | `finding` |
//! | reading again what was verified before | `scrub` |
//! | logs that were removed by right | `removal` |
//! | what the retention job signed of holds, erasures and keys | `statement`, `log_statements`, `ledger_statements` |
//! | the aggregate log of all heads, its tiles, and its readers | `aggregate`, `tile`, `published`, `entry` |
//! | asking witnesses to cosign it | `cosigning` |
//! | heads of the log of who read what | `reads` |
//! | workers that serve their shards themselves, and do not answer | `reach` |
//! | whose keys go together | `parties` |
//! | the auditor's own state, and what is held of it elsewhere | `catalogue`, `held` |
//!
//! The volume is only read, through [`ReadStorage`](proofgate_evidence::ReadStorage), and nothing on it is believed that is
//! not below a checkpoint that verifies. The state is written through [`StateStorage`]. One thread polls; readers of what
//! is published wait for nobody. The auditor has no clock: whoever polls says what time it is.
#![forbid(unsafe_code)]

mod aggregate;
mod auditor;
mod catalogue;
mod chain;
mod configurations;
mod cosigning;
mod entry;
mod erasures;
mod error;
mod facts;
mod files;
mod finding;
mod held;
mod intake;
mod keys;
mod ledger_statements;
mod log;
mod log_statements;
mod look;
mod parties;
mod published;
mod reach;
mod reads;
mod removal;
mod scrub;
mod settings;
mod statement;
mod tail;
mod text;
mod tile;
mod view;

pub use aggregate::AggregateWriter;
pub use auditor::{Auditor, PollSummary, ShardHead};
pub use cosigning::{CosigningCoordinator, WitnessRequest, WitnessResponse, WitnessStatus};
pub use entry::{Entry, EntryKind};
pub use error::AuditorError;
pub use finding::{Finding, FindingCode};
pub use log::AcceptedHead;
pub use proofgate_state::{StateDirectory, StateStorage};
pub use published::PublishedLog;
pub use reach::{Reachability, WorkerState, Workers};
pub use reads::AccessLogHead;
pub use settings::Settings;
pub use statement::{STATEMENT_TOLERANCE, Statement, StatementKind};
pub use tile::Tile;
