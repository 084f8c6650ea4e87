//! A worker in miniature: the data-plane thread's and the ledger thread's calls in one thread, on a simulated disk,
//! with a model of what was promised.
#![allow(dead_code, reason = "each test binary uses its part")]

use proofgate_evidence::configurations;
use proofgate_evidence::frame::{FRAME_HEADER, SEGMENT_HEADER, frame_bytes};
use proofgate_evidence::log_reader::{Found, LogReader};
use proofgate_ledger::record::{
    Admission, Coming, Completion, ConfigDigests, ConfigId, Outcome, Received, Seal,
};
use proofgate_ledger::{Checkpoint, Hash, Mmr, ShredKey, SigningKey, VerifyingKey, leaf_hash};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{
    FileStorage, Follower, Incarnation, Left, Options, Recovered, Shard, Storage, Ulid, WalError, Writer,
    recovery, succession,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const SHARD: &str = "/3";
pub const LEDGER: &str = "ledger.example/demo";
/// The configuration of its workers, and its SHA-256.
pub const CONFIGURATION: &[u8] = b"{}";
pub const CONFIGURATION_DIGEST: Hash = [
    0x44, 0x13, 0x6f, 0xa3, 0x55, 0xb3, 0x67, 0x8a, 0x11, 0x46, 0xad, 0x16, 0xf7, 0xe8, 0x64, 0x9e, 0x94,
    0xfb, 0x4f, 0xc2, 0x1f, 0xe7, 0x7e, 0x83, 0x10, 0xc0, 0x60, 0xf6, 0x1c, 0xaa, 0xff, 0x8a,
];

/// Puts what is to stand in the place of the archived configuration of its workers.
pub fn archive(disk: &SimulatedDisk, content: &[u8]) {
    let path = configurations::path_of(Path::new("/"), &CONFIGURATION_DIGEST);
    let _ = disk.create_dir(path.parent().unwrap());
    let _ = disk.remove(&path);
    let file = disk.create(&path).unwrap();
    assert_eq!(file.write_at(content, 0).unwrap(), content.len());
}

/// What a successor finds on the shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspected(pub Recovered);

impl std::ops::Deref for Inspected {
    type Target = Left;

    fn deref(&self) -> &Left {
        &self.0.newest
    }
}

pub fn inspect(disk: &dyn Storage) -> Result<Option<Inspected>, WalError> {
    let key = key();
    let found = recovery::inspect(disk, &shard(&key), None, None)?;
    Ok(found.map(Inspected))
}

pub fn shard(key: &SigningKey) -> Shard<'_> {
    Shard {
        dir: Path::new(SHARD),
        ledger: LEDGER,
        number: 3,
        key,
        former: None,
    }
}

/// Begins a log in a directory of a real file system.
pub fn begin_in(dir: &Path, options: Options) -> Incarnation {
    let (storage, key): (Arc<dyn Storage>, _) = (Arc::new(FileStorage), key());
    let terms = succession::Terms {
        shard: Shard { dir, ..shard(&key) },
        ..terms(&key, options)
    };
    succession::begin(&storage, &terms, None).unwrap().log
}

pub fn terms(key: &SigningKey, options: Options) -> succession::Terms<'_> {
    succession::Terms {
        shard: shard(key),
        until: None,
        successions: &[],
        options,
        config: ConfigDigests::of(CONFIGURATION_DIGEST),
        version: "0",
        now: 1,
    }
}

