//! Analysis of answers, after their clients were served.
//!
//! Where it is on, a copy of an answer is made as it is relayed. Once the completion was written and the last byte has been
//! sent, the data-plane thread puts the copy into a bounded queue and forgets it; what finds no room is counted and
//! dropped. A thread of its own reads it, and what is found comes back through another bounded queue, as numbers, to be
//! recorded. Where analysis is off, an answer pays for one comparison, and each piece of it for another.

mod analyst;
mod copy;
mod findings;
mod settings;
mod tap;

use std::sync::Arc;

use tokio::sync::mpsc::channel;

pub(crate) use analyst::Analyst;
pub(crate) use copy::AnswerCopy;
pub(crate) use findings::{Finding, Findings, record_findings};
pub(crate) use settings::AnalysisConfig;
pub(crate) use tap::{Of, Tap};

use crate::metrics::Metrics;
use copy::Room;

/// Answers that may wait to be analysed; their bytes are bounded besides.
const ANSWERS: usize = 1024;
/// Findings that may wait to be recorded.
const FINDINGS: usize = 256;

/// The data-plane thread's end, the thread that analyses, and what it finds.
pub(crate) fn analysis(config: &AnalysisConfig, metrics: &Metrics) -> (Tap, Analyst, Findings) {
    let (queue, answers) = channel(ANSWERS);
    let (found, findings) = channel(FINDINGS);
    let room = Arc::new(Room::new(config.copy_bytes));
    let tap = Tap::new(config, queue, room, metrics.analysis.clone());
    let analyst = Analyst::new(config.settings(), answers, found, metrics.analysis.clone());
    (tap, analyst, findings)
}
