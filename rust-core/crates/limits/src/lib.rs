//! Exact limits for each tenant and each of its API keys: requests per minute and per day, tokens
//! per minute and per day, concurrent requests, and money per day and per month. Money can also be
//! limited for each model of a tenant.
//!
//! One thread owns the [`Limiter`], so it needs no lock. A request reserves its maximum usage
//! before it is admitted ([`Limiter::admit`]). Its [`Grant`] is settled with its actual usage
//! ([`Limiter::settle`]).
//!
//! **Guarantees.** At most `requests_per_minute` requests are admitted in any 60 seconds. In any 60
//! seconds, and on any UTC day, the tokens booked are at most the limit plus `Σ max(used −
//! reserved, 0)` over the requests settled in that time. A limit can be exceeded only if a provider
//! counts more than was reserved, or if a second provider was also called. No request is then
//! admitted until the excess has expired. The same holds for money on every UTC day and in every
//! UTC month, with the request's maximum cost instead of its tokens. Consumption counts for 60 to
//! 61 seconds, because it is stored per second.
//!
//! **Hand-over without a shared store.** Every incarnation of a worker publishes only its own
//! consumption, as a [`Snapshot`] under its [`Origin`]. A worker that serves a tenant counts its
//! own consumption and the sum over all other origins ([`RemoteSnapshots`]). A newer snapshot of an
//! origin replaces an older one, so merging is idempotent and commutative.
//!
//! ```text
//!  data-plane thread                                 slow thread
//!  Limiter ── take_changes ─► Changes ─────────────► Snapshot::apply ─► the state file of this incarnation
//!          ◄─ apply_remote ◄─ [(name, Usage)] ◄───── RemoteSnapshots::take_changes ◄─ insert ◄─ the other state files
//! ```
//!
//! **After a crash** the ledger is the source of truth: from the last snapshot and the records
//! after it, [`Replay`] computes the snapshot that the crashed incarnation would have written last.
//!
//! The crate does no I/O and reads no clock: the caller passes the time in unix microseconds to
//! every call. A time before the time of a previous call is replaced by that previous time, so a
//! clock that steps back stops the windows and releases nothing. A caller that needs more passes a
//! time based on a monotonic clock, reports when the clock was set ahead
//! ([`Limiter::jump_forward`]), and rolls the limiter back after the clock was wrong for a long
//! time ([`Limiter::roll_back_clock`]). If the clock was set and later returns to a day or a month
//! that it had left, the consumption in that day or month counts again.
#![forbid(unsafe_code)]

mod clock_steps;
mod config;
mod counts;
mod demand;
mod kinds;
mod limit_exceeded;
mod limit_status;
mod limiter;
mod moment;
mod money;
mod quotas;
mod rate_limit_policy;
mod remote_snapshots;
mod replay;
mod report;
mod snapshot;
mod subject;
mod text;
mod usage;
mod window;

pub use clock_steps::ClockStepHistory;
pub use config::{CredentialHex, CredentialId, ModelBudget};
pub use counts::{Counts, Periods};
pub use demand::{ActualUsage, Demand, MAX_COST, MAX_TOKENS};
pub use kinds::{Limit, LimitKind, Limits, Period, Quantity};
pub use limit_exceeded::{LimitExceeded, Scope, format_dollars};
pub use limit_status::LimitStatus;
pub use limiter::{Grant, Limiter, TenantId};
pub use quotas::{Quotas, TenantLimits};
pub use remote_snapshots::RemoteSnapshots;
pub use replay::{AdmittedReservation, Replay};
pub use report::{UsageEntry, UsageReport};
pub use snapshot::{Changes, IN_FLIGHT_FRESH_SECONDS, Origin, Snapshot};
pub use subject::Totals;
pub use usage::{SubjectKind, SubjectName, Usage};
pub use window::{Second, WINDOW_SECONDS};

/// Microseconds in a second.
const MICROS_PER_SECOND: u64 = 1_000_000;
