//! Measures what state files cost the slow thread: writing one and reading one, with few and with very many keys.
//!
//! `cargo run --release -p proofgate-limit-store --example state_files -- [directory]`
#![expect(
    clippy::unwrap_used,
    reason = "a measuring program may stop at the first failure"
)]

use proofgate_limit_store::{LimitStore, file_name};
use proofgate_limits::{Changes, CredentialId, Limiter, Limits, Quotas, TenantLimits};
use proofgate_wal::{FileStorage, Ulid};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

const SECOND: u64 = 1_000_000;
const START: u64 = 1_700_000_000 * SECOND;

fn store(gateway: &Path, shard: u32) -> LimitStore {
    let ulid = Ulid::from_parts(START / 1000, u128::from(shard));
    std::fs::create_dir_all(gateway.join(shard.to_string()).join(ulid.to_string())).unwrap();
    let opened = LimitStore::open(Arc::new(FileStorage), gateway, shard, ulid, false, START);
    opened.unwrap().store
}

/// Returns the result and the duration of a step in milliseconds.
fn timed<T>(step: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let done = step();
    (done, start.elapsed().as_secs_f64() * 1000.0)
}

fn main() {
    let root = std::env::args()
        .nth(1)
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let root = root.join(format!("proofgate-limit-store-{}", std::process::id()));
    println!("  keys  busy seconds of each  file, KiB  write, ms  first read, ms  look, ms");
    for (keys, seconds) in [(100u32, 60u64), (1000, 60), (100_000, 1), (100_000, 10)] {
        let gateway = root.join(format!("{keys}-{seconds}"));
        let (mut writer, mut reader) = (store(&gateway, 0), store(&gateway, 1));
        let mut limiter = Limiter::new();
        let limits = Limits {
            tokens_per_day: NonZeroU64::new(1 << 50),
            ..Limits::default()
        };
        let acme = limiter.set_limits(&[TenantLimits {
            name: "acme".into(),
            quotas: Arc::new(Quotas::new(&limits, &limits)),
        }])[0];
        let mut now = START;
        for _ in 0..seconds {
            now += SECOND;
            for key in 0..keys {
                let key = CredentialId::ApiKey(key.wrapping_mul(2_654_435_761).to_be_bytes());
                let mut grant = limiter.admit(acme, key, 2000, now).unwrap();
                limiter.mark_recorded(&mut grant);
                limiter.settle(grant, 1500, now);
            }
        }
        let mut changes = Changes::default();
        limiter.take_changes(1, now, &mut changes);
        let ((), write) = timed(|| {
            writer.apply(&changes);
            writer.write(now).unwrap();
        });
        let (_, first) = timed(|| reader.poll(now));
        let (_, look) = timed(|| reader.poll(now));
        assert_eq!(reader.remote_changes(usize::MAX, now).len(), keys as usize + 1);
        let ulid = Ulid::from_parts(START / 1000, 0);
        let bytes = std::fs::metadata(gateway.join("0").join(file_name(ulid)))
            .unwrap()
            .len();
        println!(
            "{keys:>6}  {seconds:>20}  {:>9}  {write:>9.2}  {first:>14.2}  {look:>8.3}",
            bytes / 1024
        );
    }
    std::fs::remove_dir_all(&root).unwrap();
}
