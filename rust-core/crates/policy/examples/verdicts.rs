//! Prints the matches of texts, for comparison with another engine.
//!
//! `cargo run --release -p proofgate-policy --example verdicts -- [--allow JSON] [--packs a,b] [--rules FILE.toml ...]`
//!
//! Standard input: one `{"text": "...", "direction": "request", "scope": "User"}` per line (`direction` and `scope` are
//! optional). Standard output: for each line `{"matches":[["rule-id",start,end],...],"replaced":[...]}`, sorted; `replaced`
//! lists the replaced ranges that extend beyond their match. Without packs and rules, all built-in packs are used. `--allow`
//! is the `allow` section of a policy.

use std::error::Error;
use std::io::{BufRead, BufWriter, Write};

use proofgate_policy::{Budget, Direction, Engine, Pack, PolicyConfig, Scope, Scratch, pattern_pack_names};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Event {
    text: String,
    #[serde(default = "request")]
    direction: Direction,
    /// The scope of the text; absent: a user's message, or a response.
    scope: Option<String>,
}

impl Event {
    fn scope(&self) -> Result<Scope, Box<dyn Error>> {
        let usual = match self.direction {
            Direction::Request => "User",
            Direction::Response => "Answer",
        };
        let name = self.scope.as_deref().unwrap_or(usual);
        Ok(Scope::from_name(name, self.direction).ok_or("no such scope")?)
    }
}

fn request() -> Direction {
    Direction::Request
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut config = PolicyConfig::default();
    let packs = selected_packs(&mut config)?;
    let engine = Engine::compile_packs(&config, packs)?;
    let profile = engine.profile(None)?;
    let mut scratch = Scratch::new();
    let mut found = Vec::new();
    let mut output = BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let event: Event = serde_json::from_str(&line?)?;
        found.clear();
        let mut budget = Budget::unlimited();
        engine.scan(
            &profile,
            event.scope()?,
            &event.text,
            &mut budget,
            &mut scratch,
            &mut found,
        )?;
        let mut matches: Vec<_> = found
            .iter()
            .map(|found| (&engine.rule(found.rule).id, found.start, found.end))
            .collect();
        matches.sort();
        matches.dedup();
        let mut replaced: Vec<_> = found
            .iter()
            .map(|found| {
                let end = engine.replacement_end(found.rule, event.direction, &event.text, found.end);
                (found, end)
            })
            .filter(|(found, end)| *end > found.end)
            .map(|(found, end)| (&engine.rule(found.rule).id, found.start, end))
            .collect();
        replaced.sort();
        replaced.dedup();
        writeln!(
            output,
            "{}",
            serde_json::json!({ "matches": matches, "replaced": replaced })
        )?;
    }
    Ok(output.flush()?)
}

fn selected_packs(config: &mut PolicyConfig) -> Result<Vec<Pack>, Box<dyn Error>> {
    let mut names: Option<Vec<String>> = None;
    let mut packs = Vec::new();
    let mut reads_rules = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--allow" => {
                let allow = arguments.next().ok_or("--allow needs an object of JSON")?;
                config.allow = Some(serde_json::from_str(&allow)?);
            }
            "--packs" => {
                let list = arguments
                    .next()
                    .ok_or("--packs needs names, separated by commas")?;
                names = Some(list.split(',').map(str::to_owned).collect());
                reads_rules = false;
            }
            "--rules" => reads_rules = true,
            file if reads_rules => packs.push(Pack::read(file, &std::fs::read_to_string(file)?)?),
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    if packs.is_empty() && names.is_none() {
        names = Some(pattern_pack_names().map(str::to_owned).collect());
    }
    for name in names.unwrap_or_default() {
        packs.push(Pack::built_in(&name)?);
    }
    // The output is about what a rule matches, not about its action.
    Ok(packs.into_iter().map(Pack::without_limits).collect())
}
