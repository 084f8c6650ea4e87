//! Memory use of a plan: a few bytes for each affected exchange, and little for each log.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

mod keep;

use keep::{Keep, keeping_key, why};
use proofgate_keeping::{ErasureRequest, ErasureTarget, ShredRequest, plan_erasure, plan_shred};
use proofgate_ledger::commitment::commit;
use proofgate_ledger::record::{Admission, ConfigId};
use proofgate_ledger_testkit::{self as testkit, Worker, checkpoint_all, rotate, vkey};
use proofgate_wal::simulated::SimulatedDisk;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::Path;

struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed unchanged to the system allocator.
#[expect(unsafe_code, reason = "this global allocator counts allocations")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD.get().wrapping_add(layout.size());
        HELD.set(held);
        MOST.set(MOST.get().max(held));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD.set(HELD.get().saturating_sub(layout.size()));
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Returns the most bytes that are allocated at once.
fn held<T>(act: impl FnOnce() -> T) -> usize {
    HELD.set(0);
    MOST.set(0);
    drop(act());
    MOST.get()
}

/// Returns the memory that an erasure of a tenant needs.
fn erasing(disk: &SimulatedDisk, tenant: &str) -> usize {
    let (keep, key, keeping) = (Keep::of(disk), vkey(), keeping_key().verifying_key());
    let what = ErasureTarget::Tenant {
        name: tenant.to_owned(),
        until: Some(keep.now),
    };
    let request = ErasureRequest {
        ledger: Path::new("/"),
        key: &key,
        retention: &keep.retention,
        target: &what,
        policy: None,
        justification: &why("asked for on paper"),
        now: keep.now,
        started_at: None,
    };
    held(|| plan_erasure(disk, &keeping, &request).unwrap())
}

/// Returns the memory that a shredding needs.
fn shredding(disk: &SimulatedDisk) -> usize {
    let (keep, key, keeping) = (Keep::of(disk), vkey(), keeping_key().verifying_key());
    let request = ShredRequest {
        ledger: Path::new("/"),
        key: &key,
        retention: &keep.retention,
        tenant: "acme",
        requested_keys: None,
        existing_keys: &BTreeSet::new(),
        policy: None,
        justification: &why("the contract ended"),
        now: keep.now,
        started_at: None,
    };
    held(|| plan_shred(disk, &keeping, &request).unwrap())
}

#[test]
fn an_erasure_holds_a_few_bytes_of_each_exchange() {
    const LOGS: usize = 4;
    const EACH: usize = 1000;
    let (disk, mut worker) = testkit::new_worker();
    for _ in 0..LOGS {
        for number in 0..EACH {
            let id = format!("req-{number}");
            let admission = worker.admit(&id, 1).unwrap();
            worker.complete(&id, admission).unwrap();
            if number % 50 == 0 {
                checkpoint_all(&mut worker);
            }
        }
        worker = rotate(&disk, &mut worker);
    }
    let none = erasing(&disk, "globex");
    let all = erasing(&disk, "acme");
    let each = all.saturating_sub(none) / (LOGS * EACH);
    assert!(each <= 16, "{each} bytes of each exchange: {none}, {all}");
}

/// Admits an exchange of a tenant that stays open.
fn admit_for(worker: &mut Worker, tenant: &str) {
    worker
        .append(|seq, out| {
            Admission {
                seq,
                ts: 2,
                id: "req".into(),
                tenant: tenant.into(),
                tenant_seq: 1,
                key: "01234567".into(),
                model: "m".into(),
                provider: "openai".into(),
                upstream_model: "m".into(),
                endpoint: "chat.completions".into(),
                stream: false,
                coming: None,
                bytes: 5,
                request: commit(&[0; 32], "request", b"hello"),
                salt: None,
                shred_key: None,
                reserved: None,
                reserved_nanodollars: None,
                shared_plan: None,
                policy: None,
                dropped: Vec::new(),
                dropped_unnamed: 0,
                attribution: None,
                client_address: None,
                key_name: None,
                config: ConfigId([1; 8]),
            }
            .encode_into(out)
        })
        .unwrap();
}

#[test]
fn a_plan_keeps_nothing_of_the_tenants_of_each_log() {
    let (disk, mut worker) = testkit::new_worker();
    let mut most = Vec::new();
    for _ in 0..6 {
        for number in 0..100 {
            let tenant = format!("{number:0>60}");
            admit_for(&mut worker, &tenant);
            let admission = worker.writer.next_seq() - 1;
            worker.complete("req", admission).unwrap();
        }
        worker = rotate(&disk, &mut worker);
        most.push((erasing(&disk, "acme"), shredding(&disk)));
    }
    let (first, last) = (most[1], most[5]);
    let erasing = last.0.saturating_sub(first.0) / 4;
    let shredding = last.1.saturating_sub(first.1) / 4;
    assert!(
        erasing < 4096 && shredding < 4096,
        "{erasing}, {shredding} bytes of each log"
    );
}
