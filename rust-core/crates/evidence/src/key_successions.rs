//! Where a ledger keeps its statements of key succession: files in the directory `key-successions` beside the shards.

use crate::layout::shards;
use crate::{EvidenceError, ReadStorage, read_full};
use proofgate_ledger::{KeySuccession, MAX_STATEMENT, VerifyingKey};
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};

/// Name of the directory.
pub const KEY_SUCCESSIONS: &str = "key-successions";
/// How the names of its files end.
const SUFFIX: &str = ".note";
/// Most files that are looked at.
const MAX_FILES: usize = 1024;

/// The name of the file that holds this note: another one for each note.
#[must_use]
pub fn file_name(note: &str) -> String {
    use std::fmt::Write as _;
    let digest = Sha256::digest(note.as_bytes());
    let mut name = String::with_capacity(32 + SUFFIX.len());
    for byte in &digest[..16] {
        let _ = write!(name, "{byte:02x}");
    }
    name + SUFFIX
}

/// What stands there.
#[derive(Debug, Default)]
pub struct KeptSuccessions {
    /// Statements that the keys which they name signed, each with its note. Whose those are is not known.
    pub signed: Vec<(KeySuccession, String)>,
    /// Files that hold no such statement, and why.
    pub refused: Vec<(PathBuf, String)>,
}

impl KeptSuccessions {
    /// The statements alone.
    #[must_use]
    pub fn statements(&self) -> Vec<KeySuccession> {
        self.signed
            .iter()
            .map(|(statement, _)| statement.clone())
            .collect()
    }
}

/// Reads the statements of the ledger at this directory; none where there are none.
///
/// # Errors
/// [`EvidenceError::Io`]; [`EvidenceError::Corruption`] when there are more than 1024 files.
pub fn read(storage: &dyn ReadStorage, ledger: &Path) -> Result<KeptSuccessions, EvidenceError> {
    let dir = ledger.join(KEY_SUCCESSIONS);
    let mut names = match storage.list(&dir) {
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(KeptSuccessions::default());
        }
        other => other.map_err(EvidenceError::io("list", &dir))?,
    };
    names.retain(|name| name.ends_with(SUFFIX));
    names.sort_unstable();
    if names.len() > MAX_FILES {
        return Err(EvidenceError::Corruption {
            path: dir,
            offset: 0,
            reason: format!("{} statements of key succession are too many", names.len()),
        });
    }
    let mut kept = KeptSuccessions::default();
    for name in names {
        let path = dir.join(name);
        let file = storage.open(&path).map_err(EvidenceError::io("open", &path))?;
        let mut bytes = vec![0; MAX_STATEMENT + 1];
        let length = read_full(&*file, &mut bytes, 0).map_err(EvidenceError::io("read", &path))?;
        bytes.truncate(length);
        let read = String::from_utf8(bytes)
            .map_err(|_| "it is not UTF-8".to_owned())
            .and_then(|note| match KeySuccession::verify(&note) {
                Ok(statement) => Ok((statement, note)),
                Err(error) => Err(error.to_string()),
            });
        match read {
            Ok(signed) => kept.signed.push(signed),
            Err(why) => kept.refused.push((path, why)),
        }
    }
    Ok(kept)
}

/// The directory of the ledger that a path lies in, or is: of a shard's and an incarnation's too.
///
/// # Errors
/// As [`shards`].
pub fn ledger_of(storage: &dyn ReadStorage, path: &Path) -> Result<PathBuf, EvidenceError> {
    let found = shards(storage, path)?;
    let above = found.first().and_then(|shard| shard.dir.parent());
    Ok(above.unwrap_or(path).to_owned())
}

/// A key with those of its line that the statements of the ledger at a path lead to. What is no statement there is passed
/// over: `fsck` tells of it.
///
/// # Errors
/// As [`read`] and [`VerifyingKey::with_successions`].
pub fn follow(
    storage: &dyn ReadStorage,
    path: &Path,
    key: &VerifyingKey,
) -> Result<VerifyingKey, EvidenceError> {
    let kept = match ledger_of(storage, path) {
        Ok(ledger) => read(storage, &ledger)?,
        Err(EvidenceError::NotALog(_)) => KeptSuccessions::default(),
        Err(error) => return Err(error),
    };
    Ok(key.with_successions(&kept.statements())?)
}
