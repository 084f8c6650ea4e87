//! A minimal worker on a simulated disk. Its tenant stores payloads.
#![allow(dead_code, reason = "each test binary uses only some of these helpers")]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proofgate_evidence::{ShredKeys, Ulid};
use proofgate_ledger::commitment::{commit, salt_id};
use proofgate_ledger::record::{
    Admission, Completion, ConfigDigests, ConfigId, Outcome, PayloadOutcome, Payloads,
};
use proofgate_ledger::{ShredKey, SigningKey, VerifyingKey};
use proofgate_payloads::{
    ExchangePayloads, Payload, PayloadError, PayloadField, PayloadKey, PayloadWriter, StoredPayloads,
};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{Follower, LogOptions, Shard, Storage, UnsyncedFiles, WalError, Writer, succession};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub const LEDGER: &str = "ledger.example/demo";
pub const REQUEST: &[u8] = b"the question that was asked";
pub const RESPONSE: &[u8] = b"the answer that was given";

pub fn key() -> SigningKey {
    SigningKey::generate(LEDGER, [7; 32]).unwrap()
}

pub fn vkey() -> VerifyingKey {
    key().verifying_key()
}

pub fn shred_key() -> ShredKey {
    ShredKey::new([9; 32])
}

/// Returns the shred keys of a reader whose directory holds these keys of the tenant.
pub fn keys_of(keys: &[[u8; 32]]) -> ShredKeys {
    let disk = SimulatedDisk::new();
    let lines = keys.iter().map(|key| STANDARD.encode(key) + "\n");
    disk.create_dir(Path::new("/keys")).unwrap();
    let file = disk.create(Path::new("/keys/acme")).unwrap();
    file.write_at(lines.collect::<String>().as_bytes(), 0).unwrap();
    ShredKeys::read(&disk, Path::new("/keys")).unwrap()
}

pub fn keys() -> ShredKeys {
    keys_of(&[[9; 32]])
}

pub struct Worker {
    pub disk: SimulatedDisk,
    pub dir: PathBuf,
    pub incarnation: Ulid,
    pub writer: Writer,
    pub follower: Follower,
    pub payloads: PayloadWriter,
}

/// State of an exchange while it is open.
#[derive(Clone)]
pub struct Open {
    pub seq: u64,
    salt: [u8; 32],
}

impl Worker {
    pub fn begin(disk: &SimulatedDisk) -> Result<Self, WalError> {
        let storage: Arc<dyn Storage> = Arc::new(disk.clone());
        let key = key();
        let terms = succession::StartOptions {
            shard: Shard {
                dir: Path::new("/3"),
                ledger: LEDGER,
                number: 3,
                key: &key,
                previous_key: None,
            },
            key_valid_until: None,
            successions: &[],
            options: LogOptions {
                segment_bytes: 64 << 10,
                segments_ahead: 1,
            },
            config: ConfigDigests::from_config([1; 32]),
            version: "0",
            now: 1,
        };
        let mut log = succession::start(&storage, &terms, None)?.log;
        let unsynced = Arc::new(UnsyncedFiles::default());
        log.follower.set_unsynced_files(Arc::clone(&unsynced));
        Ok(Self {
            disk: disk.clone(),
            dir: log.dir,
            incarnation: log.incarnation,
            writer: log.writer,
            follower: log.follower,
            payloads: PayloadWriter::new(storage, Path::new("/3"), (LEDGER, 3), unsynced),
        })
    }

    pub fn admit(&mut self, request: &[u8]) -> Result<Open, WalError> {
        let half = self.writer.salt(self.writer.next_seq())?;
        let salt = shred_key().derive_salt(&half);
        let seq = self.writer.append(|seq, out| {
            Admission {
                seq,
                ts: 2,
                id: format!("request-{seq}").into(),
                tenant: "acme".into(),
                tenant_seq: seq,
                key: "01234567".into(),
                model: "m".into(),
                provider: "openai".into(),
                upstream_model: "m".into(),
                endpoint: "chat.completions".into(),
                stream: false,
                coming: None,
                bytes: request.len() as u64,
                request: commit(&salt, "request", request),
                salt: Some(salt_id(&salt)),
                shred_key: Some(shred_key().id()),
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
        })?;
        Ok(Open { seq, salt })
    }

    pub fn store(&mut self, open: &Open, field: PayloadField, body: &[u8]) -> Result<(), PayloadError> {
        self.payloads.store(Payload {
            incarnation: self.incarnation,
            seq: open.seq,
            field,
            key: PayloadKey::new(&shred_key(), &open.salt),
            body: body.to_vec(),
        })
    }

    pub fn complete(
        &mut self,
        open: &Open,
        response: &[u8],
        kept: (PayloadOutcome, PayloadOutcome),
    ) -> Result<u64, WalError> {
        let admission = open.seq;
        self.writer.append(|seq, out| {
            Completion {
                seq,
                ts: 3,
                id: format!("request-{admission}").into(),
                admission,
                incarnation: None,
                status: 200,
                upstream_status: Some(200),
                attempts: 1,
                outcome: Outcome::Complete,
                received: None,
                bytes: response.len() as u64,
                response: commit(&open.salt, "response", response),
                payloads: Some(Payloads {
                    request: kept.0,
                    response: kept.1,
                }),
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

    /// Runs one exchange with both bodies stored. Returns the number of its admission.
    pub fn exchange(&mut self, request: &[u8], response: &[u8]) -> u64 {
        let open = self.admit(request).unwrap();
        self.store(&open, PayloadField::Request, request).unwrap();
        self.store(&open, PayloadField::Response, response).unwrap();
        self.complete(&open, response, (PayloadOutcome::Stored, PayloadOutcome::Stored))
            .unwrap();
        open.seq
    }

    pub fn sign(&mut self) -> Result<String, WalError> {
        self.writer.flush()?;
        while self.follower.step()?.has_more {}
        self.follower.sync()?;
        self.follower.sign_checkpoint(&key())
    }
}

/// Creates a signed log with one exchange. Also returns the number of the admission.
pub fn one_exchange() -> (Worker, u64) {
    let mut worker = Worker::begin(&SimulatedDisk::new()).unwrap();
    let seq = worker.exchange(REQUEST, RESPONSE);
    worker.sign().unwrap();
    (worker, seq)
}

/// Reads all exchanges of a disk. Also returns the codes of the errors.
pub fn read(disk: &SimulatedDisk, keys: ShredKeys) -> (Vec<ExchangePayloads>, Vec<&'static str>) {
    let (mut exchanges, mut errors) = (Vec::new(), Vec::new());
    let all = StoredPayloads::new(disk, Path::new("/3"), &vkey(), keys).unwrap();
    for one in all {
        match one {
            Ok(exchange) => exchanges.push(exchange),
            Err(error) => errors.push(error.code()),
        }
    }
    (exchanges, errors)
}

/// Returns the body, or the error code if the body is not available.
pub fn told(body: &proofgate_payloads::BodyResult) -> Result<&[u8], &'static str> {
    body.as_deref().map_err(PayloadError::code)
}
