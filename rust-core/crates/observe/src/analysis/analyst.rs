//! The thread that analyses responses.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use proofgate_analysis::{AnalysisSettings, CapturedResponse, DriftMonitor, WindowReport};
use proofgate_base::priority::set_lowest_priority;
use proofgate_ledger::record::AnalysedResponse;
use tokio::sync::mpsc::{Receiver, Sender};

use super::findings::{Finding, thousandths};
use super::tap::CompletedResponse;
use crate::metrics::{AnalysisLoss, AnalysisMetrics};

/// Time for which responses are collected before analysis. The thread is woken at most once in this
/// time.
const BATCH_INTERVAL: Duration = Duration::from_millis(50);

/// The analysis thread, which stores only numbers of the responses that it receives.
pub struct Analyser {
    responses: Receiver<CompletedResponse>,
    findings: Sender<Finding>,
    monitor: DriftMonitor,
    metrics: AnalysisMetrics,
}

impl Analyser {
    pub(super) fn new(
        settings: AnalysisSettings,
        answers: Receiver<CompletedResponse>,
        findings: Sender<Finding>,
        metrics: AnalysisMetrics,
    ) -> Self {
        Analyser {
            responses: answers,
            findings,
            monitor: DriftMonitor::new(settings),
            metrics,
        }
    }

    /// Analyses responses until the data-plane thread has ended.
    pub fn run(self) {
        self.run_with(Self::analyse);
    }

    /// Runs with `analyse` for each response. A response whose analysis panics is counted as lost,
    /// and the analysis of other responses continues.
    pub(super) fn run_with(mut self, mut analyse: impl FnMut(&mut Self, &CompletedResponse)) {
        set_lowest_priority();
        while let Some(first) = self.responses.blocking_recv() {
            thread::park_timeout(BATCH_INTERVAL);
            let mut next = Some(first);
            while let Some(answered) = next {
                // The monitor holds sums. An interrupted sum is an inaccurate number, which does no
                // further harm.
                if catch_unwind(AssertUnwindSafe(|| analyse(&mut self, &answered))).is_err() {
                    self.metrics.record_dropped(AnalysisLoss::Panic);
                }
                drop(answered);
                next = self.responses.try_recv().ok();
            }
        }
    }

    pub(super) fn analyse(&mut self, answered: &CompletedResponse) {
        let answer = CapturedResponse {
            dialect: answered.copy.dialect,
            is_event_stream: answered.is_event_stream,
            body: answered.copy.bytes(),
            is_truncated: answered.copy.is_truncated(),
        };
        let Ok(mut measures) = answer.measure(self.monitor.settings()) else {
            self.metrics.record_unreadable();
            return;
        };
        measures.tokens = answered.tokens;
        let (tenant, model) = (&answered.tenant, &answered.model);
        let seen = self.monitor.observe(tenant, model, &measures);
        self.metrics
            .record_analysed(self.monitor.pair_count(), measures.is_truncated);
        if let Some((tenant, model)) = seen.evicted {
            self.metrics.untrack(&tenant, &model);
        }
        if seen.is_first {
            self.metrics.track(tenant, model);
        }
        for flag in &seen.flags {
            self.metrics.record_finding(tenant, model, flag.as_str());
        }
        if let Some(repetition) = measures.repetition.filter(|_| seen.should_record) {
            let numbers = AnalysedResponse {
                entropy_millibits: measures.entropy.map(|entropy| thousandths(entropy.min)),
                repetition_permille: thousandths(repetition.repeated_share),
                stretch_permille: thousandths(repetition.longest_run_share),
                partly: measures.is_truncated,
            };
            let names = seen.flags.iter().map(|flag| flag.as_str()).collect();
            self.send_finding(answered, names, Some(numbers), None);
        }
        if let Some(window) = seen.window {
            self.metrics.record_window(tenant, model, &window);
            let names: Vec<_> = window.findings().map(|test| test.feature.as_str()).collect();
            for name in &names {
                self.metrics.record_finding(tenant, model, name);
            }
            self.send_finding(answered, names, None, Some(window));
        }
    }

    fn send_finding(
        &self,
        answered: &CompletedResponse,
        findings: Vec<&'static str>,
        answer: Option<AnalysedResponse>,
        window: Option<WindowReport>,
    ) {
        let finding = Finding {
            id: answered.id,
            admission_position: answered.admission_position,
            tenant: answered.tenant.clone(),
            model: answered.model.clone(),
            findings,
            response: answer,
            window,
        };
        if self.findings.try_send(finding).is_err() {
            self.metrics.record_dropped(AnalysisLoss::Record);
        }
    }
}
