//! Metrics of the analysis of responses.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use proofgate_analysis::{Feature, ResponseFlag, WindowReport};

/// The reason why a response was not analysed or a finding was not recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnalysisLoss {
    /// There was no memory for the copy of the response.
    Memory,
    /// The analysis queue was full.
    Queue,
    /// The ledger had no capacity for a finding.
    Record,
    /// The analysis of the response panicked.
    Panic,
}

impl AnalysisLoss {
    const ALL: [Self; 4] = [Self::Memory, Self::Queue, Self::Record, Self::Panic];

    fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Queue => "queue",
            Self::Record => "record",
            Self::Panic => "panic",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LossLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FindingLabel {
    tenant: String,
    model: String,
    finding: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct MeasureLabel {
    tenant: String,
    model: String,
    measure: &'static str,
}

/// The metrics of the analysis. Series of a tenant and a model exist while the pair is tracked.
#[derive(Clone)]
pub struct AnalysisMetrics {
    responses: Counter,
    truncated: Counter,
    unreadable: Counter,
    windows: Counter,
    pairs: Gauge,
    evicted: Counter,
    /// Indexed by [`AnalysisLoss`].
    lost: [Counter; AnalysisLoss::ALL.len()],
    findings: Family<FindingLabel, Counter>,
    measures: Family<MeasureLabel, Gauge<f64, AtomicU64>>,
}

const MEASURES: [&str; 5] = ["entropy_bits", "length_tokens", "repetition", "refusals", "cuts"];

impl AnalysisMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let lost_family = Family::<LossLabel, Counter>::default();
        let lost = |lost: AnalysisLoss| {
            lost_family.get_or_create_owned(&LossLabel {
                reason: lost.as_str(),
            })
        };
        let metrics = AnalysisMetrics {
            responses: Counter::default(),
            truncated: Counter::default(),
            unreadable: Counter::default(),
            windows: Counter::default(),
            pairs: Gauge::default(),
            evicted: Counter::default(),
            lost: AnalysisLoss::ALL.map(lost),
            findings: Family::default(),
            measures: Family::default(),
        };
        let m = &metrics;
        registry.register(
            "analysis_answers",
            "Answers that were analysed",
            m.responses.clone(),
        );
        registry.register(
            "analysis_answers_partly_read",
            "Answers that were analysed up to analysis.maxAnswerBytes only",
            m.truncated.clone(),
        );
        registry.register(
            "analysis_answers_unreadable",
            "Answers that could not be read, or that were not streamed and exceeded analysis.maxAnswerBytes",
            m.unreadable.clone(),
        );
        registry.register(
            "analysis_lost",
            "Answers that were not analysed because memory was short, the queue was full or the analysis panicked, and \
             findings that the ledger had no space for",
            lost_family,
        );
        registry.register(
            "analysis_windows",
            "Complete windows of answers",
            m.windows.clone(),
        );
        registry.register(
            "analysis_pairs",
            "Pairs of tenant and model that are tracked",
            m.pairs.clone(),
        );
        registry.register(
            "analysis_pairs_forgotten",
            "Pairs of tenant and model that were dropped so that other pairs could be tracked",
            m.evicted.clone(),
        );
        registry.register(
            "analysis_findings",
            "Findings of the analysis of answers: a window with a feature that differs from the reference, or an answer that repeats itself",
            m.findings.clone(),
        );
        registry.register(
            "analysis_window_mean",
            "Mean of each measure over the newest window of answers",
            m.measures.clone(),
        );
        metrics
    }

    /// Counts an analysed response, and whether it was truncated. `pairs` is the number of tracked
    /// pairs.
    pub fn record_analysed(&self, pairs: usize, partly: bool) {
        self.responses.inc();
        self.truncated.inc_by(partly.into());
        self.pairs.set(i64::try_from(pairs).unwrap_or(i64::MAX));
    }

    pub(crate) fn record_unreadable(&self) {
        self.unreadable.inc();
    }

    /// Counts a lost response or finding.
    pub fn record_dropped(&self, lost: AnalysisLoss) {
        self.lost[lost as usize].inc();
    }

    pub fn record_finding(&self, tenant: &Arc<str>, model: &Arc<str>, finding: &'static str) {
        self.findings
            .get_or_create(&finding_label(tenant, model, finding))
            .inc();
    }

    pub fn record_window(&self, tenant: &Arc<str>, model: &Arc<str>, window: &WindowReport) {
        self.windows.inc();
        let means = [
            window.mean_entropy,
            window.mean_length,
            window.mean_repetition,
            Some(window.refusal_share),
            Some(window.length_limited_share),
        ];
        for (measure, mean) in MEASURES.into_iter().zip(means) {
            let label = self::measure_label(tenant, model, measure);
            match mean {
                Some(mean) => {
                    self.measures.get_or_create(&label).set(mean);
                }
                None => {
                    self.measures.remove(&label);
                }
            }
        }
    }

    /// Starts tracking a pair of tenant and model. Its counters of findings start at 0, so that the
    /// first finding is an increase.
    pub fn track(&self, tenant: &Arc<str>, model: &Arc<str>) {
        for finding in finding_names() {
            drop(
                self.findings
                    .get_or_create(&finding_label(tenant, model, finding)),
            );
        }
    }

    /// Stops tracking a pair.
    pub fn untrack(&self, tenant: &Arc<str>, model: &Arc<str>) {
        self.evicted.inc();
        for measure in MEASURES {
            self.measures.remove(&self::measure_label(tenant, model, measure));
        }
        for finding in finding_names() {
            self.findings.remove(&finding_label(tenant, model, finding));
        }
    }
}

/// Returns the names of all findings about windows and about responses.
fn finding_names() -> impl Iterator<Item = &'static str> {
    let features = Feature::ALL.map(Feature::as_str).into_iter();
    features.chain([ResponseFlag::Repetition, ResponseFlag::Loop].map(ResponseFlag::as_str))
}

fn finding_label(tenant: &Arc<str>, model: &Arc<str>, finding: &'static str) -> FindingLabel {
    FindingLabel {
        tenant: tenant.to_string(),
        model: model.to_string(),
        finding,
    }
}

fn measure_label(tenant: &Arc<str>, model: &Arc<str>, measure: &'static str) -> MeasureLabel {
    MeasureLabel {
        tenant: tenant.to_string(),
        model: model.to_string(),
        measure,
    }
}
