//! Records findings in the ledger.

use std::rc::Rc;

use super::findings::FindingReceiver;
use crate::metrics::{AnalysisLoss, AnalysisMetrics};
use crate::recorder::Recorder;

/// Records findings as they arrive, as a separate task. Findings for which the ledger has no
/// capacity are counted and dropped.
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
    // The analysis thread has ended, so there are no more findings. Traffic continues.
    std::future::pending().await
}
