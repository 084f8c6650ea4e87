//! Measures the cost of the rules on files that agents read: source code, JSON, logs, prose.
//!
//! `cargo run --release -p proofgate-policy --example bodies -- [--rounds N] [--response] FILE...`
//!
//! Prints for each file the CPU microseconds per kilobyte, as the median of the rounds with the minimum and maximum, and the
//! number of matches. Each round processes every file once, so that other load on the machine affects all of them. With
//! `--each`, also prints the additional cost of single rules, for the most expensive ones.

use std::error::Error;
use std::time::Duration;

use proofgate_policy::{
    Action, ActionOverride, Budget, Engine, PolicyConfig, Scope, Scratch, TenantPolicy, pattern_pack_names,
};
use rustix::time::{ClockId, clock_gettime};

fn main() -> Result<(), Box<dyn Error>> {
    let (mut rounds, mut scope, mut each, mut names) = (5, Scope::User, false, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rounds" => {
                rounds = arguments
                    .next()
                    .ok_or("--rounds needs a number")?
                    .parse::<usize>()?
            }
            "--each" => each = true,
            "--response" => scope = Scope::Response,
            _ => names.push(argument),
        }
    }
    if each {
        return cost_of_each(scope, &names);
    }
    let config = PolicyConfig {
        packs: pattern_pack_names().map(str::to_owned).collect(),
        ..PolicyConfig::default()
    };
    let engine = Engine::compile(&config)?;
    let (profile, mut scratch, mut found) = (engine.profile(None)?, Scratch::new(), Vec::new());
    let texts = names.iter().map(std::fs::read_to_string);
    let texts = texts.collect::<Result<Vec<String>, _>>()?;
    let mut costs = vec![Vec::new(); texts.len()];
    let mut matches = vec![0; texts.len()];
    // The first round warms up.
    for round in 0..=rounds.max(1) {
        for (number, text) in texts.iter().enumerate() {
            found.clear();
            let before = used();
            let mut budget = Budget::unlimited();
            engine.scan(&profile, scope, text, &mut budget, &mut scratch, &mut found)?;
            let cost = (used() - before).as_secs_f64() * 1e6 / (text.len() as f64 / 1024.0);
            if round > 0 {
                costs[number].push(cost);
            }
            matches[number] = found.len();
        }
    }
    for ((name, costs), matches) in names.iter().zip(&mut costs).zip(matches) {
        costs.sort_by(f64::total_cmp);
        let (median, least, most) = (costs[costs.len() / 2], costs[0], costs[costs.len() - 1]);
        println!("{name:32} {median:7.2} µs/KB   ({least:.2} to {most:.2}), {matches} matches");
    }
    Ok(())
}

/// Prints for each file the most expensive rules, in addition to the cost of searching for all literals.
fn cost_of_each(scope: Scope, names: &[String]) -> Result<(), Box<dyn Error>> {
    let config = PolicyConfig {
        packs: pattern_pack_names().map(str::to_owned).collect(),
        action: Some(Action::Flag),
        ..PolicyConfig::default()
    };
    let engine = Engine::compile(&config)?;
    let ids: Vec<String> = engine.rules().map(|rule| rule.id.clone()).collect();
    let mut scratch = Scratch::new();
    for name in names {
        let text = std::fs::read_to_string(name)?;
        let mut cost = |enabled: Option<&String>| -> Result<f64, Box<dyn Error>> {
            let off = ActionOverride {
                packs: Vec::new(),
                rules: ids.iter().filter(|id| Some(*id) != enabled).cloned().collect(),
                scopes: None,
                action: Action::Ignore,
            };
            let tenant = TenantPolicy {
                actions: vec![off],
                ..TenantPolicy::default()
            };
            let profile = engine.profile(Some(&tenant))?;
            let mut best = f64::INFINITY;
            for _ in 0..5 {
                let (mut budget, before) = (Budget::unlimited(), used());
                engine.scan(&profile, scope, &text, &mut budget, &mut scratch, &mut Vec::new())?;
                best = best.min((used() - before).as_secs_f64() * 1e6 / (text.len() as f64 / 1024.0));
            }
            Ok(best)
        };
        let none = cost(None)?;
        let mut rules = ids
            .iter()
            .map(|id| Ok((id, cost(Some(id))? - none)))
            .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
        rules.sort_by(|one, other| other.1.total_cmp(&one.1));
        let dearest: Vec<String> = rules
            .iter()
            .take(8)
            .map(|(id, cost)| format!("{id} {cost:.2}"))
            .collect();
        println!("{name:32} none {none:.2}; {}", dearest.join(", "));
    }
    Ok(())
}

/// Returns the CPU time of this thread.
fn used() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}
