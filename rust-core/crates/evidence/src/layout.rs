//! Where incarnations are: `<gateway>/<shard>/<incarnation>/`.

use crate::segment::SegmentName;
use crate::{EvidenceError, ReadStorage};
use std::io;
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// Name of the retention job's note.
pub const TOMBSTONE_FILE: &str = "tombstone";
/// Kept by the file system at the root of a volume (ext4 makes it with the volume); only root may read it.
const LOST_AND_FOUND: &str = "lost+found";

/// The incarnations of one shard, oldest first.
pub struct Shard {
    /// Its directory.
    pub dir: PathBuf,
    /// Names of the directories in it that are incarnations'.
    pub incarnations: Vec<Ulid>,
    /// Only one of them was asked for.
    pub single: bool,
    /// The number that the logs in it must be of: its name. `None` for one that was asked for under a name that is no
    /// number, such as a copy's.
    pub name: Option<String>,
}

/// The shards at a path, which may be a gateway's directory, a shard's, or one incarnation's. The file system's own
/// directory is passed over; any other that cannot be listed is an error, as it may be a shard.
///
/// # Errors
/// [`EvidenceError::NotALog`] when there is none; [`EvidenceError::Io`].
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

/// The ULID that a directory name is; other names are not incarnations.
#[must_use]
pub fn parse_incarnation(name: &str) -> Option<Ulid> {
    Ulid::from_string(name)
        .ok()
        .filter(|ulid| ulid.to_string() == name)
}

/// The incarnation whose directory this is.
///
/// # Errors
/// [`EvidenceError::NotALog`] when the directory has another name than a ULID.
pub fn incarnation_of(dir: &Path) -> Result<Ulid, EvidenceError> {
    dir.file_name()
        .and_then(|name| name.to_str())
        .and_then(parse_incarnation)
        .ok_or_else(|| EvidenceError::NotALog(dir.to_owned()))
}
