//! Reads the logs after the removable ones, as far as a plan needs them.

use super::{KnownLog, ShardPlan, SignatureState};
use crate::RetentionError;
use crate::exchange_ends::{ExchangeEnds, SignedLog};
use crate::logs::state_from_claims;
use proofgate_evidence::rules::LogTracker;
use std::collections::BTreeSet;

impl ShardPlan<'_> {
    /// Reads further logs until the ends of all exchanges that are open in removable logs are
    /// found, because a hold may apply to these ends.
    pub(super) fn read_later_logs(&mut self, until: usize) -> Result<(), RetentionError> {
        if self.request.retention.active_holds().next().is_none() {
            return Ok(());
        }
        let mut open = BTreeSet::new();
        for (at, (log, known)) in self.logs.iter().enumerate() {
            let read = known
                .survey()
                .filter(|read| read.damage.is_none() && self.is_candidate(at));
            open.extend(
                read.iter()
                    .flat_map(|read| read.open_exchange_tenants.keys().map(|seq| (*log, *seq))),
            );
        }
        for at in 0..self.logs.len() {
            if at > until {
                if open.is_empty() {
                    break;
                }
                self.survey_until(at)?;
            }
            let rules = match &self.logs[at].1 {
                // Any writer of the volume may have created this log.
                KnownLog::Read(read) if !read.is_signed() => None,
                known => known.tracker(),
            };
            for end in rules.into_iter().flat_map(LogTracker::foreign_ends) {
                open.remove(&(end.incarnation, end.admission));
            }
        }
        Ok(())
    }

    /// Returns the logs in which exchanges ended, as far as the logs were read.
    pub(super) fn exchange_ends(&self) -> ExchangeEnds {
        let told = self
            .logs
            .iter()
            .enumerate()
            .filter_map(|(at, (incarnation, known))| {
                let is_newest = self.newest_logs.last() == Some(&at);
                let is_doubtful = match known {
                    KnownLog::Unsigned | KnownLog::Refused(_, SignatureState::No) => return None,
                    KnownLog::Read(read) if !read.is_signed() => return None,
                    KnownLog::Read(read) => {
                        let standing = state_from_claims(read, &self.claims(at), is_newest, self.request.key);
                        !standing.unknown_content_reasons.is_empty()
                    }
                    KnownLog::Refused(_, SignatureState::Yes) => true,
                    KnownLog::Removed(_) | KnownLog::NotRead => false,
                };
                Some(SignedLog {
                    incarnation: *incarnation,
                    tracker: known.tracker(),
                    has_unknown_content: is_doubtful,
                })
            });
        ExchangeEnds::from_logs(told)
    }
}
