//! Metrics of the policies in service.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::counters::VERDICTS;
use super::external_policy::{ExternalPolicies, ExternalPolicy};
use super::verdict::PolicyFailure;

/// The policies of the active configuration, as a metrics collector.
#[derive(Clone)]
pub struct ActivePolicyMetrics(Arc<Mutex<ExternalPolicies>>);

impl ActivePolicyMetrics {
    pub fn new(hooks: &ExternalPolicies) -> Self {
        ActivePolicyMetrics(Arc::new(Mutex::new(hooks.clone())))
    }

    /// Switches to the policies of another configuration.
    pub fn set(&self, hooks: &ExternalPolicies) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = hooks.clone();
    }

    fn list(&self) -> ExternalPolicies {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for ActivePolicyMetrics {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("HooksInService").finish_non_exhaustive()
    }
}

fn label(hook: &ExternalPolicy) -> (&'static str, &str) {
    ("policy", &hook.config.name)
}

/// Encodes the counters; the registry adds its prefix to their names.
impl Collector for ActivePolicyMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let hooks = self.list();
        if hooks.is_empty() {
            return Ok(());
        }
        let mut verdicts = encoder.encode_descriptor(
            "python_policy_verdicts",
            "Verdicts of external policies",
            None,
            MetricType::Counter,
        )?;
        for hook in &*hooks {
            for (name, count) in VERDICTS.iter().zip(&hook.counters.verdicts) {
                count.encode(verdicts.encode_family(&[label(hook), ("verdict", name)])?)?;
            }
        }
        let mut failures = encoder.encode_descriptor(
            "python_policy_failures",
            "Requests without a verdict of an external policy, by reason",
            None,
            MetricType::Counter,
        )?;
        for hook in &*hooks {
            for failure in PolicyFailure::ALL {
                let count = &hook.counters.failures[failure as usize];
                count.encode(failures.encode_family(&[label(hook), ("reason", failure.as_str())])?)?;
            }
        }
        let mut waits = encoder.encode_descriptor(
            "python_policy_wait",
            "How long requests waited for an external policy, unless its breaker was open",
            Some(&Unit::Seconds),
            MetricType::Histogram,
        )?;
        for hook in &*hooks {
            hook.counters
                .wait_times
                .encode(waits.encode_family(&[label(hook)])?)?;
        }
        let mut queue = encoder.encode_descriptor(
            "python_policy_queue",
            "Requests in the queue of an external policy",
            None,
            MetricType::Gauge,
        )?;
        for hook in &*hooks {
            let waiting = i64::try_from(hook.queued_requests()).unwrap_or(i64::MAX);
            ConstGauge::new(waiting).encode(queue.encode_family(&[label(hook)])?)?;
        }
        let mut breaker = encoder.encode_descriptor(
            "python_policy_breaker_open",
            "Whether the breaker of an external policy is open because the policy failed too often",
            None,
            MetricType::Gauge,
        )?;
        for hook in &*hooks {
            let open = ConstGauge::new(i64::from(hook.breaker.is_open()));
            open.encode(breaker.encode_family(&[label(hook)])?)?;
        }
        Ok(())
    }
}
