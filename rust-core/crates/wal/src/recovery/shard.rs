//! The shard that recovery inspects.

use crate::{Storage, WalError};
use proofgate_evidence::layout::parse_incarnation;
use proofgate_ledger::SigningKey;
use std::io;
use std::path::Path;
use ulid::Ulid;

/// The shard on which a successor starts, and its signing key.
#[derive(Clone, Copy, Debug)]
pub struct Shard<'a> {
    /// Directory of the shard.
    pub dir: &'a Path,
    /// Name of the ledger, the first part of every origin.
    pub ledger: &'a str,
    /// Number of the shard, the second part of every origin.
    pub number: u32,
    /// The ledger's key.
    pub key: &'a SigningKey,
    /// The key before `key`, if the newest log of the shard may have been written with it. In this
    /// case, the lineage of `key` contains the succession.
    pub previous_key: Option<&'a SigningKey>,
}

impl Shard<'_> {
    /// Returns the origin of an incarnation's checkpoints.
    #[must_use]
    pub fn origin(&self, incarnation: Ulid) -> String {
        format!("{}/{}/{incarnation}", self.ledger, self.number)
    }
}

/// Lists the incarnations that have a directory on the shard, oldest first, without `own`.
pub(super) fn incarnations(
    storage: &dyn Storage,
    dir: &Path,
    own_incarnation: Option<Ulid>,
) -> Result<Vec<Ulid>, WalError> {
    let names = match storage.list(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        other => other.map_err(WalError::io("list", dir))?,
    };
    let mut found: Vec<Ulid> = names
        .iter()
        .filter_map(|name| parse_incarnation(name))
        .filter(|incarnation| Some(*incarnation) != own_incarnation)
        .collect();
    found.sort_unstable();
    Ok(found)
}
