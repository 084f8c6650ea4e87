//! Retention and erasure: which parts of a ledger must be kept, and which may be deleted.
//!
//! | what | where |
//! |---|---|
//! | what must be kept, whatever other rules allow | [`Hold`], [`HoldScope`] |
//! | the retention job's state and the key that signs deletions | [`RetentionState`] |
//! | the content of a log, by tenant and time | `survey` |
//! | the logs of a shard, and those whose content is unknown | `logs` |
//! | exchanges that ended in a log that cannot be read | `exchange_ends` |
//! | which logs may be removed, and why others are retained | [`PlanRequest`] |
//! | removing a log: its tombstone first | `remove` |
//! | destroying salts, signed first | [`erase`] |
//! | destroying tenants' keys, signed first | [`shred`] |
//! | statements about holds, beside the shards | [`write_hold_statements`] |
//! | statements that must be in the auditor's log first | [`Anchors`] |
//!
//! Deleting and signing records are separate duties: the retention key is a key of its own, and its state is stored apart
//! from the ledger. A state that is missing or unreadable stops every deletion, because it may have contained any hold.
#![forbid(unsafe_code)]

mod anchors;
mod erase;
mod error;
mod exchange_ends;
mod hold;
mod lock;
mod logs;
mod plan;
mod policy;
mod reason;
mod remove;
mod retention_state;
mod salt_destruction;
mod shred;
mod statements;
mod survey;

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
