//! Measures how many texts of 1 KB a core evaluates per second, and how long one evaluation takes.
//!
//! `cargo run --release -p proofgate-policy --example scoring -- [--packs a,b] [--rounds N] [--events N]`
//!
//! Prints, for ordinary prose and for prose in which 1 % of the texts contain an example of a rule, the events per second
//! and the percentiles of one evaluation (budget, scan and judgement), as the median of the rounds with the minimum and
//! maximum. `events/s` is based on CPU time, so it is the rate of a whole core even on a busy machine; `wall/s` and the
//! percentiles are based on wall-clock time. The figures include two clock readings for each event.
//!
//! `... -- --soak SECONDS [--panic-every N]` runs continuously, lets a rule panic in every N-th event, checks that every
//! other event keeps its outcome, and prints how the resident memory developed.

mod prose;

use std::error::Error;
use std::time::{Duration, Instant};

use proofgate_policy::{
    Engine, EvaluationError, Judgement, Match, MessageJudgement, PolicyConfig, Profile, Scope, Scratch,
    pattern_pack_names,
};

const LENGTH: usize = 1024;
const PANIC_MARK: &str = "xyzzy-panic";

struct Options {
    packs: Vec<String>,
    rounds: usize,
    events: usize,
    soak: Option<Duration>,
    panic_every: Option<usize>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = options()?;
    // Generous, so that a busy machine does not affect the measurement.
    let budget_us = 1_000_000;
    let mut config = PolicyConfig {
        packs: options.packs.clone(),
        budget_us,
        ..PolicyConfig::default()
    };
    if options.panic_every.is_some() {
        config.rules.push(serde_json::from_value(serde_json::json!({
            "id": "panics", "reason": "Injected fault.", "literals": [PANIC_MARK], "check": "panic-for-tests",
        }))?);
        std::panic::set_hook(Box::new(|_| {}));
    }
    let begin = Instant::now();
    let engine = Engine::compile(&config)?;
    let profile = engine.profile(None)?;
    println!(
        "packs {}: {} rules, compiled in {:.0?}",
        options.packs.join(","),
        engine.rules().count(),
        begin.elapsed()
    );

    let clean = prose::prompts(options.events, LENGTH, 1);
    let mut bench = Bench {
        engine,
        profile,
        scratch: Scratch::new(),
        found: Vec::new(),
    };
    if let Some(duration) = options.soak {
        return bench.soak(&clean, duration, options.panic_every);
    }
    let mixed = with_matches(&clean, &bench.engine);
    bench.report("clean prose", &clean, options.rounds)?;
    bench.report("1 % matching", &mixed, options.rounds)
}

struct Bench {
    engine: Engine,
    profile: Profile,
    scratch: Scratch,
    found: Vec<Match>,
}

struct Round {
    per_second: f64,
    per_wall_second: f64,
    p50: f64,
    p99: f64,
    max: f64,
    matching: usize,
}

impl Bench {
    fn evaluate(&mut self, text: &str) -> Result<bool, EvaluationError> {
        self.found.clear();
        let mut budget = self.engine.budget(text.len());
        let Self {
            engine,
            profile,
            scratch,
            found,
        } = self;
        engine.scan(profile, Scope::User, text, &mut budget, scratch, found)?;
        found.sort_unstable_by_key(|found| (found.start, found.end, found.rule));
        let (mut message, mut judgement) = (MessageJudgement::default(), Judgement::new());
        for found in found.iter() {
            message.record(profile, Scope::User, found.rule);
        }
        message.count(engine, profile, Scope::User, found);
        judgement.add(profile, 0, Scope::User, &message);
        Ok(judgement.decision().is_some())
    }

    fn round(&mut self, events: &[String]) -> Result<Round, Box<dyn Error>> {
        let mut times = Vec::with_capacity(events.len());
        let mut matching = 0;
        let (begin, used_before) = (Instant::now(), processor_seconds()?);
        for event in events {
            let start = Instant::now();
            matching += usize::from(self.evaluate(event)?);
            times.push(start.elapsed().as_nanos() as f64);
        }
        let total = begin.elapsed();
        let used = processor_seconds()? - used_before;
        times.sort_by(f64::total_cmp);
        let percentile = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        Ok(Round {
            per_second: events.len() as f64 / used.max(1e-9),
            per_wall_second: events.len() as f64 / total.as_secs_f64(),
            p50: percentile(0.5),
            p99: percentile(0.99),
            max: percentile(1.0),
            matching,
        })
    }

    fn report(&mut self, name: &str, events: &[String], rounds: usize) -> Result<(), Box<dyn Error>> {
        self.round(events)?;
        let rounds = (0..rounds)
            .map(|_| self.round(events))
            .collect::<Result<Vec<_>, _>>()?;
        println!(
            "{name}: {} events of {LENGTH} bytes, {} matching",
            events.len(),
            rounds[0].matching
        );
        print_spread("events/s", rounds.iter().map(|round| round.per_second));
        print_spread("wall/s", rounds.iter().map(|round| round.per_wall_second));
        print_spread("p50 ns", rounds.iter().map(|round| round.p50));
        print_spread("p99 ns", rounds.iter().map(|round| round.p99));
        print_spread("max ns", rounds.iter().map(|round| round.max));
        Ok(())
    }

