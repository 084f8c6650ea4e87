//! What the client found, as one line of JSON.

/// Counts and latenesses of one window.
#[derive(Debug, Default)]
pub struct Report {
    /// Lateness of each token that came within the window, in microseconds.
    pub lateness_us: Vec<u32>,
    /// Streams that ended whole, at any time.
    pub completed: u64,
    /// Streams that failed, at any time.
    pub failed: u64,
    /// Why the first stream failed.
    pub first_failure: Option<String>,
    /// Length of the window in microseconds.
    pub window_us: u64,
}

impl Report {
    /// The report as JSON. Sorts the latenesses.
    #[must_use]
    pub fn to_json(&mut self) -> String {
        self.lateness_us.sort_unstable();
        let reason = plain(self.first_failure.as_deref().unwrap_or(""));
        format!(
            concat!(
                r#"{{"chunks":{},"completed":{},"failed":{},"window_us":{},"late_p50_us":{},"late_p99_us":{},"#,
                r#""late_max_us":{},"first_failure":"{}"}}"#
            ),
            self.lateness_us.len(),
            self.completed,
            self.failed,
            self.window_us,
            quantile(&self.lateness_us, 50),
            quantile(&self.lateness_us, 99),
            quantile(&self.lateness_us, 100),
            reason,
        )
    }
}

/// Nearest-rank percentile of sorted values; 0 when there are none.
pub(crate) fn quantile(sorted: &[u32], percent: usize) -> u32 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// A text as it can stand in a JSON string.
pub(crate) fn plain(text: &str) -> String {
    text.replace(['"', '\\'], "'").replace(char::is_control, " ")
}
