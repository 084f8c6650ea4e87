//! Measures stage profiling for an exchange of 12 laps: nanoseconds, off and on.
//!
//! `cargo run --release -p proofgate-stages --example span_cost`

use std::hint::black_box;
use std::time::Instant;

use proofgate_stages::{Profiler, Span, Stage};

const ROUNDS: u32 = 200_000;
const LAPS: usize = 12;

/// Returns the nanoseconds of one call: the minimum and the median of fifteen series.
fn measure(name: &str, mut call: impl FnMut()) {
    let mut series: Vec<f64> = (0..15)
        .map(|_| {
            let start = Instant::now();
            (0..ROUNDS).for_each(|_| call());
            start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
        })
        .collect();
    series.sort_by(f64::total_cmp);
    println!("{name:44} {:>7.1} ns, median {:>7.1} ns", series[0], series[7]);
}

/// An exchange whose caller does not read the clock.
#[inline(never)]
fn exchange(profiler: &Profiler) {
    let mut span = black_box(Span::start_now(profiler));
    for stage in &Stage::ALL[..LAPS] {
        black_box(&mut span).lap_now(*stage);
    }
    span.finish_now(profiler);
}

/// An exchange whose caller knows the time.
#[inline(never)]
fn exchange_at(profiler: &Profiler, now: Instant) {
    let mut span = black_box(Span::start(profiler, now));
    for stage in &Stage::ALL[..LAPS] {
        black_box(&mut span).lap(*stage, now);
    }
    span.finish(profiler, now);
}

fn main() {
    println!(
        "an exchange of {LAPS} laps; a span has {} bytes",
        size_of::<Span>()
    );
    let now = Instant::now();
    for (name, profiler) in [("off", Profiler::new(false)), ("on", Profiler::new(true))] {
        measure(&format!("{name}, the span reads the clock"), || {
            exchange(black_box(&profiler))
        });
        measure(&format!("{name}, the caller knows the time"), || {
            exchange_at(black_box(&profiler), black_box(now));
        });
    }
    measure("one reading of the clock", || {
        black_box(Instant::now());
    });
}
