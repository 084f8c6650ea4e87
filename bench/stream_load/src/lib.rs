//! Both ends of a benchmark of streams.
//!
//! [`upstream`] answers chat completions: streams at a fixed pace per token, other requests after a fixed time.
//! [`client`] keeps many streams open through a gateway and measures how late each token comes. Each token carries the
//! moment at which the pace called for it ([`mark`]), so the lateness of a token counts from when it was *due*, not from
//! when a busy upstream got round to sending it; both ends read the same monotonic clock.
//! [`agents`] sends the growing requests of agents' sessions.

pub mod agents;
pub mod arguments;
pub mod body;
pub mod client;
pub mod events;
pub mod latency;
pub mod mark;
pub mod report;
pub mod request;
pub mod session;
pub mod upstream;
