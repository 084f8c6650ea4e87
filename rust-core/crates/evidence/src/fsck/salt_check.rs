//! Compares the `salts` file with the requests that need a salt: admitted and denied requests.

use crate::key_destructions::{DestroyedKeys, KEY_USE_GRACE};
use crate::salts::{SALT_LEN, SALTS_FILE};
use crate::{EvidenceError, ReadFile, ReadStorage, ShredKeys, read_full};
use proofgate_ledger::CommittedRequest;
use proofgate_ledger::commitment::salt_id;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const WINDOW_BYTES: usize = 256 << 10;

/// State of the salt of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SaltState {
    Present,
    /// The salt is zero.
    Zero,
    /// The retention job signed that the key for this salt was destroyed.
    Shredded,
}

pub(super) struct SaltCheck<'k> {
    shred_keys: Option<&'k ShredKeys>,
    destroyed_keys: &'k DestroyedKeys,
    file: Option<Arc<dyn ReadFile>>,
    path: PathBuf,
    window: Vec<u8>,
    window_at: u64,
    /// Number of salts that are zero because they were erased on purpose, or whose key was
    /// destroyed.
    pub(super) erased: u64,
    /// Number of salts that need a key that was not provided, and the first such admission if any
    /// tenants' keys were provided.
    pub(super) unchecked: u64,
    pub(super) first_unchecked: Option<u64>,
    /// Number of missing salts, and the first admission without a salt.
    pub(super) missing: u64,
    pub(super) first_missing: Option<u64>,
    /// Number of salts that do not match the id in their admission, and the first such admission.
    pub(super) changed: u64,
    pub(super) first_changed: Option<u64>,
    /// The first admission under a key whose signed destruction was so long before that no worker
    /// could legitimately still have the key.
    pub(super) first_after_destruction: Option<u64>,
}

impl<'k> SaltCheck<'k> {
    pub(super) fn open(
        storage: &dyn ReadStorage,
        dir: &Path,
        shred_keys: Option<&'k ShredKeys>,
        destroyed: &'k DestroyedKeys,
    ) -> Result<Self, EvidenceError> {
        let path = dir.join(SALTS_FILE);
        let file = match storage.open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(EvidenceError::io("open", &path)(error)),
        };
        Ok(Self {
            shred_keys,
            destroyed_keys: destroyed,
            file,
            path,
            window: Vec::new(),
            window_at: 0,
            erased: 0,
            unchecked: 0,
            first_unchecked: None,
            missing: 0,
            first_missing: None,
            changed: 0,
            first_changed: None,
            first_after_destruction: None,
        })
    }

    /// Checks the salt of a request against the salt id in the request's record. Calls must be in
    /// ascending order of `seq`.
    pub(super) fn check_request(
        &mut self,
        seq: u64,
        request: &CommittedRequest<'_>,
    ) -> Result<SaltState, EvidenceError> {
        if let Some(id) = request.shred_key
            && let Some(time) = self.destroyed_keys.destruction_time(request.tenant, id)
            && request.ts > time.saturating_add(KEY_USE_GRACE)
        {
            self.first_after_destruction.get_or_insert(seq);
        }
        let stored = self
            .read_salt(seq)
            .map_err(EvidenceError::io("read", &self.path))?;
        let Some(stored) = stored else {
            self.missing += 1;
            self.first_missing.get_or_insert(seq);
            return Ok(SaltState::Present);
        };
        if stored == [0; SALT_LEN] {
            self.erased += 1;
            return Ok(SaltState::Zero);
        }
        let salt = match request.shred_key {
            None => Some(stored),
            Some(id) if self.destroyed_keys.contains(request.tenant, id) => {
                self.erased += 1;
                return Ok(SaltState::Shredded);
            }
            Some(id) => {
                let key = self.shred_keys.and_then(|keys| keys.find(request.tenant, id));
                key.map(|key| key.derive_salt(&stored))
            }
        };
        match salt {
            None => {
                self.unchecked += 1;
                if self.shred_keys.is_some() {
                    self.first_unchecked.get_or_insert(seq);
                }
            }
            Some(salt) if request.salt.is_some_and(|id| id != salt_id(&salt)) => {
                self.changed += 1;
                self.first_changed.get_or_insert(seq);
            }
            Some(_) => {}
        }
        Ok(SaltState::Present)
    }

    /// Reads the stored bytes of a salt; `None` when they are missing.
    fn read_salt(&mut self, seq: u64) -> io::Result<Option<[u8; SALT_LEN]>> {
        let (Some(file), Some(at)) = (&self.file, seq.checked_mul(SALT_LEN as u64)) else {
            return Ok(None);
        };
        if at < self.window_at || at + SALT_LEN as u64 > self.window_at + self.window.len() as u64 {
            self.window.resize(WINDOW_BYTES, 0);
            self.window_at = at;
            let read = read_full(&**file, &mut self.window, at)?;
            self.window.truncate(read);
        }
        let start = usize::try_from(at - self.window_at).unwrap_or(usize::MAX);
        let salt = self.window.get(start..start.saturating_add(SALT_LEN));
        Ok(salt.and_then(|salt| salt.try_into().ok()))
    }
}
