//! Findings become records.

use std::rc::Rc;

use super::findings::FindingReceiver;
use crate::metrics::{AnalysisLoss, AnalysisMetrics};
use crate::recorder::Recorder;

/// Records findings as they come; runs as a task of its own. What the ledger has no room for is counted and dropped.
pub async fn record_findings(
    recorder: Rc<Recorder>,
    metrics: AnalysisMetrics,
    mut findings: FindingReceiver,
) {
    while let Some(finding) = findings.recv().await {
        if recorder.append_finding(&finding).is_err() {
            metrics.record_dropped(AnalysisLoss::Record);
        }
    }
    // Without its thread nothing more is found, and traffic goes on.
    std::future::pending().await
}
