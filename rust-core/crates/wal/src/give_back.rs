//! Gives back what dead incarnations allocated and did not use.
//!
//! A worker that drains cuts off what it does not need ([`Follower::finish`](crate::Follower::finish)). One that is killed
//! leaves the rest of its segment and a prepared one: zeros, up to two segments of them. Its successor cuts those off
//! before it allocates its own, or a worker that is killed again and again would fill the volume.
//!
//! Only zeros go. No byte that was written is changed, and where anything stands behind the last record, which is what a
//! loss of power may leave, everything stays. So does everything of an incarnation that still lives, whatever is believed
//! of it: it holds a lock on its salts. One whose lock not everybody can see says so in its directory when it begins
//! (`unlocked`), and where locks do not reach everybody now, nothing is given back either.

use crate::incarnation::UNLOCKED_FILE;
use crate::{Storage, WalError};
use proofgate_evidence::layout::parse_incarnation;
use proofgate_evidence::salts::SALTS_FILE;
use proofgate_evidence::unused_segments;
use std::path::Path;
use ulid::Ulid;

/// Gives back the unused space of the incarnations of a shard from `first` on, or of all, except `own`; returns how many
/// bytes that were. Those before `first` are their successors' business. What cannot be cut stays, and is no error.
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
    // Held until the end: what is dead cannot wake up, and another successor waits its turn.
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
    for (path, end) in unused_segments(storage, &dir, incarnation)? {
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
