//! Gives back what dead incarnations allocated and did not use.
//!
//! A worker that drains cuts off what it does not need ([`Follower::finish`](crate::Follower::finish)). One that is killed
//! leaves the rest of its segment and a prepared one: zeros, up to two segments of them. Its successor cuts those off
//! before it allocates its own, or a worker that is killed again and again would fill the volume.
//!
//! Only zeros go. No byte that was written is changed, and where anything stands behind the last record, which is what a
//! loss of power may leave, everything stays. So does everything of an incarnation that still lives, whatever is believed
//! of it: it holds a lock on its salts, and a file system that knows no locks gives nothing back.

use crate::log_reader::LogReader;
use crate::recovery::parse_incarnation;
use crate::salts::SALTS;
use crate::segment::SegmentName;
use crate::{Storage, WalError};
use std::path::Path;
use ulid::Ulid;

/// Gives back the unused space of the incarnations of a shard from `first` on, or of all; returns how many bytes that
/// were. Those before it are their successors' business. What cannot be cut stays, and is no error.
///
/// Call it after [`inspect`](crate::recovery::inspect) and before [`Incarnation::create`](crate::Incarnation::create),
/// with the incarnation that was found.
pub fn give_back(storage: &dyn Storage, shard_dir: &Path, first: Option<Ulid>) -> u64 {
    let names = storage.list(shard_dir).unwrap_or_default();
    let incarnations = names.iter().filter_map(|name| parse_incarnation(name));
    incarnations
        .filter(|incarnation| first.is_none_or(|first| *incarnation >= first))
        .filter_map(|incarnation| of_incarnation(storage, shard_dir, incarnation).ok())
        .sum()
}

fn of_incarnation(storage: &dyn Storage, shard_dir: &Path, incarnation: Ulid) -> Result<u64, WalError> {
    let dir = shard_dir.join(incarnation.to_string());
    let salts = dir.join(SALTS);
    // Held until the end: what is dead cannot wake up, and another successor waits its turn.
    let lock = storage
        .open_writable(&salts)
        .map_err(WalError::io("open", &salts))?;
    if !lock.try_lock().map_err(WalError::io("lock", &salts))? {
        return Ok(0);
    }
    let log = LogReader::open(storage, &dir, incarnation, false)?;
    let mut given_back = 0;
    for name in storage.list(&dir).map_err(WalError::io("list", &dir))? {
        if SegmentName::parse(&name).is_none() {
            continue;
        }
        let path = dir.join(name);
        if let Some(end) = log.unused_from(&path)? {
            given_back += cut(storage, &path, end)?;
        }
    }
    Ok(given_back)
}

fn cut(storage: &dyn Storage, path: &Path, end: u64) -> Result<u64, WalError> {
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
