//! Checks the archived configurations that accepted records name, in turn and within a budget. They
//! are stored beside the logs, because the rules that led to a verdict are also evidence.

use crate::finding::{FindingCode, RaisedFindings};
use crate::log::Log;
use crate::reachability::is_unreachable;
use proofgate_evidence::ReadStorage;
use proofgate_evidence::configurations::{self, ArchiveState};
use proofgate_ledger::Hash;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::Path;

/// Limits of one poll: number of configurations without known problems, and number of bytes. The
/// last configuration may exceed the limit of bytes.
const POLL_LIMITS: (usize, u64) = (8, 16 << 20);
/// The same limits, until all configurations were checked once.
const FIRST_PASS_LIMITS: (usize, u64) = (1024, 1 << 30);

/// The state of the checks of archived configurations.
#[derive(Debug, Default)]
pub(crate) struct ConfigurationChecks {
    /// The configuration that was checked last in its turn.
    last_checked: Option<Hash>,
    /// The problems at the last check of each configuration.
    problems: BTreeMap<Hash, (FindingCode, String)>,
    /// Whether all configurations were checked once.
    pub(crate) pass_completed: bool,
}

impl ConfigurationChecks {
    /// Checks some configurations, first those with known problems, and raises each problem for the
    /// first log that names the configuration.
    pub(crate) fn check<'l>(
        &mut self,
        volume: &dyn ReadStorage,
        ledger: &Path,
        logs: impl Iterator<Item = &'l Log>,
        raised: &mut RaisedFindings,
    ) {
        let mut named: BTreeMap<Hash, &Log> = BTreeMap::new();
        for log in logs.filter(|log| log.row.head.is_some() && log.row.removed.is_none()) {
            for digest in &log.row.facts.configurations {
                named.entry(*digest).or_insert(log);
            }
        }
        let (most, bytes) = if self.pass_completed {
            POLL_LIMITS
        } else {
            FIRST_PASS_LIMITS
        };
        self.problems.retain(|digest, _| named.contains_key(digest));
        let again: Vec<Hash> = self.problems.keys().copied().collect();
        let from = self.last_checked.take().map_or(Bound::Unbounded, Bound::Excluded);
        let turn: Vec<Hash> = named
            .range((from, Bound::Unbounded))
            .map(|(digest, _)| *digest)
            .take(most)
            .collect();
        let mut read = 0;
        for digest in &again {
            if read < bytes {
                read += self.check_one(volume, ledger, digest);
            }
        }
        let mut done = 0;
        for digest in &turn {
            if read >= bytes && done > 0 {
                break;
            }
            if again.binary_search(digest).is_err() {
                read += self.check_one(volume, ledger, digest);
            }
            self.last_checked = Some(*digest);
            done += 1;
        }
        if turn.len() < most && done == turn.len() {
            (self.last_checked, self.pass_completed) = (None, true);
        }
        for (digest, (code, message)) in &self.problems {
            if let Some(log) = named.get(digest) {
                raised.raise(*code, &log.origin, &log.row.shard, message.clone());
            }
        }
    }

    /// Checks one configuration. Returns the number of bytes read.
    fn check_one(&mut self, volume: &dyn ReadStorage, ledger: &Path, digest: &Hash) -> u64 {
        let path = configurations::archive_path(ledger, digest);
        let (wrong, read) = match configurations::check_archived(volume, ledger, digest) {
            Ok((ArchiveState::Present, read)) => (None, read),
            Ok((ArchiveState::Missing, read)) => {
                let message = format!("a record names {}, which is missing", path.display());
                (Some((FindingCode::ConfigurationMissing, message)), read)
            }
            Ok((ArchiveState::Changed(why), read)) => {
                let message = format!("a record names {}, but {why}", path.display());
                (Some((FindingCode::ConfigurationChanged, message)), read)
            }
            // A known problem remains open.
            Err(error) if is_unreachable(&error) => return 0,
            Err(error) => (Some((FindingCode::Unreadable, error.to_string())), 0),
        };
        match wrong {
            Some(wrong) => self.problems.insert(*digest, wrong),
            None => self.problems.remove(digest),
        };
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::AcceptedHead;
    use proofgate_evidence::Ulid;
    use proofgate_wal::simulated::SimulatedDisk;

    #[test]
    fn those_that_are_gone_keep_none_behind_them_from_its_turn() {
        let mut log = Log::from_listing("0", Ulid::nil(), "/0/log".into(), "a");
        log.row.head = Some(AcceptedHead {
            size: 1,
            root: [0; 32],
            note: String::new(),
            at: 0,
        });
        log.row.facts.configurations = (0..50).map(|number| [number; 32]).collect();
        let (disk, ledger) = (SimulatedDisk::new(), Path::new("/"));
        let mut configurations = ConfigurationChecks {
            pass_completed: true,
            ..ConfigurationChecks::default()
        };
        for poll in 1..=7 {
            let mut raised = RaisedFindings::default();
            configurations.check(&disk, ledger, std::iter::once(&log), &mut raised);
            assert_eq!(
                configurations.problems.len(),
                (POLL_LIMITS.0 * poll).min(50),
                "poll {poll}"
            );
        }
        assert!(configurations.last_checked.is_none(), "the turns begin anew");
        log.row.facts.configurations.truncate(1);
        configurations.check(
            &disk,
            ledger,
            std::iter::once(&log),
            &mut RaisedFindings::default(),
        );
        assert_eq!(
            configurations.problems.len(),
            1,
            "of those that nobody names nothing is kept"
        );
    }
}
