//! Reads observations from the exposed series.

#![allow(dead_code, reason = "each test file uses only some of these helpers")]

use std::collections::HashMap;
use std::sync::Arc;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use proofgate_stages::Profiler;

/// Returns the exposition of a registry that holds only the profiler.
pub fn exposition(profiler: &Arc<Profiler>) -> String {
    let mut registry = Registry::with_prefix("proofgate");
    registry.register_collector(Box::new(Arc::clone(profiler)));
    let mut out = String::new();
    text::encode(&mut out, &registry).unwrap();
    out
}

/// The observations of one stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Observed {
    pub count: u64,
    pub nanoseconds: u64,
}

/// Returns the observations of every stage that has series.
pub fn observed(profiler: &Arc<Profiler>) -> HashMap<String, Observed> {
    let mut stages: HashMap<String, Observed> = HashMap::new();
    for line in exposition(profiler).lines() {
        let Some((sample, stage, value)) = sample(line) else {
            continue;
        };
        let stage = stages.entry(stage.to_owned()).or_default();
        match sample {
            "count" => stage.count = value as u64,
            "sum" => stage.nanoseconds = (value * 1e9).round() as u64,
            _ => {}
        }
    }
    stages
}

fn sample(line: &str) -> Option<(&str, &str, f64)> {
    let (name, rest) = line.strip_prefix("proofgate_stage_seconds_")?.split_once('{')?;
    let (stage, value) = rest.strip_prefix("stage=\"")?.split_once("\"} ")?;
    Some((name, stage, value.parse().unwrap()))
}

/// Returns the number of observations of a stage.
pub fn count(profiler: &Arc<Profiler>, stage: &str) -> u64 {
    observed(profiler)[stage].count
}

/// Returns the total nanoseconds of a stage.
pub fn sum(profiler: &Arc<Profiler>, stage: &str) -> u64 {
    observed(profiler)[stage].nanoseconds
}
