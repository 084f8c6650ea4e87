//! Measures the cost of the rules on ten kinds of text, in CPU microseconds per kilobyte.
//!
//! `cargo run --release -p proofgate-policy --example kinds -- [--packs a,b] [--rounds N] [--kilobytes N] [--kind NAME]
//! [--only RULE] [--json]`
//!
//! Prints for each kind the cost of all rules together, and the most expensive single rules: the additional cost of an
//! engine with that rule compared with an engine without rules. The fastest round counts. `--kind NAME` measures only one
//! kind, `--only RULE` only one rule.

mod prose;
mod texts;

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use proofgate_policy::{
    Action, ActionOverride, Budget, Engine, PolicyConfig, Scope, Scratch, pattern_pack_names,
};
use rustix::time::{ClockId, clock_gettime};

/// Number of rules reported for each kind.
const SLOWEST: usize = 5;

struct Options {
    packs: Vec<String>,
    rounds: usize,
    kilobytes: usize,
    kind: Option<String>,
    only: Option<String>,
    json: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    let all = Engine::compile(&packs(&options.packs, &[]))?;
    let ids: Vec<String> = all.rules().map(|rule| rule.id.clone()).collect();
    let wanted = |id: &&String| options.only.as_ref().is_none_or(|only| only == *id);
    let alone = ids.iter().filter(wanted).map(|id| {
        let others: Vec<String> = ids.iter().filter(|other| *other != id).cloned().collect();
        Ok((id.as_str(), Engine::compile(&packs(&options.packs, &others))?))
    });
    let alone: Vec<(&str, Engine)> = alone.collect::<Result<_, Box<dyn Error>>>()?;
    let none = Engine::compile(&packs(&options.packs, &ids))?;
    let mut report = BTreeMap::new();
    for kind in texts::KINDS
        .iter()
        .filter(|kind| options.kind.as_ref().is_none_or(|only| only == *kind))
    {
        let text = texts::text(kind, options.kilobytes * 1024, 1).ok_or("unknown kind")?;
        let cost = |engine: &Engine| microseconds_per_kilobyte(engine, &text, options.rounds);
        let (together, empty) = (cost(&all)?, cost(&none)?);
        let mut rules = alone
            .iter()
            .map(|(id, engine)| Ok((*id, (cost(engine)? - empty).max(0.0))))
            .collect::<Result<Vec<_>, Box<dyn Error>>>()?;
        rules.sort_by(|one, other| other.1.total_cmp(&one.1));
        rules.truncate(SLOWEST);
        if !options.json {
            let named: Vec<String> = rules.iter().map(|(id, cost)| format!("{id} {cost:.2}")).collect();
            println!(
                "{kind:9} {together:8.2} (no rule {empty:.2})  {}",
                named.join(", ")
            );
        }
        report.insert(
            *kind,
            serde_json::json!({"all": together, "none": empty, "slowest": rules}),
        );
    }
    if options.json {
        println!("{}", serde_json::to_string(&report)?);
    }
    Ok(())
}

fn packs(names: &[String], disabled: &[String]) -> PolicyConfig {
    PolicyConfig {
        packs: names.to_vec(),
        actions: off(disabled),
        ..PolicyConfig::default()
    }
}

fn microseconds_per_kilobyte(engine: &Engine, text: &str, rounds: usize) -> Result<f64, Box<dyn Error>> {
    let (profile, mut scratch, mut found) = (engine.profile(None)?, Scratch::new(), Vec::new());
    let mut best = f64::INFINITY;
    for _ in 0..=rounds {
        found.clear();
        let before = used();
        engine.scan(
            &profile,
            Scope::User,
            text,
            &mut Budget::unlimited(),
            &mut scratch,
            &mut found,
        )?;
        best = best.min((used() - before).as_secs_f64());
    }
    Ok(best * 1e6 / (text.len() as f64 / 1024.0))
}

/// Returns the CPU time of this thread.
fn used() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs() as u32)
}

fn options() -> Result<Options, Box<dyn Error>> {
    let mut options = Options {
        packs: pattern_pack_names().map(str::to_owned).collect(),
        rounds: 3,
        kilobytes: 64,
        kind: None,
        only: None,
        json: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or(format!("{argument} needs a value"));
        match argument.as_str() {
            "--packs" => options.packs = value()?.split(',').map(str::to_owned).collect(),
            "--rounds" => options.rounds = value()?.parse()?,
            "--kilobytes" => options.kilobytes = value()?.parse()?,
            "--kind" => options.kind = Some(value()?),
            "--only" => options.only = Some(value()?),
            "--json" => options.json = true,
            _ => return Err(format!("{argument} is unknown").into()),
        }
    }
    Ok(options)
}

/// Returns overrides that turn rules off.
fn off(rules: &[String]) -> Vec<ActionOverride> {
    if rules.is_empty() {
        return Vec::new();
    }
    vec![ActionOverride {
        packs: Vec::new(),
        rules: rules.to_vec(),
        scopes: None,
        action: Action::Ignore,
    }]
}