/// All records of a log as they are stored.
pub fn records(disk: &dyn Storage, dir: &Path, incarnation: Ulid) -> Vec<Vec<u8>> {
    let mut log = LogReader::open(disk, dir, incarnation).unwrap();
    let mut records = Vec::new();
    while let Found::Record(stored) = log.next().unwrap() {
        records.push(log.payload(&stored).to_vec());
    }
    records
}

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
    pub fn check(&self, recovered: Option<&Inspected>) {
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
    /// The time of its newest record, in unix microseconds.
    pub clock: u64,
    /// How many admissions of its one tenant the log holds.
    pub admitted: u64,
    /// What the salts of its next admissions need.
    pub shred_key: Option<ShredKey>,
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
    let (storage, key): (Arc<dyn Storage>, _) = (Arc::new(disk.clone()), key());
    *promised = Promised::default();
    let begun = succession::begin(&storage, &terms(&key, options), None)?;
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

/// A record of this many bytes `x`, to append.
pub fn raw(bytes: usize) -> impl FnOnce(u64, &mut Vec<u8>) -> Result<(), proofgate_ledger::LedgerError> {
    move |_, out| {
        out.resize(out.len() + bytes, b'x');
        Ok(())
    }
}

impl Worker {
    /// Goes on with a log that has just begun, and whose beginning is signed.
    pub fn take(disk: &dyn Storage, log: Incarnation) -> Self {
        let beginning = log.follower.followed();
        let signed = log.follower.signed().unwrap().clone();
        Self {
            promised: Promised {
                incarnation: Some(log.incarnation),
                appended: records(disk, &log.dir, log.incarnation),
                dir: log.dir,
                written: beginning,
                durable: beginning,
                notes: vec![signed.sign(&key()).unwrap()],
            },
            writer: log.writer,
            follower: log.follower,
            clock: 1,
            admitted: 0,
            shred_key: None,
        }
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
        self.admit_as(id, size, None)
    }

    /// Appends an admission of the body `hello`, or of one that begins so and is still coming.
    pub fn admit_as(&mut self, id: &str, size: usize, coming: Option<Coming>) -> Result<u64, WalError> {
        let stored = self.writer.salt(self.writer.next_seq())?;
        let salt = self.shred_key.as_ref().map_or(stored, |key| key.salt(&stored));
        let shred_key = self.shred_key.as_ref().map(ShredKey::id);
        let ts = self.tick();
        let tenant_seq = self.admitted + 1;
        let appended = self.append(|seq, out| {
            Admission {
                seq,
                ts,
                id: id.into(),
                tenant: "acme".into(),
                tenant_seq,
                key: "01234567".into(),
                model: "m".repeat(size).into(),
                provider: "openai".into(),
                upstream_model: "m".into(),
                endpoint: "chat.completions".into(),
                stream: false,
                coming,
                bytes: 5,
                request: proofgate_ledger::commitment::commit(&salt, "request", b"hello"),
                salt: Some(proofgate_ledger::commitment::salt_id(&salt)),
                shred_key,
                reserved: None,
                reserved_nanodollars: None,
                shared_plan: None,
                policy: None,
                dropped: Vec::new(),
                dropped_unnamed: 0,
                attribution: None,
                config: ConfigId([1; 8]),
            }
            .encode_into(out)
        });
        self.admitted += u64::from(appended.is_ok());
        appended
    }

    pub fn complete(&mut self, id: &str, admission: u64) -> Result<u64, WalError> {
        self.complete_in(None, id, admission)
    }

    /// Ends an exchange that another log admitted.
    pub fn complete_in(&mut self, log: Option<Ulid>, id: &str, admission: u64) -> Result<u64, WalError> {
        self.complete_as(log, id, admission, None)
    }

    pub fn complete_as(
        &mut self,
        log: Option<Ulid>,
        id: &str,
        admission: u64,
        received: Option<Received>,
    ) -> Result<u64, WalError> {
        let log = log.map(|log| log.to_string());
        let ts = self.tick();
        self.append(|seq, out| {
            Completion {
                seq,
                ts,
                id: id.into(),
                admission,
                incarnation: log.as_deref().map(Into::into),
                status: 200,
                upstream_status: Some(200),
                attempts: 1,
                outcome: Outcome::Complete,
                received,
                bytes: 7,
                response: [2; 32],
                payloads: None,
                usage: None,
                charged: None,
                cost_nanodollars: None,
                duration_us: 1,
                policy: None,
                config: ConfigId([1; 8]),
            }
            .encode_into(out)
        })
    }

    /// One exchange, durable and under a checkpoint.
    pub fn complete_one(&mut self, id: &str) {
        let admission = self.admit(id, 1).unwrap();
        self.complete(id, admission).unwrap();
        self.flush().unwrap();
        self.step().unwrap();
        self.sync().unwrap();
        self.checkpoint().unwrap();
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
        self.seal_for(None)?;
        let note = self.follower.finish(&key())?;
        self.promised.durable = self.follower.watermark().durable();
        self.promised.notes.push(note);
        Ok(())
    }

    /// Writes the seal; nothing follows it up.
    pub fn seal_for(&mut self, successor: Option<&str>) -> Result<(), WalError> {
        let ts = self.tick();
        let mut copy = Vec::new();
        self.writer.seal(|seq, out| {
            let start = out.len();
            Seal {
                seq,
                ts,
                reason: "drained".into(),
                records: seq,
                successor: successor.map(Into::into),
                config: ConfigId([1; 8]),
            }
            .encode_into(out)?;
            copy = out[start..].to_vec();
            Ok(())
        })?;
        self.promised.appended.push(copy);
        self.flush()
    }
}

/// Where the frames of these records end in a first segment.
pub fn end_of(records: &[Vec<u8>]) -> usize {
    let frames = records.iter().map(|record| frame_bytes(record.len()) as usize);
    SEGMENT_HEADER + frames.sum::<usize>()
}

/// Changes text of the last record of a first segment and makes its checksums right, as anybody can.
pub fn reframe(segment: &mut [u8], incarnation: Ulid, old: &[u8], new: &[u8]) {
    let at = segment
        .windows(old.len())
        .rposition(|bytes| bytes == old)
        .unwrap();
    segment[at..at + new.len()].copy_from_slice(new);
    let mut start = SEGMENT_HEADER;
    loop {
        let len = u32::from_le_bytes(segment[start..start + 4].try_into().unwrap()) as usize;
        let end = start + frame_bytes(len) as usize;
        if end > at {
            let seq = &segment[start + 8..start + 16];
            let mut bound = incarnation.to_bytes().to_vec();
            bound.extend_from_slice(&0u64.to_le_bytes());
            bound.extend_from_slice(seq);
            bound.extend_from_slice(&segment[start + FRAME_HEADER..end - 8]);
            let crc = crc32c::crc32c(&bound).to_le_bytes();
            return segment[end - 8..end - 4].copy_from_slice(&crc);
        }
        start = end;
    }
}
