//! Telemetry of exchanges beyond the ledger and the metrics: an access log, and traces.
//!
//! The data of an exchange is collected in one value ([`ObservedExchange`]) if the access log is
//! enabled, the exchange's trace is sampled, or the trace is propagated to the provider. Otherwise
//! telemetry costs one comparison per exchange. The value never holds a prompt, a response, a
//! header field, a key or a token. After the exchange has ended, the data-plane thread puts the
//! value into a bounded queue. Values that do not fit are counted and dropped.

mod access_log;
mod entry;
mod exchange;
mod queue;
mod trace_context;
mod trace_state;

pub use access_log::AccessLog;
pub use exchange::{FinishedExchange, ObservedExchange, ObservedRequest};
pub use queue::ExchangeQueue;
pub use queue::{TelemetrySender, telemetry_queues};
pub(crate) use trace_context::parse_trace_id;
