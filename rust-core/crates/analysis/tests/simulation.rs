//! The stated rate of false alarms is kept, and changes are found: measured with seeded random responses.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_analysis::{AnalysisSettings, DriftMonitor, Feature, ResponseMeasurements, WindowReport};
use std::sync::Arc;
use support::{Model, Random};

fn windows(
    settings: &AnalysisSettings,
    answers: impl Iterator<Item = ResponseMeasurements>,
) -> Vec<WindowReport> {
    let mut monitor = DriftMonitor::new(settings.clone());
    let (tenant, model): (Arc<str>, Arc<str>) = ("acme".into(), "large".into());
    let mut seen = answers.map(|measures| monitor.observe(&tenant, &model, &measures));
    seen.by_ref().filter_map(|seen| seen.window).collect()
}

#[test]
fn false_findings_are_as_rare_as_stated_however_often_is_looked() {
    // 400 pairs of 6 windows each, without any change.
    for (stated, most) in [(0.1, 0.1), (0.01, 0.01)] {
        let settings = AnalysisSettings {
            window_size: 60,
            max_false_alarm_rate: stated,
            ..AnalysisSettings::default()
        };
        let mut random = Random::new(42);
        let (mut compared, mut found) = (0u32, 0u32);
        for _ in 0..400 {
            let answers = (0..360).map(|_| Model::A.answer(&mut random));
            for window in windows(&settings, answers) {
                compared += u32::from(!window.tests.is_empty());
                found += u32::from(window.findings().count() > 0);
            }
        }
        // Three standard deviations of a binomial count above the stated rate.
        let n = f64::from(compared);
        let bound = n * most + 3.0 * (n * most * (1.0 - most)).sqrt();
        assert!(
            compared > 1500 && f64::from(found) <= bound,
            "{found} of {compared} at {stated}"
        );
    }
}

#[test]
fn the_tests_are_not_so_careful_that_they_find_nothing() {
    let settings = AnalysisSettings {
        window_size: 60,
        max_false_alarm_rate: 0.5,
        ..AnalysisSettings::default()
    };
    let mut random = Random::new(7);
    let answers = (0..60 * 200).map(|_| Model::A.answer(&mut random));
    let found = windows(&settings, answers)
        .iter()
        .filter(|window| window.findings().count() > 0)
        .count();
    assert!((5..100).contains(&found), "{found}");
}

#[test]
fn each_change_is_found_in_the_first_window_after_it_and_told_once() {
    for (changed, feature) in [
        (Model::Unsure, Feature::Entropy),
        (Model::Longer, Feature::Length),
        (Model::Refusing, Feature::Refusal),
        (Model::OtherWords, Feature::FirstToken),
        (Model::Looping, Feature::Repetition),
        (Model::CutShort, Feature::LengthLimit),
    ] {
        let settings = AnalysisSettings::default();
        let mut random = Random::new(11);
        let answers = (0..1400).map(|at| {
            let model = if at < 600 { Model::A } else { changed };
            model.answer(&mut random)
        });
        let found: Vec<(u64, Vec<Feature>)> = windows(&settings, answers)
            .iter()
            .filter(|window| window.findings().count() > 0)
            .map(|window| {
                (
                    window.number,
                    window.findings().map(|test| test.feature).collect(),
                )
            })
            .collect();
        assert_eq!(found.len(), 1, "{changed:?}: {found:?}");
        assert!(
            found[0].0 == 4 && found[0].1.contains(&feature),
            "{changed:?}: {found:?}"
        );
    }
}

#[test]
fn tokens_are_compared_by_what_they_are_and_not_by_their_rank() {
    // The same probabilities in the same order, but for other tokens: compared by rank there is no difference.
    let settings = AnalysisSettings::default();
    let mut random = Random::new(5);
    let answers = (0..400).map(|at| {
        let model = if at < 200 { Model::A } else { Model::OtherWords };
        model.answer(&mut random)
    });
    let last = windows(&settings, answers).pop().unwrap();
    let features: Vec<Feature> = last.findings().map(|test| test.feature).collect();
    assert_eq!(features, [Feature::FirstToken]);
}
