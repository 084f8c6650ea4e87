//! How long requests took, as one line of JSON.

use crate::report::{plain, quantile};

/// Counts and latencies of one window.
#[derive(Debug, Default)]
pub struct Latencies {
    /// From when each request of the window was begun to the end of its answer, in microseconds.
    latency_us: Vec<u32>,
    /// Bytes of their bodies.
    bytes: u64,
    failed: u64,
    first_failure: Option<String>,
    /// Length of the window in microseconds.
    pub window_us: u64,
}

impl Latencies {
    /// Adds an answered request of `bytes` bytes.
    pub fn add(&mut self, latency_us: u64, bytes: u64) {
        self.latency_us
            .push(u32::try_from(latency_us).unwrap_or(u32::MAX));
        self.bytes += bytes;
    }

    /// Adds a request without an answer.
    pub fn fail(&mut self, reason: String) {
        self.failed += 1;
        self.first_failure.get_or_insert(reason);
    }

    /// The report as JSON. Sorts the latencies.
    #[must_use]
    pub fn to_json(&mut self) -> String {
        self.latency_us.sort_unstable();
        format!(
            concat!(
                r#"{{"requests":{},"bytes":{},"failed":{},"window_us":{},"p50_us":{},"p99_us":{},"#,
                r#""first_failure":"{}"}}"#
            ),
            self.latency_us.len(),
            self.bytes,
            self.failed,
            self.window_us,
            quantile(&self.latency_us, 50),
            quantile(&self.latency_us, 99),
            plain(self.first_failure.as_deref().unwrap_or("")),
        )
    }
}
