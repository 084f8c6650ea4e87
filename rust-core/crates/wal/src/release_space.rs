//! Releases space that ended incarnations allocated and did not use.
//!
//! A worker that drains releases its unused space ([`Follower::finish`](crate::Follower::finish)).
//! A killed worker leaves the zeros at the end of its segment and of a prepared segment, up to the
//! size of two segments. Its successor truncates these zeros before it allocates its own segments;
//! otherwise a worker that is killed repeatedly would fill the volume.
//!
//! Only zeros are removed, and no written byte is changed. If data other than zeros follows the
//! last record, as after a power loss, nothing of that log is released. Nothing of a running
//! incarnation is released either: it holds a lock on its salts. An incarnation whose lock is not
//! visible to every node creates the file `unlocked` at its start, and nothing of it is released.
//! If locks are not visible to every node now, nothing of any incarnation is released.

use crate::incarnation::UNLOCKED_FILE;
use crate::{Storage, WalError};
use proofgate_evidence::layout::parse_incarnation;
use proofgate_evidence::salts::SALTS_FILE;
use proofgate_evidence::unused_segment_space;
use std::path::Path;
use ulid::Ulid;

/// Releases the unused space of the incarnations of a shard from `first` on (of all incarnations if
/// `None`), except `own`. Returns the number of bytes released. Incarnations before `first` are
/// left to their own successors. A file that cannot be truncated remains as it is, without an
/// error.
pub fn release_unused_space(
    storage: &dyn Storage,
    shard_dir: &Path,
    first: Option<Ulid>,
    own: Option<Ulid>,
) -> u64 {
    let reach = storage.open_dir(shard_dir).map(|dir| dir.has_shared_locks());
    if !reach.unwrap_or(false) {
        return 0;
    }
    let names = storage.list(shard_dir).unwrap_or_default();
    let incarnations = names.iter().filter_map(|name| parse_incarnation(name));
    incarnations
        .filter(|incarnation| Some(*incarnation) != own && first.is_none_or(|first| *incarnation >= first))
        .filter_map(|incarnation| release_incarnation(storage, shard_dir, incarnation).ok())
        .sum()
}

fn release_incarnation(storage: &dyn Storage, shard_dir: &Path, incarnation: Ulid) -> Result<u64, WalError> {
    let dir = shard_dir.join(incarnation.to_string());
    let salts = dir.join(SALTS_FILE);
    // Hold this lock until the end of the function, so that the incarnation cannot resume and
    // another successor waits.
    let lock = storage
        .open_writable(&salts)
        .map_err(WalError::io("open", &salts))?;
    if !lock.try_lock().map_err(WalError::io("lock", &salts))? {
        return Ok(0);
    }
    let names = storage.list(&dir).map_err(WalError::io("list", &dir))?;
    if names.iter().any(|name| name == UNLOCKED_FILE) {
        return Ok(0);
    }
    let mut given_back = 0;
    for (path, end) in unused_segment_space(storage, &dir, incarnation)? {
        given_back += truncate_file(storage, &path, end)?;
    }
    Ok(given_back)
}

fn truncate_file(storage: &dyn Storage, path: &Path, end: u64) -> Result<u64, WalError> {
    let file = storage.open_writable(path).map_err(WalError::io("open", path))?;
    let unused = file
        .len()
        .map_err(WalError::io("stat", path))?
        .saturating_sub(end);
    if unused > 0 {
        file.set_len(end).map_err(WalError::io("truncate", path))?;
    }
    Ok(unused)
}
