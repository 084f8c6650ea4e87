//! How the time of an exchange is divided into stages.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use proofgate_stages::{Profiler, Span, Stage};
use proptest::prelude::*;
use support::{count, observed, sum};

fn microseconds(number: u64) -> Duration {
    Duration::from_micros(number)
}

#[test]
fn each_lap_goes_to_its_stage_and_the_rest_is_unaccounted() {
    let profiler = Arc::new(Profiler::new(true));
    let start = Instant::now();
    let mut span = Span::start(&profiler, start);
    span.lap(Stage::Parse, start + microseconds(5));
    span.lap(Stage::Auth, start + microseconds(7));
    span.skip(start + microseconds(10));
    span.lap(Stage::Relay, start + microseconds(30));
    span.finish(&profiler, start + microseconds(34));
    for (stage, spent) in [
        ("parse", 5_000),
        ("auth", 2_000),
        ("relay", 20_000),
        ("unaccounted", 7_000),
        ("total", 34_000),
    ] {
        assert_eq!(
            (count(&profiler, stage), sum(&profiler, stage)),
            (1, spent),
            "{stage}"
        );
    }
    assert_eq!(count(&profiler, "policy"), 0);
}

#[test]
fn many_laps_of_a_stage_are_one_observation() {
    let profiler = Arc::new(Profiler::new(true));
    let start = Instant::now();
    let mut span = Span::start(&profiler, start);
    for piece in 0..100 {
        span.lap(Stage::Relay, start + microseconds(10 * piece + 7));
        span.lap(Stage::ClientWrite, start + microseconds(10 * piece + 10));
    }
    assert_eq!(span.nanoseconds(Stage::Relay), Some(700_000));
    assert_eq!(span.nanoseconds(Stage::Policy), None);
    span.finish(&profiler, start + microseconds(1000));
    assert_eq!((count(&profiler, "relay"), sum(&profiler, "relay")), (1, 700_000));
    assert_eq!(
        (count(&profiler, "client_write"), sum(&profiler, "client_write")),
        (1, 300_000)
    );
    assert_eq!(
        (count(&profiler, "unaccounted"), sum(&profiler, "unaccounted")),
        (1, 0)
    );
}

#[test]
fn a_stage_that_takes_no_time_is_observed() {
    let profiler = Arc::new(Profiler::new(true));
    let start = Instant::now();
    let mut span = Span::start(&profiler, start);
    span.lap(Stage::Connect, start);
    span.finish(&profiler, start);
    assert_eq!((count(&profiler, "connect"), sum(&profiler, "connect")), (1, 0));
    assert_eq!((count(&profiler, "total"), sum(&profiler, "total")), (1, 0));
}

#[test]
fn whether_an_exchange_is_measured_is_decided_at_its_start() {
    let profiler = Arc::new(Profiler::new(false));
    let start = Instant::now();
    let mut before = Span::start(&profiler, start);
    assert!(!before.is_measured());
    profiler.set_enabled(true);
    let mut during = Span::start(&profiler, start);
    before.lap(Stage::Parse, start + microseconds(1));
    during.lap(Stage::Parse, start + microseconds(1));
    profiler.set_enabled(false);
    during.lap(Stage::Auth, start + microseconds(2));
    before.finish(&profiler, start + microseconds(3));
    during.finish(&profiler, start + microseconds(3));
    for stage in ["parse", "auth", "total", "unaccounted"] {
        assert_eq!(count(&profiler, stage), 1, "{stage}");
    }
}

#[test]
fn an_exchange_that_is_not_finished_leaves_no_trace() {
    let profiler = Arc::new(Profiler::new(true));
    let mut span = Span::start_now(&profiler);
    span.lap_now(Stage::Parse);
    drop(span);
    assert_eq!(count(&profiler, "parse"), 0);
    assert_eq!(count(&profiler, "total"), 0);
}

#[test]
fn the_clock_can_be_left_to_the_span() {
    let profiler = Arc::new(Profiler::new(true));
    let before = Instant::now();
    let mut span = Span::start_now(&profiler);
    for stage in Stage::ALL {
        span.lap_now(stage);
    }
    span.finish_now(&profiler);
    let passed = u64::try_from(before.elapsed().as_nanos()).unwrap();
    assert!(sum(&profiler, "total") <= passed);
    for stage in Stage::ALL {
        assert_eq!(count(&profiler, stage.as_str()), 1, "{}", stage.as_str());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The times may go back, as those of different callers can.
    #[test]
    fn the_stages_and_the_unaccounted_rest_add_up_to_the_total(
        laps in prop::collection::vec((prop::option::of(0..Stage::ALL.len()), 0..5_000_000_000_u64), 0..40),
        end in 0..5_000_000_000_u64,
    ) {
        let profiler = Arc::new(Profiler::new(true));
        let start = Instant::now();
        let mut span = Span::start(&profiler, start);
        let mut last = end;
        for (stage, at) in laps {
            last = last.max(at);
            let now = start + Duration::from_nanos(at);
            match stage {
                Some(index) => span.lap(Stage::ALL[index], now),
                None => span.skip(now),
            }
        }
        span.finish(&profiler, start + Duration::from_nanos(end));
        let observed = observed(&profiler);
        let accounted: u64 = Stage::ALL.iter().map(|stage| observed[stage.as_str()].nanoseconds).sum();
        prop_assert_eq!(observed["total"].nanoseconds, last);
        prop_assert_eq!(accounted + observed["unaccounted"].nanoseconds, last);
    }
}
