//! The directory layout of incarnations: `<gateway>/<shard>/<incarnation>/`.

use crate::segment::SegmentName;
use crate::{EvidenceError, ReadStorage};
use std::io;
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// File name of the retention job's note about a removed log.
pub const TOMBSTONE_FILE: &str = "tombstone";
/// Directory that a file system such as ext4 creates at the root of a volume. Only root may read
/// it.
const LOST_AND_FOUND: &str = "lost+found";

/// The incarnations of one shard, oldest first.
pub struct Shard {
    /// Directory of the shard.
    pub dir: PathBuf,
    /// The incarnations that have a directory in the shard.
    pub incarnations: Vec<Ulid>,
    /// Whether only one incarnation was requested.
    pub single: bool,
    /// The directory's name, which is the shard number that its logs must state. `None` when the
    /// name of the requested directory is not a number, as in a copy.
    pub name: Option<String>,
}

/// Returns the shards at a path, which may be the directory of a gateway, a shard or one
/// incarnation. The directory `lost+found` of the file system is skipped. Any other directory that
/// cannot be listed is an error, because it may be a shard.
///
/// # Errors
/// [`EvidenceError::NotALog`] when there is no shard; [`EvidenceError::Io`].
pub fn shards(storage: &dyn ReadStorage, path: &Path) -> Result<Vec<Shard>, EvidenceError> {
    let names = storage.list(path).map_err(EvidenceError::io("list", path))?;
    let own = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(parse_incarnation);
    if let (Some(incarnation), Some(dir)) = (own, path.parent())
        && (names.is_empty()
            || names
                .iter()
                .any(|name| SegmentName::parse(name).is_some() || name == TOMBSTONE_FILE))
    {
        return Ok(vec![Shard {
            dir: dir.to_owned(),
            incarnations: vec![incarnation],
            single: true,
            name: directory_name(dir).filter(|name| is_shard_number(name)),
        }]);
    }
    if let Some(mut shard) = shard(path, &names) {
        shard.name = shard.name.filter(|name| is_shard_number(name));
        return Ok(vec![shard]);
    }
    let mut shards = Vec::new();
    for name in names.into_iter().filter(|name| name != LOST_AND_FOUND) {
        let dir = path.join(name);
        match storage.list(&dir) {
            Ok(names) => shards.extend(shard(&dir, &names)),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            Err(error) => return Err(EvidenceError::io("list", &dir)(error)),
        }
    }
    if shards.is_empty() {
        Err(EvidenceError::NotALog(path.to_owned()))
    } else {
        Ok(shards)
    }
}

fn shard(dir: &Path, names: &[String]) -> Option<Shard> {
    let mut incarnations: Vec<Ulid> = names.iter().filter_map(|name| parse_incarnation(name)).collect();
    incarnations.sort_unstable();
    (!incarnations.is_empty()).then(|| Shard {
        dir: dir.to_owned(),
        incarnations,
        single: false,
        name: directory_name(dir),
    })
}

fn directory_name(dir: &Path) -> Option<String> {
    Some(dir.file_name()?.to_str()?.to_owned())
}

fn is_shard_number(name: &str) -> bool {
    name.bytes().all(|digit| digit.is_ascii_digit())
}

/// Parses a directory name as a ULID; a directory with any other name is not an incarnation.
#[must_use]
pub fn parse_incarnation(name: &str) -> Option<Ulid> {
    Ulid::from_string(name)
        .ok()
        .filter(|ulid| ulid.to_string() == name)
}

/// Returns the incarnation that this directory belongs to.
///
/// # Errors
/// [`EvidenceError::NotALog`] when the directory's name is not a ULID.
pub fn incarnation_of(dir: &Path) -> Result<Ulid, EvidenceError> {
    dir.file_name()
        .and_then(|name| name.to_str())
        .and_then(parse_incarnation)
        .ok_or_else(|| EvidenceError::NotALog(dir.to_owned()))
}
