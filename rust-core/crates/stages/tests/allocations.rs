//! Nothing is allocated, whether profiling is on or off, except for the first exchange of a thread.

#![allow(unsafe_code, reason = "counting allocations needs an own global allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use proofgate_stages::{Interval, Profiler, Span, Stage};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as required of our caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as required of our caller.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(run: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    run();
    ALLOCATIONS.get() - before
}

fn exchanges(profiler: &Profiler) {
    for _ in 0..100 {
        let mut span = Span::start(profiler, Instant::now());
        for stage in Stage::ALL {
            span.lap_now(stage);
        }
        span.finish_now(black_box(profiler));
        profiler.timer().stop(profiler, Interval::LedgerBatch);
        profiler.record(Interval::LoopLag, Duration::from_micros(1));
    }
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(black_box(Box::new(7)))), 1);
}

#[test]
fn an_exchange_allocates_nothing_when_it_is_not_measured() {
    let profiler = Profiler::new(false);
    assert_eq!(allocations(|| exchanges(&profiler)), 0);
}

#[test]
fn an_exchange_allocates_nothing_when_it_is_measured_after_one_that_was() {
    let profiler = Profiler::new(true);
    Span::start(&profiler, Instant::now()).finish_now(&profiler);
    assert_eq!(allocations(|| exchanges(&profiler)), 0);
}

#[test]
fn switching_allocates_nothing() {
    let profiler = Profiler::new(false);
    let switched = allocations(|| {
        profiler.enter();
        profiler.set_enabled(true);
        profiler.exit();
    });
    assert_eq!(switched, 0);
}
