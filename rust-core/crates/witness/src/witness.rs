//! The state of each log, and its changes.

use crate::{CosignError, ListedLog, WitnessError};
use base64::{Engine, engine::general_purpose::STANDARD};
use proofgate_ledger::{
    AddCheckpoint, Checkpoint, CosigningKey, Hash, LedgerError, Mmr, SignedCheckpoint, VerifyingKey,
    verify_consistency,
};
use proofgate_state::StateStorage;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Identity of the state's owner, and its logs; written last when a log is added.
const IDENTITY_FILE: &str = "witness";
const LOGS: &str = "logs";
const VERSION: u32 = 1;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Identity {
    v: u32,
    /// The witness's verifying key.
    witness: String,
    /// Origins of all logs that it has ever known.
    logs: BTreeSet<String>,
}

/// The state file of a log.
#[derive(Serialize, Deserialize)]
struct StoredLog {
    v: u32,
    origin: String,
    size: u64,
    /// The root of the last cosigned checkpoint, in base64.
    root: String,
    /// The log's note with this witness's cosignature; empty when no checkpoint was cosigned.
    note: String,
}

/// The checkpoint that was cosigned last.
struct LastCosigned {
    size: u64,
    root: Hash,
    note: String,
    /// Whether the disk may have another state, because a write failed or this state was only read.
    unsure: bool,
}

struct Log {
    key: VerifyingKey,
    file: String,
    last: Mutex<LastCosigned>,
}

/// The newest cosigned checkpoint of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CosignedSize {
    /// Origin of the log.
    pub origin: String,
    /// Number of entries under the newest cosigned checkpoint.
    pub size: u64,
}

/// A running witness.
pub struct Witness {
    state: Arc<dyn StateStorage>,
    key: CosigningKey,
    logs: BTreeMap<String, Log>,
}

impl Witness {
    /// Creates a witness with an empty state.
    ///
    /// # Errors
    /// [`WitnessError::StateExists`], [`WitnessError::State`].
    pub fn create(
        state: Arc<dyn StateStorage>,
        key: CosigningKey,
        logs: Vec<ListedLog>,
    ) -> Result<Self, WitnessError> {
        if read(&*state, IDENTITY_FILE)?.is_some() {
            return Err(WitnessError::StateExists);
        }
        let identity = Identity {
            v: VERSION,
            witness: key.verifying_key().to_text(),
            logs: BTreeSet::new(),
        };
        write(&*state, IDENTITY_FILE, &identity)?;
        Self::open(state, key, logs)
    }

    /// Opens an existing state. Logs that are new in the list are added to the state; logs that are no longer in the
    /// list stay in it.
    ///
    /// # Errors
    /// [`WitnessError::NoState`], [`WitnessError::StateCorrupt`], [`WitnessError::State`].
    pub fn open(
        state: Arc<dyn StateStorage>,
        key: CosigningKey,
        listed: Vec<ListedLog>,
    ) -> Result<Self, WitnessError> {
        let bytes = read(&*state, IDENTITY_FILE)?.ok_or(WitnessError::NoState)?;
        let mut identity: Identity = decode(IDENTITY_FILE, &bytes)?;
        let own = key.verifying_key().to_text();
        if identity.witness != own {
            let reason = format!("it belongs to {}, but the key is {own}", identity.witness);
            return Err(WitnessError::corrupt(IDENTITY_FILE, reason));
        }
        let known = identity.logs.len();
        let mut logs = BTreeMap::new();
        for ListedLog { origin, key } in listed {
            let file = format!("{LOGS}/{}", file_name(&origin));
            if !identity.logs.contains(&origin) {
                initialize_log(&*state, &file, &origin)?;
                identity.logs.insert(origin.clone());
            }
            let last = Mutex::new(load(&*state, &file, &origin)?);
            logs.insert(origin, Log { key, file, last });
        }
        if identity.logs.len() != known {
            write(&*state, IDENTITY_FILE, &identity)?;
        }
        Ok(Self { state, key, logs })
    }

