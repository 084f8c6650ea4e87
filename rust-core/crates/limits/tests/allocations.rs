//! Tests that the hot path allocates nothing once every subject has been seen.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_limits::{
    ActualUsage, Changes, CredentialId, Demand, Limiter, Limits, ModelBudget, Quotas, TenantLimits,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::num::NonZeroU64;
use support::{SECOND, START, limits};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed to the system allocator unchanged.
#[expect(unsafe_code, reason = "this global allocator counts allocations")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn the_steady_state_allocates_nothing() {
    let with_budget = |values| Limits {
        nanodollars_per_day: NonZeroU64::new(1 << 60),
        nanodollars_per_month: NonZeroU64::new(1 << 60),
        ..limits(values)
    };
    let quotas = Quotas::with_budgets(
        &with_budget([40_000, 1 << 40, 1 << 50, 8]),
        &with_budget([3000, 1 << 40, 1 << 50, 8]),
        &["large", "small"].map(|model| ModelBudget {
            model: model.to_owned(),
            nanodollars_per_day: None,
            nanodollars_per_month: NonZeroU64::new(1 << 60),
        }),
    );
    let mut limiter = Limiter::new();
    let acme = limiter.set_tenant(&TenantLimits {
        name: "acme".into(),
        quotas: quotas.into(),
    });
    let mut changes = Changes::default();
    let mut lines = Vec::with_capacity(4096);
    let demand = |step: u64| Demand {
        tokens: 100,
        model: ["large", "small", "other"][(step % 3) as usize],
        cost: Some(100),
    };
    let mut round = |from: u64, seconds: u64| {
        let (mut refused, mut bytes) = (0, 0);
        for step in 0..seconds * 200 {
            let now = START + from * SECOND + step * SECOND / 200;
            let key = CredentialId::ApiKey([(step % 20) as u8; 4]);
            match limiter.admit(acme, key, demand(step), now) {
                Ok(mut grant) => {
                    limiter.mark_recorded(&mut grant);
                    let tokens = 90 + step % 30;
                    limiter.settle(grant, ActualUsage { tokens, cost: tokens }, now);
                }
                Err(_) => refused += 1,
            }
            lines.clear();
            limiter.limit_status(acme, key, now).write(&mut lines);
            bytes += lines.len();
            if step % 200 == 0 {
                limiter.take_changes(step, now, &mut changes);
                limiter.sweep(5, now);
            }
        }
        (refused, bytes)
    };
    round(0, 130);
    // Pause until every window is empty, repeatedly, until the sweep has started at every position.
    for pause in 1..6 {
        round(pause * 300, 130);
    }
    let before = ALLOCATIONS.with(Cell::get);
    let (refused, bytes) = round(1800, 130);
    assert_eq!(ALLOCATIONS.with(Cell::get) - before, 0);
    assert!(refused == 0 && bytes > 0);
}
