//! Tests of an auditor's findings about the configurations that accepted records name.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

mod audit;

use audit::{SECOND, auditor_key, settings, two_lives};
use proofgate_auditor::{Auditor, FindingCode, Settings};
use proofgate_evidence::configurations::archive_path;
use proofgate_ledger_testkit::{CONFIGURATION, CONFIGURATION_DIGEST, replace_archived_config};
use proofgate_state::memory::MemoryStorage;
use proofgate_wal::Storage;
use proofgate_wal::simulated::SimulatedDisk;
use std::path::Path;
use std::sync::Arc;

/// An auditor of a volume that holds configurations.
struct Beside {
    auditor: Auditor,
    now: u64,
}

impl Beside {
    fn of(disk: &SimulatedDisk, state: &MemoryStorage, begin: bool) -> Self {
        let settings = Settings {
            check_configurations: true,
            ..settings()
        };
        let (disk, state) = (Arc::new(disk.clone()), Arc::new(state.clone()));
        let make = if begin { Auditor::create } else { Auditor::open };
        Self {
            auditor: make(disk, state, auditor_key(), settings).unwrap(),
            now: 1_000 * SECOND,
        }
    }

    /// Polls until a second check has passed. Returns the findings.
    fn found(&mut self) -> Vec<(FindingCode, String)> {
        for _ in 0..12 {
            self.now += SECOND;
            self.auditor.poll(self.now, u64::MAX, u64::MAX).unwrap();
        }
        let found = self.auditor.findings().iter();
        found.map(|found| (found.code, found.origin.clone())).collect()
    }
}

#[test]
fn a_configuration_that_is_gone_is_found_once_with_the_first_log_that_names_it_and_passes() {
    let (disk, first, _) = two_lives();
    let mut audit = Beside::of(&disk, &MemoryStorage::default(), true);
    let [(code, origin)] = &audit.found()[..] else {
        panic!("{:#?}", audit.auditor.findings());
    };
    assert_eq!(*code, FindingCode::ConfigurationMissing);
    assert!(
        origin.ends_with(&first.durability_model.incarnation.unwrap().to_string()),
        "{origin}"
    );
    replace_archived_config(&disk, CONFIGURATION);
    assert_eq!(audit.found(), [], "it came back");
    let path = archive_path(Path::new("/"), &CONFIGURATION_DIGEST);
    disk.remove(&path).unwrap();
    assert_eq!(audit.found().len(), 1, "also when it was there before");
}

#[test]
fn one_that_was_changed_is_evidence_whatever_is_there_later_and_after_a_restart() {
    let (disk, _, _) = two_lives();
    replace_archived_config(&disk, CONFIGURATION);
    let state = MemoryStorage::default();
    let mut audit = Beside::of(&disk, &state, true);
    assert_eq!(audit.found(), []);
    let mut audit = Beside::of(&disk, &state, false);
    replace_archived_config(&disk, b"{ }");
    let codes =
        |found: Vec<(FindingCode, String)>| found.into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    assert_eq!(codes(audit.found()), [FindingCode::ConfigurationChanged]);
    replace_archived_config(&disk, CONFIGURATION);
    assert_eq!(codes(audit.found()), [FindingCode::ConfigurationChanged]);
}

#[test]
fn where_workers_serve_their_shards_none_is_looked_for() {
    let (disk, _, _) = two_lives();
    let settings = settings();
    let mut auditor = Auditor::create(
        Arc::new(disk),
        Arc::new(MemoryStorage::default()),
        auditor_key(),
        settings,
    )
    .unwrap();
    for second in 1..20 {
        auditor.poll(second * SECOND, u64::MAX, 0).unwrap();
    }
    assert_eq!(auditor.findings(), []);
}
