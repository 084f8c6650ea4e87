//! Analysis of responses, after they were sent to their clients.
//!
//! If analysis is enabled, each response is copied while it is relayed. After the completion record
//! was written and the last byte was sent, the data-plane thread puts the copy into a bounded queue
//! and continues. Copies that do not fit are counted and dropped. A separate thread analyses the
//! copies. It returns its findings as numbers through another bounded queue, and they are recorded.
//! If analysis is disabled, it costs one comparison per response and one per piece of a response.

mod analyst;
mod copy;
mod findings;
mod record;
mod tap;

use proofgate_config::AnalysisConfig;
use tokio::sync::mpsc::channel;

pub use analyst::Analyser;
pub use copy::ResponseCopy;
pub use findings::{Finding, FindingReceiver};
pub use record::record_findings;
pub use tap::{AnalysisContext, Tap};

use crate::metrics::Metrics;

/// Maximum number of responses that wait for analysis. Their total size has a separate limit.
const MAX_QUEUED_RESPONSES: usize = 1024;
/// Maximum number of findings that wait to be recorded.
const MAX_QUEUED_FINDINGS: usize = 256;

/// Creates the data-plane thread's side, the analysis thread, and the receiver of the thread's
/// findings.
pub fn create_analysis(config: &AnalysisConfig, metrics: &Metrics) -> (Tap, Analyser, FindingReceiver) {
    let (queue, answers) = channel(MAX_QUEUED_RESPONSES);
    let (found, findings) = channel(MAX_QUEUED_FINDINGS);
    let tap = Tap::new(config, queue, metrics.analysis.clone());
    let analyst = Analyser::new(config.settings(), answers, found, metrics.analysis.clone());
    (tap, analyst, findings)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use proofgate_analysis::ResponseDialect;
    use proofgate_base::request_id::RequestId;
    use proofgate_external_policies::{ActivePolicyMetrics, ExternalPolicies};
    use proofgate_stages::Profiler;

    fn config() -> AnalysisConfig {
        AnalysisConfig {
            sample: 1.0,
            tenants: Vec::new(),
            models: Vec::new(),
            window: 30,
            false_alarms: 0.001,
            top_logprobs: 5,
            vocabulary: None,
            repetition: 0.5,
            max_answer_bytes: 1 << 16,
            max_copy_bytes: 1 << 30,
            max_pairs: 8,
        }
    }

    fn metrics() -> Metrics {
        let profiler = Arc::new(Profiler::new(false));
        Metrics::new(&profiler, &ActivePolicyMetrics::new(&ExternalPolicies::default()))
    }

    fn count(metrics: &Metrics, series: &str) -> u64 {
        let text = metrics.encode();
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        line.unwrap().trim().parse().unwrap()
    }

    const ANSWER: &[u8] = br#"{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"stop"}]}"#;

    /// Returns a copy of a response of at least this many bytes.
    fn copy(tap: &Tap, tenant: &str, bytes: usize) -> ResponseCopy {
        let mut copy = tap.new_copy(&tenant.into(), ResponseDialect::Chat);
        copy.append(ANSWER);
        copy.append(&b" ".repeat(bytes.saturating_sub(ANSWER.len())));
        copy
    }

    fn end(tap: &Tap, tenant: &str, copy: ResponseCopy) {
        let of = AnalysisContext {
            id: RequestId::new(0, &mut rand::rng()),
            admission_position: 1,
            tenant: tenant.into(),
            model: "large".into(),
        };
        tap.submit(copy, false, Some(1), of);
    }

    fn hand_over(tap: &Tap, tenant: &str, answers: usize) {
        for _ in 0..answers {
            end(tap, tenant, copy(tap, tenant, 0));
        }
    }

    #[test]
    fn a_full_queue_loses_answers_and_waits_for_nobody() {
        let metrics = metrics();
        let (tap, analyst, mut findings) = create_analysis(&config(), &metrics);
        for tenant in ["acme", "globex"] {
            hand_over(&tap, tenant, MAX_QUEUED_RESPONSES / 2);
        }
        hand_over(&tap, "initech", 5);
        assert_eq!(
            count(&metrics, "proofgate_analysis_lost_total{reason=\"queue\"}"),
            5
        );
        drop(tap);
        analyst.run();
        assert_eq!(
            count(&metrics, "proofgate_analysis_answers_total"),
            MAX_QUEUED_RESPONSES as u64
        );
        let windows = std::iter::from_fn(|| findings.try_recv().ok()).count();
        assert_eq!(windows, 2 * (MAX_QUEUED_RESPONSES / 2 / 30));
    }

    #[test]
    fn a_tenant_with_many_short_answers_leaves_places_in_the_queue_to_the_others() {
        let metrics = metrics();
        let (tap, analyst, _findings) = create_analysis(&config(), &metrics);
        hand_over(&tap, "acme", MAX_QUEUED_RESPONSES);
        hand_over(&tap, "globex", 7);
        assert_eq!(
            count(&metrics, "proofgate_analysis_lost_total{reason=\"queue\"}"),
            MAX_QUEUED_RESPONSES as u64 / 2
        );
        drop(tap);
        analyst.run();
        assert_eq!(
            count(&metrics, "proofgate_analysis_answers_total"),
            MAX_QUEUED_RESPONSES as u64 / 2 + 7
        );
    }

    #[test]
    fn a_tenant_with_many_slow_streams_leaves_memory_to_the_answers_of_others() {
        let metrics = metrics();
        let config = AnalysisConfig {
            max_copy_bytes: 1 << 20,
            ..config()
        };
        let (tap, analyst, _findings) = create_analysis(&config, &metrics);
        let most = config.max_answer_bytes;
        let slow: Vec<_> = (0..16).map(|_| copy(&tap, "acme", most)).collect();
        let lost = slow.iter().filter(|copy| copy.is_dropped()).count();
        assert_eq!(lost, 8, "beyond half of the memory");
        for _ in 0..8 {
            end(&tap, "globex", copy(&tap, "globex", most));
        }
        assert_eq!(
            count(&metrics, "proofgate_analysis_lost_total{reason=\"memory\"}"),
            0
        );
        drop(slow);
        assert!(!copy(&tap, "acme", most).is_dropped());
        drop(tap);
        analyst.run();
        assert_eq!(count(&metrics, "proofgate_analysis_answers_total"), 8);
    }

    #[test]
    fn a_tenant_may_always_have_one_answer_of_the_largest_copied() {
        let config = AnalysisConfig {
            max_copy_bytes: 1 << 16,
            ..config()
        };
        let (tap, _analyst, _findings) = create_analysis(&config, &metrics());
        assert!(!copy(&tap, "acme", config.max_answer_bytes).is_dropped());
    }

    #[test]
    fn findings_that_nobody_takes_are_counted_and_the_analysis_goes_on() {
        let metrics = metrics();
        let (tap, analyst, findings) = create_analysis(&config(), &metrics);
        drop(findings);
        hand_over(&tap, "acme", 60);
        drop(tap);
        analyst.run();
        assert_eq!(
            count(&metrics, "proofgate_analysis_lost_total{reason=\"record\"}"),
            2
        );
        assert_eq!(count(&metrics, "proofgate_analysis_answers_total"), 60);
    }

    #[test]
    fn a_panic_over_an_answer_is_counted_and_the_others_are_analysed() {
        let metrics = metrics();
        let (tap, analyst, _findings) = create_analysis(&config(), &metrics);
        hand_over(&tap, "acme", 10);
        drop(tap);
        let mut seen = 0;
        analyst.run_with(|analyst, answered| {
            seen += 1;
            if seen == 3 {
                // Panics without a message or backtrace.
                std::panic::resume_unwind(Box::new(()));
            }
            analyst.analyse(answered);
        });
        assert_eq!(
            count(&metrics, "proofgate_analysis_lost_total{reason=\"panic\"}"),
            1
        );
        assert_eq!(count(&metrics, "proofgate_analysis_answers_total"), 9);
    }

    #[test]
    fn numbers_out_of_their_bounds_are_refused() {
        assert!(config().check().is_ok());
        let wrong: [fn(&mut AnalysisConfig); 7] = [
            |config| config.sample = f64::NAN,
            |config| config.window = 29,
            |config| config.false_alarms = 0.0,
            |config| config.top_logprobs = 9,
            |config| config.repetition = 1.5,
            |config| config.max_pairs = 0,
            |config| (config.window, config.max_pairs) = (10_000, 41),
        ];
        for change in wrong {
            let mut config = config();
            change(&mut config);
            assert!(config.check().is_err());
        }
    }
}
