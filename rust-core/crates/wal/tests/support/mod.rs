//! A worker in miniature: the data-plane thread's and the ledger thread's calls in one thread, on a simulated disk,
//! with a model of what was promised.
#![allow(dead_code, reason = "each test binary uses its part")]

use proofgate_ledger::record::{Aborted, Admission, Completion, ConfigId, Open, Outcome, Predecessor, Seal};
use proofgate_ledger::{Checkpoint, Hash, Mmr, SigningKey, VerifyingKey, leaf_hash};
use proofgate_wal::recovery::{Recovered, inspect};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{Follower, Incarnation, Options, Ulid, WalError, Writer, fresh_ulid, give_back};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const SHARD: &str = "/3";

pub fn key() -> SigningKey {
    SigningKey::generate("ledger.example/demo", [7; 32]).unwrap()
}

pub fn vkey() -> VerifyingKey {
    key().verifying_key()
}

pub fn small() -> Options {
    Options {
        segment_bytes: 64 << 10,
        segments_ahead: 1,
    }
}

pub fn root_of(records: &[Vec<u8>]) -> Hash {
    let mut mmr = Mmr::new();
    for record in records {
        mmr.push(leaf_hash(record), &mut |_| {});
    }
    mmr.root()
}

/// What a worker was promised, which must hold whatever happens.
#[derive(Clone, Debug, Default)]
pub struct Promised {
    pub incarnation: Option<Ulid>,
    pub dir: PathBuf,
    /// Every record ever put into a batch, in order.
    pub appended: Vec<Vec<u8>>,
    /// How many of them a flush has acknowledged.
    pub written: u64,
    /// How many of them a sync has acknowledged.
    pub durable: u64,
    /// Every note that was signed and returned.
    pub notes: Vec<String>,
}

impl Promised {
    /// Checks a recovery after the power was lost: durable records and checkpointed ones are there, nothing is invented.
    pub fn check(&self, recovered: Option<&Recovered>) {
        let Some(recovered) = recovered.filter(|found| Some(found.incarnation) == self.incarnation) else {
            assert_eq!(self.durable, 0, "durable records are gone");
            assert!(self.signed() == 0, "a signed log is gone");
            return;
        };
        let size = recovered.size as usize;
        assert!(
            recovered.size >= self.durable,
            "I1: {size} of {} durable records",
            self.durable
        );
        assert!(size <= self.appended.len(), "records are invented");
        assert_eq!(
            recovered.root,
            root_of(&self.appended[..size]),
            "I1: other records"
        );
        assert!(
            recovered.size >= self.signed(),
            "I2: behind a published checkpoint"
        );
    }

    pub fn signed(&self) -> u64 {
        let sizes = self
            .notes
            .iter()
            .map(|note| Checkpoint::verify(note, &vkey()).unwrap());
        sizes
            .map(|checkpoint| {
                let covered = &self.appended[..checkpoint.size as usize];
                assert_eq!(
                    checkpoint.root,
                    root_of(covered),
                    "I4: a root of something else was signed"
                );
                checkpoint.size
            })
            .max()
            .unwrap_or(0)
    }
}

pub struct Worker {
    pub writer: Writer,
    pub follower: Follower,
    pub promised: Promised,
    clock: u64,
}

/// Starts an incarnation the way a gateway does; on failure the promises made so far are in `promised`.
pub fn start(disk: &SimulatedDisk, promised: &mut Promised) -> Result<Worker, WalError> {
    start_with(disk, promised, small())
}

