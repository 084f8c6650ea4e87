//! Prints the costs of the limiter: admission and settlement with every limit set, header fields, a
//! refusal, and taking changes. It prints the fastest and the median of many short runs, because a
//! machine is rarely idle for long.
//!
//! `cargo run --release -p proofgate-limits --example cost`

use proofgate_limits::{Changes, CredentialId, Limiter, Limits, Quotas, TenantId, TenantLimits};
use std::hint::black_box;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Instant;

const RUNS: usize = 501;
const START: u64 = 1_700_000_000_000_000;
const TENANTS: usize = 100;
const KEYS: u64 = 10;

fn limits(concurrency: u64) -> Limits {
    Limits {
        requests_per_minute: NonZeroU64::new(10_000_000),
        tokens_per_minute: NonZeroU64::new(10_000_000_000),
        tokens_per_day: NonZeroU64::new(10_000_000_000_000),
        concurrency: NonZeroU64::new(concurrency),
        ..Limits::default()
    }
}

fn limiter(tenants: usize, concurrency: u64) -> (Limiter, Vec<TenantId>) {
    let tenants: Vec<_> = (0..tenants)
        .map(|number| TenantLimits {
            name: format!("tenant-{number}").into(),
            quotas: Arc::new(Quotas::new(&limits(concurrency), &limits(concurrency))),
        })
        .collect();
    let mut limiter = Limiter::new();
    let ids = limiter.set_limits(&tenants);
    (limiter, ids)
}

fn key(number: u64) -> CredentialId {
    CredentialId::ApiKey(((number.wrapping_mul(2_654_435_761)) as u32).to_be_bytes())
}

/// Prints nanoseconds for each of `count` calls.
fn print(name: &str, count: u64, mut run: impl FnMut(u64)) {
    let mut runs: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            for number in 0..count {
                run(number);
            }
            start.elapsed().as_nanos() as f64 / count as f64
        })
        .collect();
    runs.sort_by(f64::total_cmp);
    println!("{name:<52} {:6.1} {:6.1}", runs[0], runs[RUNS / 2]);
}

fn exchange(limiter: &mut Limiter, tenant: TenantId, key: CredentialId, now: u64) {
    if let Ok(mut grant) = limiter.admit(tenant, key, 1500, now) {
        limiter.mark_recorded(&mut grant);
        limiter.settle(black_box(grant), 900, now);
    }
}

fn main() {
    let mut now = START;
    // The calls are 20 µs apart, so windows advance and seconds expire.
    let mut tick = || {
        now += 20;
        now
    };
    println!("{:<52} fastest median, ns", "");
    let (mut one, ids) = limiter(1, 1 << 30);
    print("admit, recorded, settle: one tenant, one key", 10_000, |_| {
        exchange(&mut one, ids[0], key(1), tick());
    });
    let (mut many, many_ids) = limiter(TENANTS, 1 << 30);
    let name = format!("admit, recorded, settle: {TENANTS} tenants of {KEYS} keys");
    print(&name, 10_000, |number| {
        let tenant = many_ids[(number.wrapping_mul(7919) % TENANTS as u64) as usize];
        exchange(&mut many, tenant, key(number % KEYS), tick());
    });
    let (mut unlimited, _) = limiter(0, 1);
    let free = unlimited.set_limits(&[TenantLimits {
        name: "free".into(),
        quotas: Arc::new(Quotas::new(&Limits::default(), &Limits::default())),
    }]);
    print("admit, recorded, settle: no limits", 10_000, |_| {
        exchange(&mut unlimited, free[0], key(1), tick());
    });
    let mut lines = Vec::new();
    print("header fields, 8 limits", 2_000, |_| {
        lines.clear();
        one.limit_status(ids[0], key(1), tick()).write(&mut lines);
        black_box(&lines);
    });
    let (mut full, ids) = limiter(1, 1);
    let held = full.admit(ids[0], key(1), 1, tick());
    print("refusal", 2_000, |_| {
        black_box(full.admit(ids[0], key(1), 1, tick()).is_err());
    });
    drop(held);

    let (mut busy, ids) = limiter(1, 1 << 30);
    let mut changes = Changes::default();
    for second in 0..60 {
        exchange(&mut busy, ids[0], key(1), START + second * 1_000_000);
    }
    let last = START + 60_000_000;
    print(
        "exchange and taking 2 changes of 61 busy seconds",
        200_000,
        |number| {
            exchange(&mut busy, ids[0], key(1), last);
            busy.take_changes(number, last, &mut changes);
        },
    );
}
