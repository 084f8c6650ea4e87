//! The `salts` file against the admissions, which are what it has salts for.

use crate::salts::{SALT, SALTS};
use crate::{EvidenceError, ReadFile, ReadStorage, read_full};
use proofgate_ledger::commitment::salt_id;
use proofgate_ledger::record::SaltId;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const WINDOW: usize = 256 << 10;

pub(super) struct SaltCheck {
    file: Option<Arc<dyn ReadFile>>,
    path: PathBuf,
    window: Vec<u8>,
    window_at: u64,
    /// Salts that are zero: erased on purpose.
    pub(super) erased: u64,
    /// Salts that are not there, and the first and the last admission without one.
    pub(super) missing: u64,
    pub(super) first_missing: Option<u64>,
    /// Salts that are others than the admissions name, and the first admission whose salt is.
    pub(super) changed: u64,
    pub(super) first_changed: Option<u64>,
}

impl SaltCheck {
    pub(super) fn open(storage: &dyn ReadStorage, dir: &Path) -> Result<Self, EvidenceError> {
        let path = dir.join(SALTS);
        let file = match storage.open(&path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(EvidenceError::io("open", &path)(error)),
        };
        Ok(Self {
            file,
            path,
            window: Vec::new(),
            window_at: 0,
            erased: 0,
            missing: 0,
            first_missing: None,
            changed: 0,
            first_changed: None,
        })
    }

    /// Looks at the salt of an admission, which names it by `id`; whether it is zero. Numbers only grow.
    pub(super) fn admission(&mut self, seq: u64, id: Option<SaltId>) -> Result<bool, EvidenceError> {
        match self.salt(seq).map_err(EvidenceError::io("read", &self.path))? {
            Some(salt) if salt == [0; SALT] => {
                self.erased += 1;
                return Ok(true);
            }
            Some(salt) if id.is_some_and(|id| id != salt_id(&salt)) => {
                self.changed += 1;
                self.first_changed.get_or_insert(seq);
            }
            Some(_) => {}
            None => {
                self.missing += 1;
                self.first_missing.get_or_insert(seq);
            }
        }
        Ok(false)
    }

    /// The salt; `None` when it is not there.
    fn salt(&mut self, seq: u64) -> io::Result<Option<[u8; SALT]>> {
        let (Some(file), Some(at)) = (&self.file, seq.checked_mul(SALT as u64)) else {
            return Ok(None);
        };
        if at < self.window_at || at + SALT as u64 > self.window_at + self.window.len() as u64 {
            self.window.resize(WINDOW, 0);
            self.window_at = at;
            let read = read_full(&**file, &mut self.window, at)?;
            self.window.truncate(read);
        }
        let start = usize::try_from(at - self.window_at).unwrap_or(usize::MAX);
        let salt = self.window.get(start..start.saturating_add(SALT));
        Ok(salt.and_then(|salt| salt.try_into().ok()))
    }
}