pub fn start_with(
    disk: &SimulatedDisk,
    promised: &mut Promised,
    options: Options,
) -> Result<Worker, WalError> {
    let found = inspect(disk, Path::new(SHARD), &vkey())?;
    let predecessor = found.as_ref().map(|found| found.incarnation);
    give_back(disk, Path::new(SHARD), predecessor);
    let ulid = fresh_ulid(predecessor);
    *promised = Promised::default();
    let storage = Arc::new(disk.clone());
    let Incarnation {
        dir,
        writer,
        follower,
        ..
    } = Incarnation::create(storage, Path::new(SHARD), ulid, "ledger.example/demo", 3, options)?;
    *promised = Promised {
        incarnation: Some(ulid),
        dir,
        ..Promised::default()
    };
    let mut worker = Worker::adopt(writer, follower, promised.clone());
    let started = worker.begin(ulid, found.as_ref());
    *promised = worker.promised.clone();
    started.map(|()| worker)
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

/// A record of this many bytes `x`, to append.
pub fn raw(bytes: usize) -> impl FnOnce(u64, &mut Vec<u8>) -> Result<(), proofgate_ledger::LedgerError> {
    move |_, out| {
        out.resize(out.len() + bytes, b'x');
        Ok(())
    }
}

impl Worker {
    pub fn adopt(writer: Writer, follower: Follower, promised: Promised) -> Self {
        Self {
            writer,
            follower,
            promised,
            clock: 0,
        }
    }

    /// Writes `open` and the `aborted` records.
    pub fn begin(&mut self, ulid: Ulid, found: Option<&Recovered>) -> Result<(), WalError> {
        let predecessor = found.map(|found| Predecessor {
            incarnation: found.incarnation.to_string().into(),
            size: found.size,
            root: found.root,
            sealed: found.sealed,
        });
        let ts = self.tick();
        self.append(|seq, out| {
            Open {
                seq,
                ts,
                ledger: "ledger.example/demo".into(),
                shard: 3,
                incarnation: ulid.to_string().into(),
                version: "0".into(),
                config: [1; 32],
                predecessor,
            }
            .encode_into(out)
        })?;
        for orphan in found.map_or(&[][..], |found| &found.orphans) {
            let ts = self.tick();
            self.append(|seq, out| {
                Aborted {
                    seq,
                    ts,
                    id: orphan.id.as_str().into(),
                    incarnation: orphan.incarnation.to_string().into(),
                    admission: orphan.admission,
                    config: ConfigId([1; 8]),
                }
                .encode_into(out)
            })?;
        }
        self.flush()
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    pub fn append(
        &mut self,
        encode: impl FnOnce(u64, &mut Vec<u8>) -> Result<(), proofgate_ledger::LedgerError>,
    ) -> Result<u64, WalError> {
        let mut copy = Vec::new();
        let seq = self.writer.append(|seq, out| {
            let start = out.len();
            encode(seq, out)?;
            copy = out[start..].to_vec();
            Ok(())
        })?;
        assert_eq!(seq as usize, self.promised.appended.len());
        self.promised.appended.push(copy);
        Ok(seq)
    }

    /// Appends an admission whose record is about `size` bytes.
    pub fn admit(&mut self, id: &str, size: usize) -> Result<u64, WalError> {
        let salt = self.writer.salt(self.writer.next_seq())?;
        let ts = self.tick();
        self.append(|seq, out| {
            Admission {
                seq,
                ts,
                id: id.into(),
                tenant: "acme".into(),
                key: "01234567".into(),
                model: "m".repeat(size).into(),
                provider: "openai".into(),
                upstream_model: "m".into(),
                endpoint: "chat.completions".into(),
                stream: false,
                bytes: 5,
                request: proofgate_ledger::commitment::commit(&salt, "request", b"hello"),
                reserved: None,
                policy: None,
                config: ConfigId([1; 8]),
            }
            .encode_into(out)
        })
    }

    pub fn complete(&mut self, id: &str, admission: u64) -> Result<u64, WalError> {
        let ts = self.tick();
        self.append(|seq, out| {
            Completion {
                seq,
                ts,
                id: id.into(),
                admission,
                status: 200,
                upstream_status: Some(200),
                outcome: Outcome::Complete,
                bytes: 7,
                response: [2; 32],
                usage: None,
                charged: None,
                duration_us: 1,
                policy: None,
                config: ConfigId([1; 8]),
            }
            .encode_into(out)
        })
    }

    pub fn flush(&mut self) -> Result<(), WalError> {
        self.writer.flush()?;
        self.promised.written = self.promised.appended.len() as u64;
        assert_eq!(self.writer.watermark().written(), self.promised.written);
        Ok(())
    }

    pub fn step(&mut self) -> Result<(), WalError> {
        self.follower.prepare();
        while self.follower.step()?.behind {}
        Ok(())
    }

    pub fn sync(&mut self) -> Result<(), WalError> {
        self.follower.sync()?;
        self.promised.durable = self.follower.watermark().durable();
        Ok(())
    }

    pub fn checkpoint(&mut self) -> Result<(), WalError> {
        let note = self.follower.checkpoint(&key())?;
        self.promised.notes.push(note);
        Ok(())
    }

    pub fn seal(&mut self) -> Result<(), WalError> {
        let ts = self.tick();
        let mut copy = Vec::new();
        self.writer.seal(|seq, out| {
            let start = out.len();
            Seal {
                seq,
                ts,
                reason: "drained".into(),
                records: seq,
                config: ConfigId([1; 8]),
            }
            .encode_into(out)?;
            copy = out[start..].to_vec();
            Ok(())
        })?;
        self.promised.appended.push(copy);
        self.flush()?;
        let note = self.follower.finish(&key())?;
        self.promised.durable = self.follower.watermark().durable();
        self.promised.notes.push(note);
        Ok(())
    }
}
