//! Where incarnations are: `<gateway>/<shard>/<incarnation>/`.

use crate::recovery::parse_incarnation;
use crate::segment::SegmentName;
use crate::{Storage, WalError};
use std::io;
use std::path::{Path, PathBuf};
use ulid::Ulid;

/// Kept by the file system at the root of a volume (ext4 makes it with the volume); only root may read it.
const LOST_AND_FOUND: &str = "lost+found";

/// The incarnations of one shard, oldest first.
pub(crate) struct Shard {
    pub(crate) dir: PathBuf,
    pub(crate) incarnations: Vec<Ulid>,
}

/// The shards at a path, which may be a gateway's directory, a shard's, or one incarnation's. The file system's own
/// directory is passed over; any other that cannot be listed is an error, as it may be a shard.
pub(crate) fn shards(storage: &dyn Storage, path: &Path) -> Result<Vec<Shard>, WalError> {
    let names = storage.list(path).map_err(WalError::io("list", path))?;
    let own = path
        .file_name()
        .and_then(|name| name.to_str())
        .and_then(parse_incarnation);
    if let (Some(incarnation), Some(dir)) = (own, path.parent())
        && (names.is_empty() || names.iter().any(|name| SegmentName::parse(name).is_some()))
    {
        return Ok(vec![Shard {
            dir: dir.to_owned(),
            incarnations: vec![incarnation],
        }]);
    }
    if let Some(shard) = shard(path, &names) {
        return Ok(vec![shard]);
    }
    let mut shards = Vec::new();
    for name in names.into_iter().filter(|name| name != LOST_AND_FOUND) {
        let dir = path.join(name);
        match storage.list(&dir) {
            Ok(names) => shards.extend(shard(&dir, &names)),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
            Err(error) => return Err(WalError::io("list", &dir)(error)),
        }
    }
    if shards.is_empty() {
        Err(WalError::NotALog(path.to_owned()))
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
    })
}
