#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use std::io;
use std::path::Path;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use proofgate_config::PayloadMode;
use proofgate_external_policies::{ActivePolicyMetrics, ExternalPolicies};
use proofgate_ledger::ShredKey;
use proofgate_ledger::record::PayloadOutcome;
use proofgate_payloads::PayloadKey;
use proofgate_stages::Profiler;
use proofgate_wal::Ulid;
use proofgate_wal::simulated::{InjectedFault, SimulatedDisk};

use super::*;
use crate::metrics::Metrics;
use crate::recorder::LedgerUnavailable;

const BUDGET: usize = 1 << 20;
/// The budget that is used in a cluster.
const LARGE_BUDGET: usize = 16 << 20;
const MOST: usize = 100_000;
const PLACE: (Ulid, u64) = (Ulid::nil(), 7);

/// A queue whose thread writes to a simulated disk.
struct Bench {
    disk: SimulatedDisk,
    desk: PayloadQueue,
    thread: JoinHandle<()>,
    start: mpsc::Sender<()>,
    metrics: Metrics,
}

impl Bench {
    fn new() -> Self {
        let bench = Self::idle(BUDGET);
        bench.start.send(()).unwrap();
        bench
    }

    /// Creates a queue whose thread waits until it is started.
    fn idle(budget_bytes: usize) -> Self {
        let disk = SimulatedDisk::new();
        for dir in ["/0", "/0/00000000000000000000000000"] {
            disk.create_dir(Path::new(dir)).unwrap();
        }
        let profiler = Arc::new(Profiler::new(false));
        let metrics = Metrics::new(&profiler, &ActivePolicyMetrics::new(&ExternalPolicies::default()));
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        let (desk, thread) = create_payload_queue(
            PayloadsConfig {
                mode: PayloadMode::Stored,
                max_bytes: budget_bytes / 2,
                budget_bytes,
            },
            &storage,
            (Path::new("/0"), "ledger.example/demo", 0),
            Arc::default(),
            &metrics.payloads,
        );
        let (start, started) = mpsc::channel();
        let run = move || {
            started.recv().unwrap();
            thread.run();
        };
        Bench {
            disk,
            desk,
            thread: thread::spawn(run),
            start,
            metrics,
        }
    }

    fn begin(&self, request: &[u8]) -> Result<Box<ExchangeBodies>, LedgerUnavailable> {
        self.begin_of("acme", AdmittedBody::Complete(request))
    }

    fn begin_of(
        &self,
        tenant: &str,
        request: AdmittedBody<'_>,
    ) -> Result<Box<ExchangeBodies>, LedgerUnavailable> {
        let mut keeping = ExchangeBodies::start(&self.desk, &tenant.into(), MOST, request)?;
        self.admit(&mut keeping);
        Ok(keeping)
    }

    fn admit(&self, keeping: &mut ExchangeBodies) {
        let key = PayloadKey::new(&ShredKey::new([1; 32]), &[2; 32]);
        keeping.submit_request(&self.desk, PLACE, key);
    }

    /// Returns as many exchanges of a tenant as fit, with responses of maximum length.
    fn fill(&self, tenant: &str) -> Vec<ExchangeBodies> {
        let begun = std::iter::from_fn(|| {
            let mut keeping = self.begin_of(tenant, AdmittedBody::Complete(b"question")).ok()?;
            keeping.append_response(&[0; MOST]);
            Some(*keeping)
        });
        begun.take(100).collect()
    }

    /// Returns the outcomes of an exchange that completes.
    fn end(&self, mut keeping: ExchangeBodies) -> (PayloadOutcome, PayloadOutcome) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.unwrap().block_on(keeping.finish(&self.desk, PLACE));
        self.dropped(keeping)
    }

    /// Returns the outcomes of an exchange that is dropped.
    fn dropped(&self, keeping: ExchangeBodies) -> (PayloadOutcome, PayloadOutcome) {
        let stated = keeping.into_payloads(&self.desk);
        (stated.request, stated.response)
    }

    fn shows(&self, series: &str) -> String {
        self.desk.request_space_check();
        let text = self.metrics.encode();
        let line = text.lines().find_map(|line| line.strip_prefix(series));
        line.unwrap_or_else(|| panic!("no {series}")).trim().to_owned()
    }

    fn copy_denied(&self, tenant: &str, body: &[u8]) -> DeniedBody {
        DeniedBody::copy(
            Some(&self.desk),
            &tenant.into(),
            MOST,
            AdmittedBody::Complete(body),
        )
    }

    /// Returns the outcome of the body of a denied request.
    fn deny(&self, mut body: DeniedBody) -> PayloadOutcome {
        let key = PayloadKey::new(&ShredKey::new([1; 32]), &[2; 32]);
        body.submit(&self.desk, PLACE, key);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.unwrap().block_on(body.wait_until_stored(&self.desk))
    }

    /// Ends the thread, and returns the disk.
    fn close(self) -> SimulatedDisk {
        drop(self.desk);
        self.thread.join().unwrap();
        self.disk
    }
}

