//! Exact limits for each tenant and each of its API keys: requests per minute, tokens per minute, tokens per day,
//! concurrent requests, and money per day and per month; and money for each model within a tenant.
//!
//! One thread owns the [`Limiter`], so it needs no lock. A request reserves the most that it can use before it is let
//! through ([`Limiter::admit`]); its [`Grant`] ends with what it did use ([`Limiter::settle`]).
//!
//! **What holds.** In no 60 seconds are more than `requests_per_minute` requests admitted. In no 60 seconds, and on no
//! UTC day, are more tokens booked than the limit plus `Σ max(used − reserved, 0)` over the requests that were settled
//! in that time: only a provider that counts more than was reserved, or one more that was asked, can pass a limit, and no request is admitted after
//! it until the excess has left. Of money the same holds on every UTC day and in every UTC month, with what a request is
//! said to cost at most in the place of its tokens. Consumption is held for 60 to 61 seconds, because it is kept by the second.
//!
//! **Hand-over without a shared store.** Every incarnation of a worker publishes its own consumption and nothing else,
//! as a [`Snapshot`] under its [`Origin`]. Whoever serves a tenant counts its own consumption and the sum over all other
//! origins ([`RemoteSnapshots`]). Of two snapshots of one origin the newer one wins, so merging is idempotent and commutative.
//!
//! ```text
//!  data-plane thread                                 slow thread
//!  Limiter ── take_changes ─► Changes ─────────────► Snapshot::apply ─► the state file of this incarnation
//!          ◄─ absorb ◄─────── [(name, Usage)] ◄───── Foreign::take_changes ◄─ absorb ◄─ everybody else's state files
//! ```
//!
//! **After a crash** the ledger is the truth: [`Replay`] takes the last snapshot and the records behind it and yields
//! the snapshot that the dead incarnation would have written last.
//!
//! The crate does no I/O and reads no clock: every call is told the time in unix microseconds. A time before one that
//! was told earlier counts as that earlier one, so a clock that steps back stops the windows and gives nothing out; a
//! caller that wants to be immune tells a time that goes on by a monotonic clock, says where the clock was set ahead, and
//! turns the limiter back where it had been wrong for long. A day or a month that a clock left because it was set, and comes to
//! again, goes on with what had been consumed in it.
#![forbid(unsafe_code)]

mod calendar;
mod config;
mod counts;
mod demand;
mod exceeded;
mod foreign;
mod kinds;
mod limiter;
mod moment;
mod policies;
mod quotas;
mod replay;
mod report;
mod snapshot;
mod standing;
mod stepped;
mod subject;
mod text;
mod usage;
mod window;

pub use config::{CredentialHex, CredentialId, ModelBudget};
pub use counts::{Counts, Periods};
pub use demand::{ActualUsage, Demand, MAX_COST, MAX_TOKENS};
pub use exceeded::{LimitExceeded, Scope, format_dollars};
pub use foreign::RemoteSnapshots;
pub use kinds::{Limit, LimitKind, Limits, Period, Quantity};
pub use limiter::{Grant, Limiter, TenantId};
pub use quotas::{Quotas, TenantLimits};
pub use replay::{AdmittedReservation, Replay};
pub use report::{UsageEntry, UsageReport};
pub use snapshot::{Changes, IN_FLIGHT_FRESH_SECONDS, Origin, Snapshot};
pub use standing::LimitStatus;
pub use stepped::ClockStepHistory;
pub use subject::Totals;
pub use usage::{SubjectKind, SubjectName, Usage};
pub use window::{Second, WINDOW_SECONDS};

/// Microseconds in a second.
const MICROS_PER_SECOND: u64 = 1_000_000;
/// Seconds in a UTC day; unix time has no leap seconds.
const SECONDS_PER_DAY: u64 = 86_400;
