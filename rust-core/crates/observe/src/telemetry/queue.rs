//! The queues between the data-plane thread and the exporters.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::entry::Exchange;
use crate::metrics::{Metrics, Signal};

/// Maximum number of exchanges in each queue: 4 MiB at up to 1 KiB each.
const QUEUE_CAPACITY: usize = 4096;

/// The exporters that need an exchange.
#[derive(Debug, Clone, Copy)]
pub(super) struct TelemetryTargets {
    pub(super) access_log: bool,
    pub(super) traces: bool,
}

/// The data-plane thread's side of the queues.
pub struct TelemetrySender {
    metrics: Metrics,
    access_log: Sender<Arc<Exchange>>,
    traces: Sender<Arc<Exchange>>,
}

/// The receiver of the access log's queue.
pub(super) type AccessLogReceiver = Receiver<Arc<Exchange>>;

/// The exporter's side of the traces' queue: exchanges whose traces are sampled.
pub struct ExchangeQueue(Mutex<Receiver<Arc<Exchange>>>);

/// Creates a pair of queues.
pub fn telemetry_queues(metrics: Metrics) -> (TelemetrySender, AccessLogReceiver, ExchangeQueue) {
    telemetry_queues_with_capacity(QUEUE_CAPACITY, metrics)
}

fn telemetry_queues_with_capacity(
    room: usize,
    metrics: Metrics,
) -> (TelemetrySender, AccessLogReceiver, ExchangeQueue) {
    let (access_log, lines) = channel(room);
    let (traces, exchanges) = channel(room);
    let outlet = TelemetrySender {
        metrics,
        access_log,
        traces,
    };
    (outlet, lines, ExchangeQueue(Mutex::new(exchanges)))
}

impl TelemetrySender {
    pub(super) fn send(&self, exchange: Exchange, wanted: TelemetryTargets) {
        let exchange = Arc::new(exchange);
        if wanted.access_log && self.access_log.try_send(Arc::clone(&exchange)).is_err() {
            self.metrics.record_lost_telemetry(Signal::AccessLog, 1);
        }
        if wanted.traces && self.traces.try_send(exchange).is_err() {
            self.metrics.record_lost_telemetry(Signal::Traces, 1);
        }
    }
}

impl ExchangeQueue {
    /// Takes up to `most` exchanges from the queue, each as a JSON object, without waiting. `None`
    /// if the queue has ended.
    pub fn take_batch(&self, most: usize) -> Option<Vec<String>> {
        // Only threads of the exporter contend for this lock, because senders take no lock.
        let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut taken = Vec::new();
        while taken.len() < most {
            match queue.try_recv() {
                // Strings and numbers always serialise.
                Ok(exchange) => taken.push(serde_json::to_string(&*exchange).unwrap_or_default()),
                Err(TryRecvError::Disconnected) if taken.is_empty() => return None,
                Err(_) => break,
            }
        }
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::super::AccessLog;
    use super::*;
    use proofgate_external_policies::{ActivePolicyMetrics, ExternalPolicies};
    use proofgate_stages::Profiler;
    use std::io;

    const BOTH: TelemetryTargets = TelemetryTargets {
        access_log: true,
        traces: true,
    };

    fn metrics() -> Metrics {
        let profiler = Arc::new(Profiler::new(false));
        Metrics::new(&profiler, &ActivePolicyMetrics::new(&ExternalPolicies::default()))
    }

    fn lost(metrics: &Metrics, signal: &str) -> String {
        let series = format!("proofgate_telemetry_dropped_total{{signal=\"{signal}\"}} ");
        let text = metrics.encode();
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(&series));
        lines.next().unwrap().to_owned()
    }

    #[test]
    fn what_finds_no_room_is_counted_and_the_rest_is_there() {
        let metrics = metrics();
        let (outlet, _lines, exchanges) = telemetry_queues_with_capacity(2, metrics.clone());
        for _ in 0..5 {
            outlet.send(Exchange::default(), BOTH);
        }
        assert_eq!(
            [lost(&metrics, "access_log"), lost(&metrics, "traces")],
            ["3", "3"]
        );
        assert_eq!(exchanges.take_batch(1).unwrap().len(), 1);
        assert_eq!(exchanges.take_batch(9).unwrap().len(), 1);
        assert_eq!(exchanges.take_batch(9).unwrap().len(), 0);
        drop(outlet);
        assert_eq!(exchanges.take_batch(9), None);
    }

    #[test]
    fn every_exchange_is_a_line_of_the_access_log_and_all_are_written_before_it_ends() {
        let (metrics, mut out) = (metrics(), Vec::new());
        let (outlet, lines, _exchanges) = telemetry_queues_with_capacity(600, metrics.clone());
        for _ in 0..600 {
            outlet.send(Exchange::default(), BOTH);
        }
        drop(outlet);
        let log = AccessLog {
            lines,
            metrics: metrics.clone(),
            out: &mut out,
        };
        log.run();
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.lines()
                .all(|line| line.starts_with("{\"ts\":0,") && line.ends_with('}'))
        );
        assert_eq!(
            (text.lines().count(), lost(&metrics, "access_log")),
            (600, "0".into())
        );
    }

    struct Gone;

    impl io::Write for Gone {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::BrokenPipe.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_nobody_reads_are_counted() {
        let metrics = metrics();
        let (outlet, lines, _exchanges) = telemetry_queues_with_capacity(3, metrics.clone());
        for _ in 0..3 {
            outlet.send(Exchange::default(), BOTH);
        }
        drop(outlet);
        let log = AccessLog {
            lines,
            metrics: metrics.clone(),
            out: Gone,
        };
        log.run();
        assert_eq!(lost(&metrics, "access_log"), "3");
    }
}
