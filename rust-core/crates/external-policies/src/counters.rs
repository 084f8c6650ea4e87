//! The counters of each external policy.

use std::time::Duration;

use proofgate_base::single_writer::{Counter, Histogram};

use super::verdict::{PolicyFailure, Verdict};

/// Names of the verdicts, in the order of [`Counters::verdicts`].
pub(super) const VERDICTS: [&str; 4] = ["allow", "deny", "flag", "replace"];

/// The counters of one policy; only the data-plane thread writes them.
#[derive(Default)]
pub struct Counters {
    pub(super) verdicts: [Counter; VERDICTS.len()],
    pub(super) failures: [Counter; PolicyFailure::ALL.len()],
    pub(super) wait_times: Histogram,
}

impl Counters {
    /// Counts the outcome of a request and how long the request waited.
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

    /// Counts a request that received no verdict, and returns the failure.
    pub fn record_failure(&self, failure: PolicyFailure) -> PolicyFailure {
        self.failures[failure as usize].add(1);
        failure
    }
}
