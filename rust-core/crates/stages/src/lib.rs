//! The time that an exchange spends in each stage of the hot path, as histograms.
//!
//! Profiling is off unless a switch is on or a scope is open ([`Profiler`]). While it is off, an exchange costs one relaxed
//! load, no clock is read, and no series exist. While it is on, the exchange carries a [`Span`]: each [`Span::lap`] adds the
//! time since the previous lap to a [`Stage`], and [`Span::finish`] records every stage that occurred once, with the sum of
//! its laps. In either case nothing is locked, looked up or allocated: a measured span reuses the
//! memory of an ended one, if its thread has had as many concurrent spans before. An exchange that
//! started while profiling was off is not measured, and one that started while it was on is
//! measured completely.
//!
//! # Stages
//! Stages of one exchange, in the order of their first laps. Stages are disjoint, and those of one exchange together with
//! `unaccounted` add up to `total` to the nanosecond.
//!
//! | stage | from | to |
//! |---|---|---|
//! | `parse` | whole head arrived; whole body arrived | head parsed and framing checked; model and messages known |
//! | `auth` | the head is parsed | tenant and key are known, and this worker owns the tenant |
//! | `body` | the tenant is known | the whole body arrived and is decoded; includes waiting for the client |
//! | `limit` | the model is known | requests, tokens and concurrency are reserved |
//! | `policy` | the limits are reserved | the rules and the external policies of the plan have judged the request |
//! | `admission_record` | the request is allowed | its admission record is written with the durability of `ledger.durability` |
//! | `connect` | the admission is written | there is a connection: pooled, or opened with its TLS handshake |
//! | `adapt` | there is a connection | the upstream request is built |
//! | `upstream_write` | the request is built | the request's last byte is handed to the kernel |
//! | `upstream_wait` | the request is sent | the first byte of the response arrived |
//! | `response_head` | the first byte arrived | the response's head is parsed |
//! | `relay` | head parsed; piece sent to the client | next piece arrived and decoded; includes waiting for the provider |
//! | `response_policy` | a piece is decoded | the rules have judged it |
//! | `completion_record` | the response is complete | its completion record is written |
//! | `client_write` | a piece may be sent | it is handed to the kernel; includes waiting for a slow client |
//! | `unaccounted` | | the rest: skipped time, and the time after the last lap |
//! | `total` | the whole head arrived | the response's last byte is handed to the kernel |
//!
//! A refused exchange has fewer stages: its rejection record counts as `completion_record`, its response as `client_write`.
//! Relaying is a loop: `relay`, `response_policy` and `client_write` each have many laps and one observation.
//!
//! # Intervals
//! Times that are not part of one exchange, each measured separately ([`Interval`]):
//!
//! | stage | from | to |
//! |---|---|---|
//! | `accept` | a connection is accepted | it can carry a request: TLS handshake and PROXY header are done |
//! | `ledger_wake` | records are written | the ledger thread sees them |
//! | `ledger_batch` | the ledger thread takes a batch | the batch is in the tree, and durable if required |
//! | `python_resume` | a thread has finished a Rust call of Python's event loop | the coroutine that waits for it resumes |
//! | `loop_lag` | a timer of Python's event loop is due | it runs |
//!
//! Compare `loop_lag` with `python_resume`: if both are long, the loop is busy with other work, and the crossing between
//! Rust and Python is not the cause.
#![forbid(unsafe_code)]

mod buckets;
mod exposition;
mod histogram;
mod profiler;
mod span;
mod stage;

pub use profiler::{Profiler, Timer};
pub use span::Span;
pub use stage::{Interval, Stage};
