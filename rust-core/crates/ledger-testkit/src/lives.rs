//! Disks with lives of a shard.

use crate::{Promised, Worker, key, small, terms, ulid};
use proofgate_ledger::record::{ConfigId, Takeover};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{LogOptions, Storage, Ulid, WalError, succession};
use std::sync::Arc;

/// Starts an incarnation the way a gateway does; on failure the promises made so far are in `promised`.
pub fn start(disk: &SimulatedDisk, promised: &mut Promised) -> Result<Worker, WalError> {
    start_with(disk, promised, small())
}

pub fn start_with(
    disk: &SimulatedDisk,
    promised: &mut Promised,
    options: LogOptions,
) -> Result<Worker, WalError> {
    let (storage, key): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), key());
    *promised = Promised::default();
    let begun = succession::start(&storage, &terms(&key, options), None)?;
    let worker = Worker::take(&disk.snapshot(), begun.log);
    *promised = worker.promised.clone();
    Ok(worker)
}

/// A disk with a worker that has just started.
pub fn fresh() -> (SimulatedDisk, Worker) {
    let disk = SimulatedDisk::new();
    let worker = start(&disk, &mut Promised::default()).unwrap();
    (disk, worker)
}

/// A disk with a worker that has served 40 requests, all 81 records of which are under a checkpoint.
pub fn filled() -> (SimulatedDisk, Worker) {
    let (disk, mut worker) = fresh();
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

/// Four lives of a shard. The first was killed with an exchange open and its last records under no checkpoint of its own,
/// so the second ends that; the second and the third were sealed; the fourth goes on.
pub fn four_lives() -> (SimulatedDisk, Vec<Worker>) {
    let (disk, mut first) = filled();
    first.admit("orphan", 1).unwrap();
    first.flush().unwrap();
    disk.restart();
    let mut workers = vec![first];
    for name in ["second", "third", "fourth"] {
        let mut worker = start(&disk, &mut Promised::default()).unwrap();
        worker.complete_one(name);
        if name != "fourth" {
            worker.seal().unwrap();
            disk.restart();
        }
        workers.push(worker);
    }
    (disk, workers)
}

/// Begins a log beside a worker's, at this time.
pub fn beside(disk: &SimulatedDisk, former: &Worker, now: u64) -> Worker {
    let (storage, signing): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), key());
    let terms = succession::StartOptions {
        now,
        ..terms(&signing, small())
    };
    let signed = former.follower.last_checkpoint().unwrap().clone();
    let made = succession::start_successor(&storage, &terms, ulid(former), &signed).unwrap();
    Worker::take(disk, made)
}

/// Goes on in another log, as a worker does that rotates.
pub fn rotate(disk: &SimulatedDisk, former: &mut Worker) -> Worker {
    rotate_at(disk, former, 1)
}

/// The same, at this time.
pub fn rotate_at(disk: &SimulatedDisk, former: &mut Worker, now: u64) -> Worker {
    let mut next = beside(disk, former, now);
    former.seal_for(Some(&ulid(&next).to_string())).unwrap();
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
    settle(&mut next);
    next
}

/// Puts what was appended under a checkpoint.
pub fn settle(worker: &mut Worker) {
    worker.flush().unwrap();
    worker.step().unwrap();
    worker.sync().unwrap();
    worker.checkpoint().unwrap();
}

/// Lets the worker's clock pass 30 exchanges.
fn later(worker: &mut Worker) {
    for number in 0..30 {
        worker.complete_one(&format!("later-{number}"));
    }
}

/// Ends the exchange `across` of another log in a worker's, at 60 or later.
pub fn end_later(worker: &mut Worker, log: Ulid, admission: u64) {
    later(worker);
    worker.complete_in(Some(log), "across", admission).unwrap();
    settle(worker);
}

/// Five lives of a shard, each of which goes on in the next. An exchange of the first, `across`, ends in the second, at 60 or
/// later, which no other record of the first is of.
pub fn across() -> (SimulatedDisk, Vec<Worker>) {
    let (disk, mut first) = fresh();
    first.complete_one("first");
    let admission = first.admit("across", 1).unwrap();
    let mut second = rotate(&disk, &mut first);
    end_later(&mut second, ulid(&first), admission);
    let mut workers = vec![first, second];
    for name in ["third", "fourth", "fifth"] {
        let mut next = rotate(&disk, workers.last_mut().unwrap());
        next.complete_one(name);
        workers.push(next);
    }
    (disk, workers)
}