fn refused(begun: Result<Box<ExchangeBodies>, LedgerUnavailable>) -> LedgerUnavailable {
    begun.map(|_| ()).unwrap_err()
}

#[test]
fn an_exchange_that_ends_has_both_bodies_stored_and_its_memory_given_back() {
    let bench = Bench::new();
    let mut keeping = bench.begin(b"question").unwrap();
    keeping.append_response(b"an ");
    keeping.append_response(b"answer");
    assert_eq!(
        bench.end(*keeping),
        (PayloadOutcome::Stored, PayloadOutcome::Stored)
    );
    assert_eq!(bench.shows("proofgate_payload_queued_bytes"), "0");
    assert_eq!(bench.shows("proofgate_payload_stored_bytes_total"), "17");
    let disk = bench.close();
    let path = Path::new("/0/00000000000000000000000000/payloads");
    assert_eq!(disk.read(path).unwrap().len(), 2 * (32 + 16) + 17);
}

#[test]
fn what_is_longer_or_was_still_coming_is_not_stored_and_the_rest_is() {
    let bench = Bench::new();
    let mut keeping = bench.begin(&[0; MOST + 1]).unwrap();
    keeping.append_response(b"short");
    assert_eq!(
        bench.end(*keeping),
        (PayloadOutcome::TooLarge, PayloadOutcome::Stored)
    );
    let mut keeping = bench.begin_of("acme", AdmittedBody::Partial).unwrap();
    for _ in 0..3 {
        keeping.append_response(&[0; MOST / 2]);
    }
    assert_eq!(bench.shows("proofgate_payload_queued_bytes"), "0");
    assert_eq!(
        bench.end(*keeping),
        (PayloadOutcome::Streamed, PayloadOutcome::TooLarge)
    );
    bench.close();
}

#[test]
fn the_body_of_a_denied_request_is_stored_and_its_memory_given_back() {
    let bench = Bench::new();
    let body = bench.copy_denied("acme", b"question");
    assert_eq!(body.outcome(), PayloadOutcome::Queued);
    assert_eq!(bench.deny(body), PayloadOutcome::Stored);
    assert_eq!(bench.shows("proofgate_payload_queued_bytes"), "0");
    let disk = bench.close();
    let path = Path::new("/0/00000000000000000000000000/payloads");
    assert_eq!(disk.read(path).unwrap().len(), 32 + 16 + 8);
}

#[test]
fn denied_requests_take_no_more_memory_than_exchanges_and_none_of_other_tenants() {
    let bench = Bench::new();
    let copies: Vec<_> = (0..100).map(|_| bench.copy_denied("acme", &[0; MOST])).collect();
    let queued = copies
        .iter()
        .filter(|body| body.outcome() == PayloadOutcome::Queued);
    assert!((1..=BUDGET / 2 / MOST).contains(&queued.count()));
    let last = copies.last().unwrap();
    assert_eq!(last.outcome(), PayloadOutcome::NoRoom);
    assert_eq!(
        bench.copy_denied("globex", b"question").outcome(),
        PayloadOutcome::Queued
    );
    assert!(
        bench
            .begin_of("globex", AdmittedBody::Complete(b"question"))
            .is_ok()
    );
    assert_eq!(
        bench.copy_denied("globex", &[0; MOST + 1]).outcome(),
        PayloadOutcome::TooLarge
    );
    drop(copies);
    bench.close();
}

#[test]
fn an_exchange_that_nobody_takes_to_its_end_claims_no_answer() {
    let bench = Bench::new();
    let mut keeping = bench.begin(b"question").unwrap();
    keeping.append_response(b"half of an ans");
    while bench.shows("proofgate_payload_stored_bytes_total") != "8" {
        thread::yield_now();
    }
    assert_eq!(
        bench.dropped(*keeping),
        (PayloadOutcome::Stored, PayloadOutcome::Interrupted)
    );
    assert_eq!(
        bench.shows("proofgate_payloads_not_stored_total{reason=\"interrupted\"}"),
        "1"
    );
    bench.close();
}

#[test]
fn a_writer_that_fails_stores_nothing_more_and_nobody_is_admitted() {
    let bench = Bench::new();
    let keeping = bench.begin(b"question").unwrap();
    assert_eq!(
        bench.end(*keeping),
        (PayloadOutcome::Stored, PayloadOutcome::Stored)
    );
    bench
        .disk
        .inject_fault_now(InjectedFault::Error(io::ErrorKind::Other));
    let keeping = bench.begin(b"question").unwrap();
    assert_eq!(
        bench.end(*keeping),
        (PayloadOutcome::Failed, PayloadOutcome::Failed)
    );
    assert!(matches!(
        refused(bench.begin(b"question")),
        LedgerUnavailable::Payloads
    ));
    assert_eq!(bench.shows("proofgate_payload_writer_failed"), "1");
    assert_eq!(bench.shows("proofgate_payload_refusals_total"), "1");
    bench.close();
}