    fn soak(
        &mut self,
        clean: &[String],
        duration: Duration,
        panic_every: Option<usize>,
    ) -> Result<(), Box<dyn Error>> {
        let mixed = with_matches(clean, &self.engine);
        let panicking = format!("{} {PANIC_MARK}", &clean[0][..LENGTH - PANIC_MARK.len() - 1]);
        let outcomes: Vec<bool> = mixed
            .iter()
            .map(|text| self.evaluate(text))
            .collect::<Result<_, _>>()?;
        let begin = Instant::now();
        let (mut events, mut panics) = (0_usize, 0_usize);
        let mut samples: Vec<(f64, f64)> = Vec::new();
        while begin.elapsed() < duration {
            for (text, outcome) in mixed.iter().zip(&outcomes) {
                events += 1;
                let injected = panic_every.is_some_and(|every| events.is_multiple_of(every));
                match self.evaluate(if injected { &panicking } else { text }) {
                    Err(EvaluationError::Panicked) if injected => panics += 1,
                    Ok(matches) if !injected && matches == *outcome => {}
                    other => return Err(format!("event {events}: {other:?}").into()),
                }
            }
            samples.push((begin.elapsed().as_secs_f64(), resident_kib()?));
        }
        let seconds = begin.elapsed().as_secs_f64();
        // The first tenth warms up.
        let settled = &samples[samples.len() / 10..];
        println!(
            "soak: {events} events in {seconds:.1} s ({:.0}/s), {panics} panics, every other event as without them",
            events as f64 / seconds
        );
        println!(
            "resident: {:.0} KiB first, {:.0} KiB last, slope {:+.2} KiB/s over {} samples",
            samples[0].1,
            samples[samples.len() - 1].1,
            slope(settled),
            settled.len()
        );
        Ok(())
    }
}

/// Returns the events, with an example of a rule at the end of every hundredth.
fn with_matches(clean: &[String], engine: &Engine) -> Vec<String> {
    let examples: Vec<&String> = engine
        .rules()
        .flat_map(|rule| rule.examples.matching.first())
        .collect();
    let mut events = clean.to_vec();
    for (number, event) in events.iter_mut().step_by(100).enumerate() {
        let Some(example) = examples.get(number % examples.len().max(1)) else {
            continue;
        };
        event.truncate(LENGTH.saturating_sub(example.len() + 2));
        event.push_str(". ");
        event.push_str(example);
    }
    events
}

fn print_spread(name: &str, values: impl Iterator<Item = f64>) {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (median, least, most) = (values[values.len() / 2], values[0], values[values.len() - 1]);
    println!("  {name:9} {median:>12.0}   ({least:.0} to {most:.0})");
}

/// Returns the slope of a least-squares line.
fn slope(samples: &[(f64, f64)]) -> f64 {
    let count = samples.len() as f64;
    let mean = |value: fn(&(f64, f64)) -> f64| samples.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|sample| sample.0), mean(|sample| sample.1));
    let covariance: f64 = samples.iter().map(|sample| (sample.0 - x) * (sample.1 - y)).sum();
    let variance: f64 = samples.iter().map(|sample| (sample.0 - x).powi(2)).sum();
    if variance > 0.0 {
        covariance / variance
    } else {
        0.0
    }
}

/// Returns the CPU seconds used by this thread (proc(5): the first number of schedstat, in nanoseconds).
fn processor_seconds() -> Result<f64, Box<dyn Error>> {
    let numbers = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let used = numbers.split_whitespace().next().ok_or("no schedstat")?;
    Ok(used.parse::<f64>()? / 1e9)
}

fn resident_kib() -> Result<f64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn options() -> Result<Options, Box<dyn Error>> {
    let packs = pattern_pack_names().map(str::to_owned).collect();
    let mut options = Options {
        packs,
        rounds: 7,
        events: 20_000,
        soak: None,
        panic_every: None,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments
            .next()
            .ok_or_else(|| format!("{argument} needs a value"))?;
        match argument.as_str() {
            "--packs" => options.packs = value.split(',').map(str::to_owned).collect(),
            "--rounds" => options.rounds = value.parse::<usize>()?.max(1),
            "--events" => options.events = value.parse::<usize>()?.max(1),
            "--soak" => options.soak = Some(Duration::from_secs(value.parse()?)),
            "--panic-every" => options.panic_every = Some(value.parse::<usize>()?.max(1)),
            _ => return Err(format!("unknown option {argument}").into()),
        }
    }
    Ok(options)
}
