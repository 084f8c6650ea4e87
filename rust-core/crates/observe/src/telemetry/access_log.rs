//! The access log: a line of JSON for each exchange that has ended, on standard output.

use std::io::Write;
use std::thread;
use std::time::Duration;

use super::outlet::AccessLogReceiver;
use crate::metrics::{Metrics, Signal};
use proofgate_base::priority::lower_priority;

/// How long lines gather before they are written: so often at most is its thread woken.
const BATCH_INTERVAL: Duration = Duration::from_millis(50);
/// Lines that are written together, at most.
const MAX_BATCH_LINES: usize = 256;

/// The thread that writes it. A reader of standard output that is slow, or gone, costs lines and nothing else.
pub struct AccessLog<W> {
    pub lines: AccessLogReceiver,
    pub metrics: Metrics,
    pub out: W,
}

impl<W: Write> AccessLog<W> {
    /// Writes what comes until the data-plane thread has ended.
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
                    // Strings and numbers always serialise, and memory takes what is written to it.
                    let _ = serde_json::to_writer(&mut text, &*exchange);
                    text.push(b'\n');
                    count += 1;
                }
                let written = self.out.write_all(&text).and_then(|()| self.out.flush());
                if written.is_err() {
                    self.metrics.telemetry_lost(Signal::AccessLog, count);
                }
                next = self.lines.try_recv().ok();
            }
        }
    }
}
