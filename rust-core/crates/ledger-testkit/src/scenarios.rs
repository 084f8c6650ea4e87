//! Disks with the logs of successive worker runs on a shard.

use crate::{DurabilityModel, Worker, key, small_log_options, start_options, ulid};
use proofgate_ledger::record::{ConfigId, Takeover};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{LogOptions, Storage, Ulid, WalError, succession};
use std::sync::Arc;

/// Starts an incarnation like a gateway. After a failure, `promised` holds the guarantees that were
/// given so far.
pub fn start(disk: &SimulatedDisk, promised: &mut DurabilityModel) -> Result<Worker, WalError> {
    start_with(disk, promised, small_log_options())
}

pub fn start_with(
    disk: &SimulatedDisk,
    promised: &mut DurabilityModel,
    options: LogOptions,
) -> Result<Worker, WalError> {
    let (storage, key): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), key());
    *promised = DurabilityModel::default();
    let begun = succession::start(&storage, &start_options(&key, options), None)?;
    let worker = Worker::from_log(&disk.snapshot(), begun.log);
    *promised = worker.durability_model.clone();
    Ok(worker)
}

/// Creates a disk with a worker that has just started.
pub fn new_worker() -> (SimulatedDisk, Worker) {
    let disk = SimulatedDisk::new();
    let worker = start(&disk, &mut DurabilityModel::default()).unwrap();
    (disk, worker)
}

/// Creates a disk with a worker that has served 40 requests. A checkpoint covers all of its 81
/// records.
pub fn worker_with_records() -> (SimulatedDisk, Worker) {
    let (disk, mut worker) = new_worker();
    for number in 0..40 {
        let id = format!("req-{number}");
        let admission = worker.admit(&id, 100 * (number % 100)).unwrap();
        worker.complete(&id, admission).unwrap();
        if number % 3 == 0 {
            worker.flush().unwrap();
            worker.step().unwrap();
        }
    }
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
    (disk, worker)
}

/// Creates four successive incarnations of a shard. The worker of the first was killed with an
/// exchange open, and no checkpoint of the first covers its last records. The second ends the open
/// exchange. The second and the third were sealed. The fourth still runs.
pub fn four_incarnations() -> (SimulatedDisk, Vec<Worker>) {
    let (disk, mut first) = worker_with_records();
    first.admit("orphan", 1).unwrap();
    first.flush().unwrap();
    disk.restart();
    let mut workers = vec![first];
    for name in ["second", "third", "fourth"] {
        let mut worker = start(&disk, &mut DurabilityModel::default()).unwrap();
        worker.run_exchange(name);
        if name != "fourth" {
            worker.seal().unwrap();
            disk.restart();
        }
        workers.push(worker);
    }
    (disk, workers)
}

/// Starts the log that will continue a worker's log, at this time.
pub fn start_successor_log(disk: &SimulatedDisk, former: &Worker, now: u64) -> Worker {
    let (storage, signing): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), key());
    let terms = succession::StartOptions {
        now,
        ..start_options(&signing, small_log_options())
    };
    let signed = former.follower.last_checkpoint().unwrap().clone();
    let made = succession::start_successor(&storage, &terms, ulid(former), &signed).unwrap();
    Worker::from_log(disk, made)
}

/// Continues a log in another log, like a worker that rotates its log.
pub fn rotate(disk: &SimulatedDisk, former: &mut Worker) -> Worker {
    rotate_at(disk, former, 1)
}

/// Same as [`rotate`], at this time.
pub fn rotate_at(disk: &SimulatedDisk, former: &mut Worker, now: u64) -> Worker {
    let mut next = start_successor_log(disk, former, now);
    former
        .seal_with_successor(Some(&ulid(&next).to_string()))
        .unwrap();
    former.follower.finish(&key()).unwrap();
    let left = former.follower.to_previous_log();
    let takeover = |seq, out: &mut Vec<u8>| {
        let takeover = Takeover {
            seq,
            ts: 1,
            incarnation: left.incarnation.to_string().into(),
            size: left.size,
            root: left.root,
            config: ConfigId([1; 8]),
        };
        takeover.encode_into(out)
    };
    next.append(takeover).unwrap();
    checkpoint_all(&mut next);
    next
}

/// Flushes and syncs all appended records, and signs a checkpoint over them.
pub fn checkpoint_all(worker: &mut Worker) {
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
}

/// Runs 30 exchanges, which advance the worker's clock.
fn later(worker: &mut Worker) {
    for number in 0..30 {
        worker.run_exchange(&format!("later-{number}"));
    }
}

/// Ends the exchange `across` of another log in a worker's log, at record 60 or later.
pub fn end_exchange_later(worker: &mut Worker, log: Ulid, admission: u64) {
    later(worker);
    worker.complete_from_log(Some(log), "across", admission).unwrap();
    checkpoint_all(worker);
}

/// Creates five incarnations of a shard, each of which continues the previous one. The exchange
/// `across` of the first log ends in the second log, at record 60 or later. In the first log, only
/// the admission belongs to this exchange.
pub fn five_incarnations() -> (SimulatedDisk, Vec<Worker>) {
    let (disk, mut first) = new_worker();
    first.run_exchange("first");
    let admission = first.admit("across", 1).unwrap();
    let mut second = rotate(&disk, &mut first);
    end_exchange_later(&mut second, ulid(&first), admission);
    let mut workers = vec![first, second];
    for name in ["third", "fourth", "fifth"] {
        let mut next = rotate(&disk, workers.last_mut().unwrap());
        next.run_exchange(name);
        workers.push(next);
    }
    (disk, workers)
}
