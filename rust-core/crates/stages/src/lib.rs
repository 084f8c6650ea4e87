//! The time that an exchange spends in each stage of the hot path, as histograms.
//!
//! Profiling is off unless a switch is on or a scope is open ([`Profiler`]). While it is off, an exchange costs one relaxed
//! load, no clock is read, and no series exist. While it is on, the exchange carries a [`Span`]: each [`Span::lap`] adds the
//! time since the previous lap to a [`Stage`], and [`Span::finish`] records every stage that occurred once, with the sum of
//! its laps. In either case nothing is locked, looked up or allocated: a measured span reuses the memory of one that has
//! ended, once its thread has had as many at a time. An exchange that started while profiling was off is not measured, and
//! one that started while it was on is measured completely.
//!
//! # Stages
//! One exchange, in the order of its first laps. Stages are disjoint, and those of one exchange with `unaccounted` add
//! up to `total` to the nanosecond.
//!
//! | stage | from | to |
//! |---|---|---|
//! | `parse` | the whole head is here; the whole body | the head is parsed and its framing checked; model and messages are known |
//! | `auth` | the head is parsed | tenant and key are known, and this worker owns the tenant |
//! | `body` | the tenant is known | the whole body is here, decoded; waiting for the client included |
//! | `limit` | the model is known | requests, tokens and concurrency are reserved |
//! | `policy` | reserved | the rules, and the policies that its plan names, have judged the request |
//! | `admission_record` | the request may go | its admission record is written, as `ledger.durability` says |
//! | `connect` | the admission is written | a connection is there: pooled, or opened with its TLS handshake |
//! | `adapt` | the connection is there | the upstream request is built |
//! | `upstream_write` | the request is built | the request's last byte is handed to the kernel |
//! | `upstream_wait` | the request is sent | the first byte of the response is here |
//! | `response_head` | the first byte | the response's head is parsed |
//! | `relay` | the head is parsed; a piece was sent to the client | the next piece is here and decoded; waiting for the provider included |
//! | `response_policy` | a piece is decoded | the rules have judged it |
//! | `completion_record` | the response is whole | its completion record is written |
//! | `client_write` | a piece may go | it is handed to the kernel; waiting for a slow client included |
//! | `unaccounted` | | the rest: what was skipped, and what followed the last lap |
//! | `total` | the whole head is here | the answer's last byte is handed to the kernel |
//!
//! A refused exchange has fewer stages: its rejection record counts as `completion_record`, its answer as
//! `client_write`. Relaying goes around: `relay`, `response_policy` and `client_write` each have many laps and one
//! observation.
//!
//! # Intervals
//! What is not a part of one exchange, each measured by itself ([`Interval`]):
//!
//! | stage | from | to |
//! |---|---|---|
//! | `accept` | a connection is accepted | it can carry a request: TLS handshake and PROXY header are done |
//! | `ledger_wake` | records are written | the ledger thread sees them |
//! | `ledger_batch` | the ledger thread takes a batch | the batch is in the tree, and durable where that is due |
//! | `python_resume` | a thread has done what Python's event loop asked of Rust | the coroutine that asked goes on |
//! | `loop_lag` | a timer of Python's event loop is due | it runs |
//!
//! `loop_lag` stands beside `python_resume` on purpose: when both are long, the loop is busy with work of its own and
//! the crossing is not to blame.
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