    /// Cosigns a checkpoint. `body` is the body of a request to `add-checkpoint`, `now` the time in unix seconds.
    /// Returns the body of the response, one signature line; the new state is on the disk by then.
    ///
    /// # Errors
    /// [`CosignError`]; nothing was cosigned then.
    pub fn add_checkpoint(&self, body: &[u8], now: u64) -> Result<String, CosignError> {
        let malformed = |error: LedgerError| CosignError::Malformed(error.to_string());
        let body = std::str::from_utf8(body).map_err(|_| CosignError::Malformed("not UTF-8".to_owned()))?;
        let asked = AddCheckpoint::parse(body).map_err(malformed)?;
        let signed = SignedCheckpoint::parse(asked.note).map_err(malformed)?;
        let checkpoint = signed.checkpoint();
        let log = self.logs.get(&checkpoint.origin).ok_or(CosignError::UnknownLog)?;
        signed.verify(&log.key).map_err(CosignError::NotSignedByLog)?;
        if asked.old_size > checkpoint.size || i64::try_from(checkpoint.size).is_err() {
            return Err(CosignError::Malformed(
                "the old size is larger than the new one, or a size exceeds 63 bits".to_owned(),
            ));
        }
        let mut last = lock(&log.last);
        if last.unsure {
            *last = load(&*self.state, &log.file, &checkpoint.origin)?;
        }
        check_extends(&last, &asked, checkpoint)?;
        let cosignature = self.key.cosign(&signed, now).map_err(CosignError::SignerFailed)?;
        if last.unsure || last.size != checkpoint.size {
            let note = format!(
                "{}\n{}{}",
                signed.text(),
                signed.signature_lines_by(&log.key),
                cosignature.line
            );
            // Until the write is known to be durable, the disk may hold the old or the new state.
            last.unsure = true;
            let stored = StoredLog {
                v: VERSION,
                origin: checkpoint.origin.clone(),
                size: checkpoint.size,
                root: STANDARD.encode(checkpoint.root),
                note,
            };
            write(&*self.state, &log.file, &stored)?;
            *last = LastCosigned {
                size: checkpoint.size,
                root: checkpoint.root,
                note: stored.note,
                unsure: false,
            };
        }
        Ok(cosignature.line)
    }

    /// Returns the newest cosigned checkpoint, with the cosignature, of the log whose origin has this SHA-256 in
    /// hexadecimal; `None` when there is none.
    #[must_use]
    pub fn checkpoint(&self, origin_digest: &str) -> Option<String> {
        let mut logs = self.logs.iter();
        let (_, log) = logs.find(|(origin, _)| file_name(origin) == origin_digest)?;
        let last = lock(&log.last);
        (!last.note.is_empty()).then(|| last.note.clone())
    }

    /// Returns the newest cosigned size of each log.
    #[must_use]
    pub fn cosigned_sizes(&self) -> Vec<CosignedSize> {
        let logs = self.logs.iter();
        logs.map(|(origin, log)| CosignedSize {
            origin: origin.clone(),
            size: lock(&log.last).size,
        })
        .collect()
    }
}

/// Checks that a checkpoint extends the one that was cosigned last.
fn check_extends(
    last: &LastCosigned,
    asked: &AddCheckpoint<'_>,
    new: &Checkpoint,
) -> Result<(), CosignError> {
    if asked.old_size != last.size || new.size == last.size && new.root != last.root {
        return Err(CosignError::Conflict(last.size));
    }
    if last.size == 0 || new.size == last.size {
        // Every tree extends the empty tree and itself, so the proof must be empty.
        return match asked.proof.is_empty() {
            true => Ok(()),
            false => Err(CosignError::NotConsistent(LedgerError::ProofLength)),
        };
    }
    verify_consistency(last.size, &last.root, new.size, &new.root, &asked.proof)
        .map_err(CosignError::NotConsistent)
}

fn lock(last: &Mutex<LastCosigned>) -> MutexGuard<'_, LastCosigned> {
    last.lock().unwrap_or_else(PoisonError::into_inner)
}

fn file_name(origin: &str) -> String {
    let digest = Sha256::digest(origin);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Records that no checkpoint of a new log was cosigned. An interrupted start may have done so already.
fn initialize_log(state: &dyn StateStorage, file: &str, origin: &str) -> Result<(), WitnessError> {
    if read(state, file)?.is_some() {
        return Ok(());
    }
    let stored = StoredLog {
        v: VERSION,
        origin: origin.to_owned(),
        size: 0,
        root: STANDARD.encode(Mmr::new().root()),
        note: String::new(),
    };
    write(state, file, &stored)
}

fn load(state: &dyn StateStorage, file: &str, origin: &str) -> Result<LastCosigned, WitnessError> {
    let bytes = read(state, file)?.ok_or_else(|| {
        WitnessError::corrupt(
            file,
            format!("it is missing, although the witness may have cosigned checkpoints of {origin}"),
        )
    })?;
    let stored: StoredLog = decode(file, &bytes)?;
    let root = STANDARD.decode(&stored.root).ok();
    let root = root.and_then(|root| Hash::try_from(root).ok());
    match root {
        Some(root) if stored.v == VERSION && stored.origin == origin => Ok(LastCosigned {
            size: stored.size,
            root,
            note: stored.note,
            unsure: true,
        }),
        _ => Err(WitnessError::corrupt(
            file,
            format!("it does not belong to {origin}"),
        )),
    }
}

fn read(state: &dyn StateStorage, name: &str) -> Result<Option<Vec<u8>>, WitnessError> {
    state.read(name).map_err(WitnessError::state("read", name))
}

fn write<T: Serialize>(state: &dyn StateStorage, name: &str, value: &T) -> Result<(), WitnessError> {
    let bytes = serde_json::to_vec(value).map_err(|error| WitnessError::corrupt(name, error.to_string()))?;
    state
        .write(name, &bytes)
        .map_err(WitnessError::state("write", name))
}

fn decode<T: for<'de> Deserialize<'de>>(name: &str, bytes: &[u8]) -> Result<T, WitnessError> {
    serde_json::from_slice(bytes).map_err(|error| WitnessError::corrupt(name, error.to_string()))
}
