//! What is counted of each policy outside of the data plane.

use std::time::Duration;

use proofgate_base::single_writer::{Counter, Histogram};

use super::verdict::{PolicyFailure, Verdict};

/// Names of the verdicts, in the order of their counts.
pub(super) const VERDICTS: [&str; 4] = ["allow", "deny", "flag", "replace"];

/// The counts of one policy; the data-plane thread alone adds to them.
#[derive(Default)]
pub struct Counters {
    pub(super) verdicts: [Counter; VERDICTS.len()],
    pub(super) failures: [Counter; PolicyFailure::ALL.len()],
    pub(super) wait_times: Histogram,
}

impl Counters {
    /// Counts what became of a request, after so long a wait.
    pub fn record_outcome(&self, outcome: &Result<Verdict, PolicyFailure>, waited: Duration) {
        self.wait_times
            .observe(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
        let index = match outcome {
            Ok(Verdict::Allow) => 0,
            Ok(Verdict::Deny { .. }) => 1,
            Ok(Verdict::Flag { .. }) => 2,
            Ok(Verdict::Replace { .. }) => 3,
            Ok(Verdict::Failed(failure)) | Err(failure) => {
                self.record_failure(*failure);
                return;
            }
        };
        self.verdicts[index].add(1);
    }

    /// Counts a request that got no verdict.
    pub fn record_failure(&self, failure: PolicyFailure) -> PolicyFailure {
        self.failures[failure as usize].add(1);
        failure
    }
}
