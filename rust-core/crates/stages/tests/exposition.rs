//! The series that Prometheus reads.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use proofgate_stages::{Interval, Profiler, Span, Stage};
use support::exposition;

/// One exchange with every stage, and every interval.
fn traffic(profiler: &Profiler) {
    let mut span = Span::start(profiler, Instant::now());
    for stage in Stage::ALL {
        span.lap_now(stage);
    }
    span.finish_now(profiler);
    for interval in Interval::ALL {
        profiler.record(interval, Duration::from_micros(3));
        profiler.timer().stop(profiler, interval);
    }
}

#[test]
fn no_series_exist_before_measuring_was_on_whatever_the_traffic() {
    let profiler = Arc::new(Profiler::new(false));
    traffic(&profiler);
    assert_eq!(exposition(&profiler), "# EOF\n");
}

#[test]
fn the_series_stay_when_measuring_is_turned_off_again() {
    let profiler = Arc::new(Profiler::new(false));
    profiler.enter();
    traffic(&profiler);
    assert!(profiler.exit());
    let before = exposition(&profiler);
    assert!(
        before.contains("proofgate_stage_seconds_count{stage=\"total\"} 1\n"),
        "{before}"
    );
    traffic(&profiler);
    assert_eq!(exposition(&profiler), before);
}

#[test]
fn every_stage_has_a_name_of_its_own_and_a_histogram() {
    let profiler = Arc::new(Profiler::new(true));
    let names: Vec<&str> = Stage::ALL
        .map(Stage::as_str)
        .into_iter()
        .chain(Interval::ALL.map(Interval::as_str))
        .chain(["unaccounted", "total"])
        .collect();
    assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
    let text = exposition(&profiler);
    for name in &names {
        let series = format!("stage=\"{name}\"}}");
        assert_eq!(text.matches(&series).count(), 2 + 48, "{name}");
        assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'),
            "{name}"
        );
    }
    assert_eq!(text.matches("_count{").count(), names.len());
}

#[test]
fn a_histogram_is_cumulative_and_in_seconds() {
    let profiler = Arc::new(Profiler::new(true));
    for microseconds in [1, 2, 3, 11, 12, 13, 20_000_000] {
        profiler.record(Interval::LoopLag, Duration::from_micros(microseconds));
    }
    let text = exposition(&profiler);
    let start = "# HELP proofgate_stage_seconds Time of each stage of an exchange, and of work that crosses threads.\n\
                 # TYPE proofgate_stage_seconds histogram\n\
                 # UNIT proofgate_stage_seconds seconds\n";
    assert!(text.starts_with(start), "{text}");
    for line in [
        "_sum{stage=\"loop_lag\"} 20.000042",
        "_count{stage=\"loop_lag\"} 7",
        "_bucket{le=\"0.000001\",stage=\"loop_lag\"} 1",
        "_bucket{le=\"0.000002\",stage=\"loop_lag\"} 2",
        "_bucket{le=\"0.000008\",stage=\"loop_lag\"} 3",
        "_bucket{le=\"0.000012\",stage=\"loop_lag\"} 5",
        "_bucket{le=\"12.582912\",stage=\"loop_lag\"} 6",
        "_bucket{le=\"+Inf\",stage=\"loop_lag\"} 7",
    ] {
        let line = format!("proofgate_stage_seconds{line}\n");
        assert!(text.contains(&line), "{line}\n{text}");
    }
}
