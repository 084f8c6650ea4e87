//! Measures the cost of the linear score on ten kinds of text, in CPU microseconds per kilobyte.
//!
//! `cargo run --release -p proofgate-policy --example likeness -- [KILOBYTES]` prints it; the fastest of 40 rounds counts.

mod prose;
mod texts;

use std::error::Error;
use std::hint::black_box;

use proofgate_policy::{linear_score, thread_cpu_time};

const ROUNDS: usize = 40;

fn main() -> Result<(), Box<dyn Error>> {
    let kilobytes: usize = std::env::args().nth(1).as_deref().unwrap_or("256").parse()?;
    for kind in texts::KINDS {
        let text = texts::text(kind, kilobytes * 1024, 1).ok_or("unknown kind")?;
        let mut fastest = f64::INFINITY;
        for _ in 0..ROUNDS {
            let begin = thread_cpu_time();
            black_box(linear_score(black_box(&text))?);
            fastest = fastest.min((thread_cpu_time() - begin).as_secs_f64());
        }
        println!("{kind:9} {:6.2}", fastest * 1e6 * 1024.0 / text.len() as f64);
    }
    Ok(())
}
