//! Which exchanges of a ledger are returned, with which records, and which are left out and counted.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

use proofgate_ledger_testkit::{DurabilityModel, start, vkey, worker_with_records};
use std::path::Path;

use proofgate_ledger::record::{self, Record};
use proofgate_replay::{Exchange, ExchangeFilter, Exchanges};
use proofgate_wal::simulated::SimulatedDisk;

fn opened(disk: &SimulatedDisk, wanted: ExchangeFilter) -> Exchanges<'_> {
    Exchanges::open(disk, Path::new("/"), &vkey(), None, wanted).unwrap()
}

fn all(exchanges: &mut Exchanges<'_>) -> Vec<Exchange> {
    std::iter::from_fn(|| exchanges.next_exchange()).collect()
}

fn id_of(exchange: &Exchange) -> String {
    match record::parse(&exchange.first_record).unwrap() {
        Record::Admission(admission) => admission.id.into_owned(),
        other => other.kind().to_owned(),
    }
}

#[test]
fn each_exchange_comes_once_with_its_end_and_the_name_of_its_configuration() {
    let (disk, _) = worker_with_records();
    let mut exchanges = opened(&disk, ExchangeFilter::default());
    let found = all(&mut exchanges);
    let ids: Vec<_> = found.iter().map(id_of).collect();
    let expected: Vec<_> = (0..40).map(|number| format!("req-{number}")).collect();
    assert_eq!(ids, expected);
    for exchange in &found {
        let Record::Completion(completion) = record::parse(exchange.completion.as_ref().unwrap()).unwrap()
        else {
            unreachable!("{exchange:?}");
        };
        assert_eq!(
            (completion.admission, &*completion.id),
            (exchange.seq, &*id_of(exchange))
        );
        assert_eq!(exchange.version, "0");
        assert!(exchange.origin.starts_with("ledger.example/demo/3/"));
    }
    assert_eq!((exchanges.problems.len(), exchanges.unverified), (0, 0));
}

#[test]
fn what_no_checkpoint_covers_is_left_out_and_counted() {
    let (disk, mut worker) = worker_with_records();
    let admission = worker.admit("late", 1).unwrap();
    worker.complete("late", admission).unwrap();
    worker.flush().unwrap();
    let mut exchanges = opened(&disk, ExchangeFilter::default());
    assert_eq!(all(&mut exchanges).len(), 40);
    assert_eq!((exchanges.problems.len(), exchanges.unverified), (0, 1));
    let wanted = ExchangeFilter {
        id: Some("req-7".to_owned()),
        ..ExchangeFilter::default()
    };
    let mut exchanges = opened(&disk, wanted);
    assert_eq!((all(&mut exchanges).len(), exchanges.unverified), (1, 0));
}

#[test]
fn what_a_killed_worker_left_has_no_end_and_is_handed_out_all_the_same() {
    let (disk, mut first) = worker_with_records();
    first.admit("orphan", 1).unwrap();
    first.flush().unwrap();
    disk.restart();
    let mut second = start(&disk, &mut DurabilityModel::default()).unwrap();
    second.run_exchange("after");
    let found = all(&mut opened(&disk, ExchangeFilter::default()));
    let orphans: Vec<_> = found
        .iter()
        .filter(|exchange| id_of(exchange) == "orphan")
        .collect();
    assert_eq!(orphans.len(), 1);
    assert_eq!(orphans[0].completion, None);
    assert_eq!(found.len(), 42);
}

#[test]
fn an_end_that_leads_out_of_its_shard_or_to_another_exchange_ends_nothing() {
    let (disk, mut worker) = worker_with_records();
    let admission = worker.admit("open", 1).unwrap();
    worker.complete("another", admission).unwrap();
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    let found = all(&mut opened(&disk, ExchangeFilter::default()));
    let open: Vec<_> = found
        .iter()
        .filter(|exchange| id_of(exchange) == "open")
        .collect();
    assert_eq!((open.len(), &open[0].completion), (1, &None));
}
