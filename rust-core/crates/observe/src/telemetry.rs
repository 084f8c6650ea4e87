//! What is told of exchanges beyond the ledger and the metrics: an access log, and traces.
//!
//! What is known of an exchange is gathered in one value ([`ObservedExchange`]), and only where somebody has asked for it: the
//! access log is on, its trace is sampled, or its provider is told its trace. Otherwise an exchange pays for one
//! comparison. The value never holds a prompt, an answer, a header field, a key or a token. Once the exchange has ended,
//! the data-plane thread puts it into a bounded queue; what finds no room there is counted and dropped.

mod access_log;
mod entry;
mod exchange;
mod outlet;
mod trace_context;
mod trace_state;

pub use access_log::AccessLog;
pub use exchange::{FinishedExchange, ObservedExchange, ObservedRequest};
pub use outlet::ExchangeQueue;
pub use outlet::{TelemetryOutlet, telemetry_queues};
pub(crate) use trace_context::parse_trace_id;
