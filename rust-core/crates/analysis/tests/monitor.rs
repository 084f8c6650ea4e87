//! The number of monitored pairs is limited, and defects of a response are reported.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_analysis::{
    AnalysisSettings, DriftMonitor, MonitorOutcome, Repetition, ResponseFlag, ResponseMeasurements,
};
use std::sync::Arc;

fn take(monitor: &mut DriftMonitor, model: &str, measures: &ResponseMeasurements) -> MonitorOutcome {
    let (tenant, model): (Arc<str>, Arc<str>) = ("acme".into(), model.into());
    monitor.observe(&tenant, &model, measures)
}

fn looping() -> ResponseMeasurements {
    ResponseMeasurements {
        repetition: Some(Repetition {
            repeated_share: 0.9,
            longest_run_share: 0.8,
            is_loop: true,
        }),
        ..ResponseMeasurements::default()
    }
}

#[test]
fn the_pair_that_was_least_recently_seen_is_forgotten() {
    let settings = AnalysisSettings {
        max_pairs: 2,
        window_size: 2,
        ..AnalysisSettings::default()
    };
    let mut monitor = DriftMonitor::new(settings);
    let answer = ResponseMeasurements::default();
    for model in ["one", "two", "one"] {
        assert_eq!(take(&mut monitor, model, &answer).evicted, None);
    }
    let forgotten = take(&mut monitor, "three", &answer).evicted.unwrap();
    assert_eq!((&*forgotten.1, monitor.pair_count()), ("two", 2));
    // An evicted pair starts again.
    assert!(take(&mut monitor, "two", &answer).window.is_none());
    assert_eq!(take(&mut monitor, "two", &answer).window.unwrap().number, 1);
}

#[test]
fn an_answer_that_repeats_itself_is_flagged_and_ten_of_a_window_are_worth_records() {
    let mut monitor = DriftMonitor::new(AnalysisSettings {
        window_size: 20,
        ..AnalysisSettings::default()
    });
    let worth = |monitor: &mut DriftMonitor| {
        (0..20)
            .filter(|_| take(monitor, "one", &looping()).should_record)
            .count()
    };
    assert_eq!([worth(&mut monitor), worth(&mut monitor)], [10, 10]);
    assert_eq!(
        take(&mut monitor, "one", &looping()).flags,
        [ResponseFlag::Repetition, ResponseFlag::Loop]
    );
    assert_eq!(
        take(&mut monitor, "one", &ResponseMeasurements::default()).flags,
        []
    );
}

#[test]
fn with_few_values_nothing_is_compared() {
    let mut monitor = DriftMonitor::new(AnalysisSettings {
        window_size: 29,
        ..AnalysisSettings::default()
    });
    let mut windows = (0..58).filter_map(|_| take(&mut monitor, "one", &looping()).window);
    assert!(windows.all(|window| window.tests.is_empty() && window.response_count == 29));
}
