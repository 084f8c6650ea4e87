//! What a plan asks of the logs behind those that may go.

use super::{Known, ShardPlan, Signed};
use crate::KeepingError;
use crate::ends::{Ends, SignedLog};
use crate::logs::standing_of;
use proofgate_evidence::rules::Rules;
use std::collections::BTreeSet;

impl ShardPlan<'_> {
    /// Reads on until all exchanges have ended that logs which may go left open: a hold may touch their ends.
    pub(super) fn read_on(&mut self, until: usize) -> Result<(), KeepingError> {
        if self.plan.retention.active().next().is_none() {
            return Ok(());
        }
        let mut open = BTreeSet::new();
        for (at, (log, known)) in self.logs.iter().enumerate() {
            let read = known
                .survey()
                .filter(|read| read.damage.is_none() && self.is_candidate(at));
            open.extend(
                read.iter()
                    .flat_map(|read| read.open.keys().map(|seq| (*log, *seq))),
            );
        }
        for at in 0..self.logs.len() {
            if at > until {
                if open.is_empty() {
                    break;
                }
                self.survey(at)?;
            }
            let rules = match &self.logs[at].1 {
                // Whoever writes the volume may have put it there.
                Known::Read(read) if !read.is_signed() => None,
                known => known.rules(),
            };
            for end in rules.into_iter().flat_map(Rules::foreign_ends) {
                open.remove(&(end.incarnation, end.admission));
            }
        }
        Ok(())
    }

    /// Where exchanges ended, as far as the logs were read.
    pub(super) fn ends(&self) -> Ends {
        let told = self
            .logs
            .iter()
            .enumerate()
            .filter_map(|(at, (incarnation, known))| {
                let is_newest = self.newest.last() == Some(&at);
                let is_doubtful = match known {
                    Known::Unsigned | Known::Refused(_, Signed::No) => return None,
                    Known::Read(read) if !read.is_signed() => return None,
                    Known::Read(read) => {
                        let standing = standing_of(read, &self.claims(at), is_newest, self.plan.key);
                        !standing.doubts.is_empty()
                    }
                    Known::Refused(_, Signed::Yes) => true,
                    Known::Removed(_) | Known::Unread => false,
                };
                Some(SignedLog {
                    incarnation: *incarnation,
                    rules: known.rules(),
                    is_doubtful,
                })
            });
        Ends::of(told)
    }
}
