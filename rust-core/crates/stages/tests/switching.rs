//! When profiling is on, by switch or scope.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use proofgate_stages::{Interval, Profiler, Span, Stage};
use support::{count, sum};

#[test]
fn the_switch_says_what_it_was() {
    let profiler = Profiler::new(false);
    assert!(!profiler.set_enabled(true));
    assert!(profiler.set_enabled(true));
    assert!(profiler.is_enabled());
    assert!(profiler.set_enabled(false));
    assert!(!profiler.set_enabled(false));
    assert!(!profiler.is_enabled());
    assert!(Profiler::new(true).is_enabled());
}

#[test]
fn measuring_is_on_until_the_last_scope_is_closed() {
    let profiler = Profiler::new(false);
    profiler.enter();
    profiler.enter();
    assert_eq!(profiler.open_scopes(), 2);
    assert!(profiler.exit());
    assert!(profiler.is_enabled());
    assert!(profiler.exit());
    assert!(!profiler.is_enabled());
}

#[test]
fn the_switch_and_the_scopes_do_not_disturb_each_other() {
    let profiler = Profiler::new(false);
    profiler.enter();
    assert!(!profiler.set_enabled(true), "an open scope is not the switch");
    assert!(profiler.exit());
    assert!(profiler.is_enabled(), "closing a scope leaves the switch on");
    profiler.enter();
    assert!(profiler.set_enabled(false));
    assert!(profiler.is_enabled(), "the switch leaves the scope open");
    assert!(profiler.exit());
    assert!(!profiler.is_enabled());
}

#[test]
fn closing_a_scope_that_is_not_open_changes_nothing() {
    for enabled in [false, true] {
        let profiler = Profiler::new(enabled);
        assert!(!profiler.exit());
        assert_eq!((profiler.is_enabled(), profiler.open_scopes()), (enabled, 0));
    }
}

#[test]
fn scopes_of_many_threads_overlap_in_any_order() {
    const THREADS: usize = 8;
    let profiler = Arc::new(Profiler::new(false));
    let all_open = Arc::new(Barrier::new(THREADS + 1));
    let checked = Arc::new(Barrier::new(THREADS + 1));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (profiler, all_open, checked) = (profiler.clone(), all_open.clone(), checked.clone());
            thread::spawn(move || {
                for _ in 0..1000 {
                    profiler.enter();
                    assert!(profiler.is_enabled());
                    profiler.set_enabled(true);
                    assert!(profiler.exit());
                }
                profiler.enter();
                all_open.wait();
                checked.wait();
                assert!(profiler.exit());
            })
        })
        .collect();
    all_open.wait();
    assert_eq!(profiler.open_scopes(), THREADS);
    profiler.set_enabled(false);
    assert!(profiler.is_enabled());
    checked.wait();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!((profiler.is_enabled(), profiler.open_scopes()), (false, 0));
}

#[test]
fn what_many_threads_record_is_counted_exactly() {
    const THREADS: u64 = 4;
    const EXCHANGES: u64 = 1000;
    let profiler = Arc::new(Profiler::new(true));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let profiler = profiler.clone();
            thread::spawn(move || {
                let start = Instant::now();
                for number in 0..EXCHANGES {
                    let mut span = Span::start(&profiler, start);
                    span.lap(Stage::Policy, start + Duration::from_nanos(number));
                    span.finish(&profiler, start + Duration::from_nanos(number + 1));
                    profiler.record(Interval::LedgerWake, Duration::from_nanos(7));
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let recorded = THREADS * EXCHANGES;
    let policy = THREADS * (EXCHANGES * (EXCHANGES - 1) / 2);
    assert_eq!(
        (count(&profiler, "policy"), sum(&profiler, "policy")),
        (recorded, policy)
    );
    assert_eq!(
        (count(&profiler, "unaccounted"), sum(&profiler, "unaccounted")),
        (recorded, recorded)
    );
    assert_eq!(
        (count(&profiler, "total"), sum(&profiler, "total")),
        (recorded, policy + recorded)
    );
    assert_eq!(
        (count(&profiler, "ledger_wake"), sum(&profiler, "ledger_wake")),
        (recorded, 7 * recorded)
    );
}

#[test]
fn an_interval_is_recorded_if_measuring_was_on_when_it_began() {
    let profiler = Arc::new(Profiler::new(false));
    let before = profiler.timer();
    profiler.record(Interval::LoopLag, Duration::from_millis(3));
    profiler.set_enabled(true);
    let during = profiler.timer();
    profiler.set_enabled(false);
    before.stop(&profiler, Interval::LedgerBatch);
    during.stop(&profiler, Interval::LedgerBatch);
    assert_eq!(count(&profiler, "ledger_batch"), 1);
    assert_eq!(count(&profiler, "loop_lag"), 0);
}
