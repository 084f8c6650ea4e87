//! What is followed is bounded, and what is wrong with an answer is told.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_analysis::{AnswerOutcome, Flag, Measures, Monitor, Repetition, Settings};
use std::sync::Arc;

fn take(monitor: &mut Monitor, model: &str, measures: &Measures) -> AnswerOutcome {
    let (tenant, model): (Arc<str>, Arc<str>) = ("acme".into(), model.into());
    monitor.take(&tenant, &model, measures)
}

fn looping() -> Measures {
    Measures {
        repetition: Some(Repetition {
            share: 0.9,
            stretch: 0.8,
            is_loop: true,
        }),
        ..Measures::default()
    }
}

#[test]
fn the_pair_that_was_least_recently_seen_is_forgotten() {
    let settings = Settings {
        pairs: 2,
        window: 2,
        ..Settings::default()
    };
    let mut monitor = Monitor::new(settings);
    let answer = Measures::default();
    for model in ["one", "two", "one"] {
        assert_eq!(take(&mut monitor, model, &answer).forgotten, None);
    }
    let forgotten = take(&mut monitor, "three", &answer).forgotten.unwrap();
    assert_eq!((&*forgotten.1, monitor.pairs()), ("two", 2));
    // Whoever comes back begins anew.
    assert!(take(&mut monitor, "two", &answer).window.is_none());
    assert_eq!(take(&mut monitor, "two", &answer).window.unwrap().number, 1);
}

#[test]
fn an_answer_that_repeats_itself_is_flagged_and_ten_of_a_window_are_worth_records() {
    let mut monitor = Monitor::new(Settings {
        window: 20,
        ..Settings::default()
    });
    let worth = |monitor: &mut Monitor| {
        (0..20)
            .filter(|_| take(monitor, "one", &looping()).is_worth_a_record)
            .count()
    };
    assert_eq!([worth(&mut monitor), worth(&mut monitor)], [10, 10]);
    assert_eq!(
        take(&mut monitor, "one", &looping()).flags,
        [Flag::Repetition, Flag::Loop]
    );
    assert_eq!(take(&mut monitor, "one", &Measures::default()).flags, []);
}

#[test]
fn with_few_values_nothing_is_compared() {
    let mut monitor = Monitor::new(Settings {
        window: 29,
        ..Settings::default()
    });
    let mut windows = (0..58).filter_map(|_| take(&mut monitor, "one", &looping()).window);
    assert!(windows.all(|window| window.tests.is_empty() && window.answers == 29));
}
