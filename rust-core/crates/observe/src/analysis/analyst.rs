//! The thread that analyses answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use proofgate_analysis::{Answer, Monitor, Settings, WindowReport};
use proofgate_base::priority::yield_to_all;
use proofgate_ledger::record::AnalysedAnswer;
use tokio::sync::mpsc::{Receiver, Sender};

use super::findings::{Finding, thousandths};
use super::tap::Answered;
use crate::metrics::{AnalysisLoss, AnalysisMetrics};

/// How long answers gather before they are analysed: so often at most is the thread woken.
const GATHERING: Duration = Duration::from_millis(50);

/// Reads the answers that it is handed and keeps nothing of them but numbers.
pub struct Analyst {
    answers: Receiver<Answered>,
    findings: Sender<Finding>,
    monitor: Monitor,
    metrics: AnalysisMetrics,
}

impl Analyst {
    pub(super) fn new(
        settings: Settings,
        answers: Receiver<Answered>,
        findings: Sender<Finding>,
        metrics: AnalysisMetrics,
    ) -> Self {
        Analyst {
            answers,
            findings,
            monitor: Monitor::new(settings),
            metrics,
        }
    }

    /// Analyses what comes until the data-plane thread has ended.
    pub fn run(self) {
        self.run_with(Self::analyse);
    }

    /// The same with `analyse` for each answer. One over which it panics is counted as lost; the others go on.
    pub(super) fn run_with(mut self, mut analyse: impl FnMut(&mut Self, &Answered)) {
        yield_to_all();
        while let Some(first) = self.answers.blocking_recv() {
            thread::park_timeout(GATHERING);
            let mut next = Some(first);
            while let Some(answered) = next {
                // What the monitor holds are sums: one that is cut short is a number that is off, and no more.
                if catch_unwind(AssertUnwindSafe(|| analyse(&mut self, &answered))).is_err() {
                    self.metrics.lost(AnalysisLoss::Panic);
                }
                drop(answered);
                next = self.answers.try_recv().ok();
            }
        }
    }

    pub(super) fn analyse(&mut self, answered: &Answered) {
        let answer = Answer {
            dialect: answered.copy.dialect,
            events: answered.events,
            body: answered.copy.bytes(),
            partly: answered.copy.partly(),
        };
        let Ok(mut measures) = answer.measure(self.monitor.settings()) else {
            self.metrics.unreadable();
            return;
        };
        measures.tokens = answered.tokens;
        let (tenant, model) = (&answered.tenant, &answered.model);
        let seen = self.monitor.take(tenant, model, &measures);
        self.metrics.analysed(self.monitor.pairs(), measures.partly_read);
        if let Some((tenant, model)) = seen.forgotten {
            self.metrics.forget(&tenant, &model);
        }
        if seen.is_first {
            self.metrics.follow(tenant, model);
        }
        for flag in &seen.flags {
            self.metrics.found(tenant, model, flag.as_str());
        }
        if let Some(repetition) = measures.repetition.filter(|_| seen.is_worth_a_record) {
            let numbers = AnalysedAnswer {
                entropy_millibits: measures.entropy.map(|entropy| thousandths(entropy.at_least)),
                repetition_permille: thousandths(repetition.share),
                stretch_permille: thousandths(repetition.stretch),
                partly: measures.partly_read,
            };
            let names = seen.flags.iter().map(|flag| flag.as_str()).collect();
            self.tell(answered, names, Some(numbers), None);
        }
        if let Some(window) = seen.window {
            self.metrics.window(tenant, model, &window);
            let names: Vec<_> = window.findings().map(|test| test.feature.as_str()).collect();
            for name in &names {
                self.metrics.found(tenant, model, name);
            }
            self.tell(answered, names, None, Some(window));
        }
    }

    fn tell(
        &self,
        answered: &Answered,
        findings: Vec<&'static str>,
        answer: Option<AnalysedAnswer>,
        window: Option<WindowReport>,
    ) {
        let finding = Finding {
            id: answered.id,
            admission: answered.admission,
            tenant: answered.tenant.clone(),
            model: answered.model.clone(),
            findings,
            answer,
            window,
        };
        if self.findings.try_send(finding).is_err() {
            self.metrics.lost(AnalysisLoss::Record);
        }
    }
}
