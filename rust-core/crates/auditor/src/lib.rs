//! The auditor, which follows all logs of a ledger independently of the workers, with a key that no
//! worker holds.
//!
//! | task | module |
//! |---|---|
//! | checks of one log: first its checkpoint, then its records up to the checkpoint | `log_check`, `log_tail`, `log_facts` |
//! | comparison of the logs of a shard with each other | `chain` |
//! | selection of the logs to check | `log_selection` |
//! | problems that a second check has confirmed | `finding` |
//! | repeated verification of accepted records | `scrub` |
//! | removed logs | `removal` |
//! | the retention job's statements of holds, erasures and keys | `statement`, `log_statements`, `ledger_statements` |
//! | the aggregate log of all heads, its tiles, and its readers | `aggregate`, `tile`, `published_log`, `entry` |
//! | requests for witness cosignatures of the aggregate log | `cosigning` |
//! | heads of the access log | `access_log` |
//! | workers that serve their own shards and do not answer | `reachability` |
//! | checks which keys may be used together | `key_checks` |
//! | the auditor's own state, and its checkpoints held outside the state | `catalogue`, `held_checkpoint` |
//!
//! The auditor only reads the volume, through [`ReadStorage`](proofgate_evidence::ReadStorage), and
//! trusts only data that a verified checkpoint covers. It writes its state through
//! [`StateStorage`]. One thread polls; readers of published data never wait. The auditor has no
//! clock, so the caller of a poll passes the time.
#![forbid(unsafe_code)]

mod access_log;
mod aggregate;
mod auditor;
mod catalogue;
mod chain;
mod check_context;
mod configurations;
mod cosigning;
mod entry;
mod erasures;
mod error;
mod files;
mod finding;
mod hash_encoding;
mod held_checkpoint;
mod key_checks;
mod key_lineage;
mod ledger_statements;
mod log;
mod log_check;
mod log_facts;
mod log_selection;
mod log_statements;
mod log_tail;
mod published_log;
mod reachability;
mod removal;
mod scrub;
mod settings;
mod statement;
mod tile;

pub use access_log::AccessLogHead;
pub use aggregate::AggregateWriter;
pub use auditor::{Auditor, PollSummary, ShardStatus};
pub use cosigning::{CosigningCoordinator, WitnessRequest, WitnessResponse, WitnessStatus};
pub use entry::{Entry, EntryKind};
pub use error::AuditorError;
pub use finding::{Finding, FindingCode};
pub use log::AcceptedHead;
pub use proofgate_state::{StateDirectory, StateStorage};
pub use published_log::PublishedLog;
pub use reachability::{Reachability, WorkerState, Workers};
pub use settings::Settings;
pub use statement::{STATEMENT_TOLERANCE, Statement, StatementKind};
pub use tile::Tile;