#[test]
fn a_full_volume_refuses_as_a_full_ledger_does_until_there_is_room_again() {
    let bench = Bench::new();
    let keeping = bench.begin(b"question").unwrap();
    bench.end(*keeping);
    bench.disk.set_free(Some(BUDGET as u64 - 1));
    let looks = || {
        bench.desk.request_space_check();
        bench.begin(b"question")
    };
    while !matches!(looks(), Err(LedgerUnavailable::Full)) {
        thread::yield_now();
    }
    bench.disk.set_free(None);
    let keeping = std::iter::repeat_with(looks).find_map(Result::ok);
    assert_eq!(
        bench.end(*keeping.unwrap()),
        (PayloadOutcome::Stored, PayloadOutcome::Stored)
    );
    bench.close();
}

#[test]
fn a_tenant_with_many_slow_answers_leaves_room_to_the_others() {
    let bench = Bench::new();
    let slow = bench.fill("acme");
    assert_eq!(slow.len(), BUDGET / 2 / MOST);
    assert!(matches!(
        refused(bench.begin(b"question")),
        LedgerUnavailable::Payloads
    ));
    let mut keeping = bench
        .begin_of("globex", AdmittedBody::Complete(&[0; MOST]))
        .unwrap();
    keeping.append_response(&[0; MOST]);
    assert_eq!(
        bench.end(*keeping),
        (PayloadOutcome::Stored, PayloadOutcome::Stored)
    );
    drop(slow);
    assert!(bench.begin(b"question").is_ok());
    bench.close();
}

#[test]
fn a_tenant_with_many_short_bodies_leaves_the_others_places_in_the_queue() {
    for body in [&b"question"[..], b""] {
        let bench = Bench::idle(LARGE_BUDGET);
        let queued = std::iter::from_fn(|| bench.begin(body).ok()).take(LARGE_BUDGET / MIN_GROWTH);
        assert!(queued.count() < LARGE_BUDGET / 2 / MIN_GROWTH);
        assert!(matches!(refused(bench.begin(body)), LedgerUnavailable::Payloads));
        let keeping = bench
            .begin_of("globex", AdmittedBody::Complete(b"question"))
            .unwrap();
        bench.start.send(()).unwrap();
        assert_eq!(
            bench.end(*keeping),
            (PayloadOutcome::Stored, PayloadOutcome::Stored)
        );
        bench.close();
    }
}

#[test]
fn all_that_may_be_admitted_have_a_place_in_the_queue_beside_looks_that_wait() {
    let bench = Bench::idle(LARGE_BUDGET);
    let acme = "acme".into();
    let begun = || ExchangeBodies::start(&bench.desk, &acme, MOST, AdmittedBody::Complete(b"")).ok();
    let mut open: Vec<_> = std::iter::from_fn(begun)
        .take(LARGE_BUDGET / MIN_GROWTH)
        .collect();
    assert!(open.len() > 1024);
    for keeping in &mut open {
        bench.desk.request_space_check();
        bench.admit(keeping);
    }
    bench.start.send(()).unwrap();
    for keeping in open {
        assert_eq!(
            bench.end(*keeping),
            (PayloadOutcome::Stored, PayloadOutcome::Stored)
        );
    }
    bench.close();
}

#[test]
fn without_memory_for_another_answer_nobody_is_admitted_and_who_was_is_told() {
    let bench = Bench::new();
    let tenants = ["acme", "globex", "initech"];
    let mut open: Vec<_> = tenants.iter().flat_map(|tenant| bench.fill(tenant)).collect();
    assert!(matches!(
        refused(bench.begin(b"question")),
        LedgerUnavailable::Payloads
    ));
    assert_eq!(open.len(), BUDGET / MOST);
    let last = open.pop().unwrap();
    assert_eq!(bench.end(last), (PayloadOutcome::Stored, PayloadOutcome::Stored));
    let mut one = bench
        .begin_of("globex", AdmittedBody::Complete(b"question"))
        .unwrap();
    let mut other = bench.begin_of("globex", AdmittedBody::Partial).unwrap();
    one.append_response(&[0; MOST]);
    other.append_response(&[0; MOST]);
    assert_eq!(bench.dropped(*other).1, PayloadOutcome::NoRoom);
    drop(open);
    assert_eq!(bench.end(*one), (PayloadOutcome::Stored, PayloadOutcome::Stored));
    bench.close();
}
