//! Keeping and forgetting: what must stay of a ledger, and what may go.
//!
//! | what | where |
//! |---|---|
//! | what must not go, whatever else says that it may | [`Hold`], [`HoldScope`] |
//! | whose state that is, and whose key signs what goes | [`RetentionState`] |
//! | what a log holds, of whom and from when | `survey` |
//! | which logs a shard has, and of which nobody knows what they held | `logs` |
//! | which exchanges ended in a log that nobody can read | `ends` |
//! | which logs may go, and why the others stay | [`PlanRequest`] |
//! | how one goes: its tombstone first | `remove` |
//! | salts that are destroyed, signed first | [`erase`] |
//! | keys of tenants that are destroyed, signed first | [`shred`] |
//! | what is stated of holds beside the shards | [`write_hold_statements`] |
//! | what has to be in the auditor's log before | [`Anchors`] |
//!
//! Whoever deletes is not whoever signs records: the retention key is one of its own, and its state lies apart from the
//! ledger. A state that is not there, or cannot be read, stops every deletion: it could have held anything.
#![forbid(unsafe_code)]

mod anchors;
mod ends;
mod erase;
mod error;
mod hold;
mod lock;
mod logs;
mod plan;
mod policy;
mod reason;
mod remove;
mod retention_state;
mod shred;
mod statements;
mod survey;
mod zeros;

pub use anchors::Anchors;
pub use erase::{ErasureRequest, ErasureTarget, PlannedErasure, SaltAction, erase, plan_erasure};
pub use error::RetentionError;
pub use hold::{Hold, HoldRelease, HoldScope};
pub use plan::{PlanRequest, PlannedLog, RemovableLog, RemovalAction, plan};
pub use policy::RetentionPolicy;
pub use reason::RetentionReason;
pub use remove::prune;
pub use retention_state::RetentionState;
pub use shred::{KeyAction, PlannedShred, ShredRequest, plan_shred, shred};
pub use statements::write_hold_statements;
