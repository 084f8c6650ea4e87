//! Measures the cost of encoding the two records of an exchange, committing to the request, and naming the salt, in
//! nanoseconds.
//!
//! `cargo run --release -p proofgate-ledger --example encode_cost`

use std::hint::black_box;
use std::time::Instant;

use proofgate_ledger::LedgerError;
use proofgate_ledger::commitment::{BodyHasher, SaltedCommitter, salt_id};
use proofgate_ledger::record::{Admission, Completion, ConfigId, Outcome, SaltId, Usage};

const ROUNDS: u32 = 200_000;

fn main() -> Result<(), LedgerError> {
    let id = "req_0123456789abcdefghijklmnop";
    let config = ConfigId([7; 8]);
    let admission = Admission {
        seq: 1_234_567,
        ts: 1_760_000_000_000_000,
        id: id.into(),
        tenant: "acme".into(),
        tenant_seq: 12_345,
        key: "0a1b2c3d".into(),
        model: "gpt-4o-mini".into(),
        provider: "openai".into(),
        upstream_model: "gpt-4o-mini-2024-07-18".into(),
        endpoint: "/v1/chat/completions".into(),
        stream: false,
        coming: None,
        bytes: 1100,
        request: [9; 32],
        salt: Some(SaltId([4; 8])),
        shred_key: None,
        reserved: Some(4352),
        reserved_nanodollars: None,
        shared_plan: None,
        policy: None,
        dropped: Vec::new(),
        dropped_unnamed: 0,
        attribution: None,
        client_address: None,
        key_name: None,
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
        attempts: 1,
        outcome: Outcome::Complete,
        received: None,
        bytes: 600,
        response: [3; 32],
        payloads: None,
        usage: Some(Usage {
            prompt_tokens: 250,
            completion_tokens: 20,
            ..Usage::default()
        }),
        charged: Some(270),
        cost_nanodollars: None,
        duration_us: 51_234,
        policy: None,
        config,
    };
    let mut out = Vec::with_capacity(1 << 16);
    let encoding = best_of_nine(|| {
        out.clear();
        black_box(&admission).encode_into(&mut out)?;
        black_box(&completion).encode_into(&mut out)?;
        black_box(&out);
        Ok(())
    })?;
    let salt = [5; 32];
    let committing = best_of_nine(|| {
        black_box(SaltedCommitter::new(black_box(&salt)).commit("request", BodyHasher::new()));
        Ok(())
    })?;
    let naming = best_of_nine(|| {
        black_box(salt_id(black_box(&salt)));
        Ok(())
    })?;
    println!("{encoding} ns for {} bytes", out.len());
    println!("{committing} ns to commit, {naming} ns to name the salt");
    Ok(())
}

/// Returns the nanoseconds per round in the fastest of nine runs.
fn best_of_nine(mut round: impl FnMut() -> Result<(), LedgerError>) -> Result<u128, LedgerError> {
    let mut best = u128::MAX;
    for _ in 0..9 {
        let begin = Instant::now();
        for _ in 0..ROUNDS {
            round()?;
        }
        best = best.min(begin.elapsed().as_nanos());
    }
    Ok(best / u128::from(ROUNDS))
}
