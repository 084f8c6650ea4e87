//! What it costs to encode the two records of an exchange: nanoseconds for both.
//!
//! `cargo run --release -p proofgate-ledger --example encode_cost`

use std::hint::black_box;
use std::time::Instant;

use proofgate_ledger::LedgerError;
use proofgate_ledger::record::{Admission, Completion, ConfigId, Outcome, Usage};

const ROUNDS: u32 = 200_000;

fn main() -> Result<(), LedgerError> {
    let id = "req_0123456789abcdefghijklmnop";
    let config = ConfigId([7; 8]);
    let admission = Admission {
        seq: 1_234_567,
        ts: 1_760_000_000_000_000,
        id: id.into(),
        tenant: "acme".into(),
        key: "0a1b2c3d".into(),
        model: "gpt-4o-mini".into(),
        provider: "openai".into(),
        upstream_model: "gpt-4o-mini-2024-07-18".into(),
        endpoint: "/v1/chat/completions".into(),
        stream: false,
        bytes: 1100,
        request: [9; 32],
        reserved: Some(4352),
        policy: None,
        config,
    };
    let completion = Completion {
        seq: 1_234_568,
        ts: 1_760_000_000_050_000,
        id: id.into(),
        admission: 1_234_567,
        incarnation: None,
        status: 200,
        upstream_status: Some(200),
        outcome: Outcome::Complete,
        bytes: 600,
        response: [3; 32],
        usage: Some(Usage {
            prompt_tokens: 250,
            completion_tokens: 20,
        }),
        charged: Some(270),
        duration_us: 51_234,
        policy: None,
        config,
    };
    let mut out = Vec::with_capacity(1 << 16);
    let mut best = u128::MAX;
    for _ in 0..9 {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            out.clear();
            black_box(&admission).encode_into(&mut out)?;
            black_box(&completion).encode_into(&mut out)?;
            black_box(&out);
        }
        best = best.min(begin.elapsed().as_nanos());
    }
    println!("{} ns for {} bytes", best / u128::from(ROUNDS), out.len());
    Ok(())
}
