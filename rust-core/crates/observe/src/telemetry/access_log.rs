//! The access log: one JSON line on standard output for each exchange that has ended.

use std::io::Write;
use std::thread;
use std::time::Duration;

use super::queue::AccessLogReceiver;
use crate::metrics::{Metrics, Signal};
use proofgate_base::priority::lower_priority;

/// Time for which lines are collected before they are written. The thread is woken at most once in
/// this time.
const BATCH_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of lines that are written together.
const MAX_BATCH_LINES: usize = 256;

/// The thread that writes the access log. If the reader of standard output is slow or absent, only
/// lines are lost.
pub struct AccessLog<W> {
    pub lines: AccessLogReceiver,
    pub metrics: Metrics,
    pub out: W,
}

impl<W: Write> AccessLog<W> {
    /// Writes lines until the data-plane thread has ended.
    pub fn run(mut self) {
        lower_priority();
        let mut text = Vec::new();
        while let Some(first) = self.lines.blocking_recv() {
            thread::park_timeout(BATCH_INTERVAL);
            let mut next = Some(first);
            while let Some(first) = next {
                text.clear();
                let mut count = 0;
                let others = std::iter::from_fn(|| self.lines.try_recv().ok());
                for exchange in std::iter::once(first).chain(others).take(MAX_BATCH_LINES) {
                    // Strings and numbers always serialise, and writing to memory cannot fail.
                    let _ = serde_json::to_writer(&mut text, &*exchange);
                    text.push(b'\n');
                    count += 1;
                }
                let written = self.out.write_all(&text).and_then(|()| self.out.flush());
                if written.is_err() {
                    self.metrics.record_lost_telemetry(Signal::AccessLog, count);
                }
                next = self.lines.try_recv().ok();
            }
        }
    }
}
