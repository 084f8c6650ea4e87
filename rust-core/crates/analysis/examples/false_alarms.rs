//! Prints the false alarm rate of the drift tests and how fast they detect specific changes, with seeded random responses.
//!
//! `cargo run --release -p proofgate-analysis --example false_alarms [windows]`

#[path = "../tests/support/mod.rs"]
mod support;

use proofgate_analysis::{AnalysisSettings, DriftMonitor, WindowReport};
use std::sync::Arc;
use support::{Model, Random};

/// Number of changed windows after which a trial ends without a finding.
const CHANGED: u64 = 6;

fn main() {
    let windows: u64 = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_000);
    println!("| stated, for each window | found in first windows | in the long run | windows each |");
    println!("|---|---|---|---|");
    for stated in [0.001, 0.01, 0.1] {
        let settings = AnalysisSettings {
            max_false_alarm_rate: stated,
            ..AnalysisSettings::default()
        };
        let mut random = Random::new(1);
        let (mut first, mut later) = (0, 0);
        for _ in 0..windows {
            let mut monitor = DriftMonitor::new(settings.clone());
            first += u64::from(
                next_compared(&mut monitor, &mut random)
                    .findings()
                    .next()
                    .is_some(),
            );
        }
        let mut monitor = DriftMonitor::new(settings);
        for _ in 0..windows {
            later += u64::from(
                next_compared(&mut monitor, &mut random)
                    .findings()
                    .next()
                    .is_some(),
            );
        }
        println!("| {stated} | {first} | {later} | {windows} |");
    }
    println!("\n| change | found in the first window | in the second | later or not in {CHANGED} |");
    println!("|---|---|---|---|");
    for changed in [
        Model::Unsure,
        Model::OtherWords,
        Model::Longer,
        Model::Looping,
        Model::Refusing,
        Model::CutShort,
    ] {
        let mut delays = [0u32; 3];
        for trial in 0..100 {
            let mut random = Random::new(trial + 100);
            let mut monitor = DriftMonitor::new(AnalysisSettings::default());
            while next(&mut monitor, Model::A, &mut random).is_none() {}
            let mut delay = 0;
            while delay < CHANGED {
                let Some(window) = next(&mut monitor, changed, &mut random) else {
                    continue;
                };
                if window.findings().next().is_some() {
                    break;
                }
                delay += 1;
            }
            delays[delay.min(2) as usize] += 1;
        }
        let [first, second, later] = delays;
        println!("| {changed:?} | {first} of 100 | {second} | {later} |");
    }
}

fn next(monitor: &mut DriftMonitor, model: Model, random: &mut Random) -> Option<WindowReport> {
    let (tenant, name): (Arc<str>, Arc<str>) = ("acme".into(), "large".into());
    monitor.observe(&tenant, &name, &model.answer(random)).window
}

fn next_compared(monitor: &mut DriftMonitor, random: &mut Random) -> WindowReport {
    loop {
        if let Some(window) = next(monitor, Model::A, random)
            && !window.tests.is_empty()
        {
            return window;
        }
    }
}
