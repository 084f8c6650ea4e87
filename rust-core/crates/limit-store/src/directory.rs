//! State files on disk: listing, reading and replacing them.

use crate::error::Problem;
use crate::format::{self, Damage, HEADER_BYTES};
use proofgate_limits::{Origin, Snapshot};
use proofgate_wal::{ReadFile, Storage, Ulid};
use std::io;
use std::path::{Path, PathBuf};

/// Maximum time in milliseconds for which an incarnation counts after the start of its successor:
/// the month of its consumption, plus a margin for clock differences.
const MAX_AGE_MILLIS: u64 = (31 * 24 + 1) * 3600 * 1000;

const SUFFIX: &str = ".limits";

/// Returns the name of the state file of a worker life in its shard's directory.
#[must_use]
pub fn file_name(first_incarnation: Ulid) -> String {
    format!("{first_incarnation}{SUFFIX}")
}

/// A worker life whose consumption may still count.
#[derive(Clone, Debug)]
pub(crate) struct Incarnation {
    pub(crate) origin: Origin,
    pub(crate) path: PathBuf,
    /// Whether it is the latest one on its shard.
    pub(crate) newest: bool,
}

/// Lists the worker lives on all shards whose consumption may still count at `now` (unix microseconds). A shard that cannot
/// be listed is added to `problems`.
///
/// # Errors
/// Returns an error if the gateway's directory cannot be listed.
pub(crate) fn list_incarnations(
    storage: &dyn Storage,
    gateway: &Path,
    now: u64,
    problems: &mut Vec<Problem>,
) -> io::Result<Vec<Incarnation>> {
    let mut found = Vec::new();
    for name in storage.list(gateway)? {
        let Some(shard) = parse_shard(&name) else { continue };
        let dir = gateway.join(name);
        let names = match storage.list(&dir) {
            Ok(names) => names,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotADirectory | io::ErrorKind::NotFound
                ) =>
            {
                continue;
            }
            Err(error) => {
                let reason = format!("list: {error}");
                problems.push(Problem { path: dir, reason });
                continue;
            }
        };
        let mut ulids: Vec<Ulid> = names.iter().filter_map(|name| parse_file_name(name)).collect();
        ulids.sort_unstable();
        for (at, ulid) in ulids.iter().enumerate() {
            let successor = ulids.get(at + 1);
            if successor.is_some_and(|next| next.timestamp_ms().saturating_add(MAX_AGE_MILLIS) < now / 1000) {
                continue;
            }
            found.push(Incarnation {
                origin: Origin {
                    shard,
                    incarnation: ulid.0,
                },
                path: dir.join(file_name(*ulid)),
                newest: successor.is_none(),
            });
        }
    }
    Ok(found)
}

fn parse_shard(name: &str) -> Option<u32> {
    name.parse().ok().filter(|shard: &u32| shard.to_string() == name)
}

fn parse_file_name(name: &str) -> Option<Ulid> {
    let ulid = Ulid::from_string(name.strip_suffix(SUFFIX)?).ok()?;
    (file_name(ulid) == name).then_some(ulid)
}

/// The result of reading a state file.
pub(crate) enum FileRead {
    /// The file does not exist.
    Missing,
    /// The file has not changed since the last read.
    Unchanged,
    /// The file is new. Contains its header and its snapshots, the writer's own first.
    Snapshots([u8; HEADER_BYTES], Vec<Snapshot>),
    /// The file is damaged.
    Damaged(Damage),
}

/// Reads a state file, unless its header is unchanged. It reads the header from the opened file
/// instead of the file attributes, because a network file system revalidates a file on open, but
/// may return cached attributes.
///
/// # Errors
/// Returns an error if the file cannot be opened or read.
pub(crate) fn read(
    storage: &dyn Storage,
    path: &Path,
    origin: Origin,
    seen: Option<&[u8; HEADER_BYTES]>,
) -> io::Result<FileRead> {
    let file = match storage.open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FileRead::Missing),
        Err(error) => return Err(error),
    };
    let mut header = [0; HEADER_BYTES];
    let whole = read_full(&*file, &mut header, 0)? == HEADER_BYTES;
    if seen == Some(&header) {
        return Ok(FileRead::Unchanged);
    }
    if !whole {
        return Ok(FileRead::Damaged("it ends inside its header"));
    }
    let told = match format::decode_header(&header) {
        Ok(decoded) => decoded,
        Err(damage) => return Ok(FileRead::Damaged(damage)),
    };
    if file.len()? != (HEADER_BYTES + told.length) as u64 {
        return Ok(FileRead::Damaged(
            "its length differs from the length in its header",
        ));
    }
    let mut body = vec![0; told.length];
    if read_full(&*file, &mut body, HEADER_BYTES as u64)? != told.length {
        return Ok(FileRead::Damaged("it ends early"));
    }
    let snapshots = match format::decode_body(&body, told) {
        Ok(snapshots) => snapshots,
        Err(damage) => return Ok(FileRead::Damaged(damage)),
    };
    if snapshots.first().map(|own| own.origin) != Some(origin) {
        return Ok(FileRead::Damaged("it belongs to another incarnation"));
    }
    let inherits = |snapshot: &Snapshot| {
        snapshot.finished
            && snapshot.origin.shard == origin.shard
            && snapshot.origin.incarnation < origin.incarnation
    };
    if !snapshots.iter().skip(1).all(inherits) {
        return Ok(FileRead::Damaged(
            "it contains data of an incarnation that did not precede it",
        ));
    }
    Ok(FileRead::Snapshots(header, snapshots))
}

fn read_full(file: &dyn ReadFile, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], offset + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

/// Replaces a file atomically through a temporary one. With `sync`, `directory` must have been
/// opened before, so that its sync reports every failure.
///
/// # Errors
/// Returns the name of the failed call and the system's error. The file is then the old one or, if only the last sync
/// failed, the new one.
pub(crate) fn replace_file(
    storage: &dyn Storage,
    directory: &dyn proofgate_wal::Directory,
    (temporary, path): (&Path, &Path),
    bytes: &[u8],
    sync: bool,
) -> Result<(), (&'static str, io::Error)> {
    let created = match storage.create(temporary) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // The temporary file is from an attempt that ran out of disk space.
            storage.remove(temporary).map_err(|error| ("remove", error))?;
            storage.create(temporary)
        }
        other => other,
    };
    let file = created.map_err(|error| ("create", error))?;
    let mut done = 0;
    while done < bytes.len() {
        match file.write_at(&bytes[done..], done as u64) {
            Ok(0) => return Err(("write", io::ErrorKind::WriteZero.into())),
            Ok(written) => done += written,
            Err(error) => return Err(("write", error)),
        }
    }
    if sync {
        file.sync().map_err(|error| ("sync", error))?;
    }
    storage
        .rename(temporary, path)
        .map_err(|error| ("rename", error))?;
    if sync {
        directory.sync().map_err(|error| ("sync directory", error))?;
    }
    Ok(())
}
