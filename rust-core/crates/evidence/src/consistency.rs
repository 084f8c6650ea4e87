//! Consistency of two checkpoints of one log: the log at the older checkpoint must be a prefix of
//! the log at the newer checkpoint.

use crate::layout::{parse_incarnation, shards};
use crate::rebuilt_tree::{RebuiltNodeReader, rebuild_tree};
use crate::removal::{read_consistency, read_tombstone};
use crate::{EvidenceError, HeldCheckpoint, ReadStorage, Refusal, TreeFile};
use proofgate_ledger::{
    Checkpoint, Hash, LedgerError, NodeReader, VerifyingKey, consistency_proof, tree_root, verify_consistency,
};
use std::path::{Path, PathBuf};

/// Reads a file of concatenated signed notes, such as the output of `curl … >> checkpoints`. If a
/// key is given, every signature is verified.
///
/// # Errors
/// [`EvidenceError::InvalidNote`] for the first note that is refused, and when there is no note.
pub fn read_notes(
    file: &Path,
    text: &str,
    key: Option<&VerifyingKey>,
) -> Result<Vec<HeldCheckpoint>, EvidenceError> {
    let refused = |number: usize, reason: Refusal| EvidenceError::InvalidNote {
        file: file.to_owned(),
        number,
        reason,
    };
    let notes = split_notes(text);
    if notes.is_empty() {
        return Err(refused(1, "the file contains no note".to_owned().into()));
    }
    let read = notes.into_iter().enumerate().map(|(at, note)| {
        let signed = match key {
            Some(key) => Checkpoint::verify(note, key),
            None => Checkpoint::parse_unverified(note),
        };
        let checkpoint = signed.map_err(|error| refused(at + 1, error.into()))?;
        Ok(HeldCheckpoint {
            file: file.to_owned(),
            checkpoint,
        })
    });
    read.collect()
}

/// Splits a text into notes. A note is a text, an empty line, and lines that begin with an em dash.
/// The next note begins after these lines.
pub(crate) fn split_notes(text: &str) -> Vec<&str> {
    let mut notes = Vec::new();
    let (mut start, mut at, mut signed) = (0, 0, false);
    for line in text.split_inclusive('\n') {
        if signed && !line.starts_with("\u{2014} ") {
            notes.push(&text[start..at]);
            (start, signed) = (at, false);
        }
        signed |= line.starts_with("\u{2014} ");
        if start == at && line == "\n" {
            start += 1;
        }
        at += line.len();
    }
    notes.extend(Some(&text[start..]).filter(|rest| !rest.is_empty()));
    notes
}

/// Computes and verifies the RFC 9162 proof that the log at the size of `old` is a prefix of the
/// log at the size of `new`, from the ledger under `path`. The proof is empty when the sizes are
/// equal.
///
/// # Errors
/// [`EvidenceError::Inconsistent`] when the two checkpoints are not one history, or the ledger does
/// not lead to both; [`EvidenceError::NotALog`] when the ledger does not hold the log;
/// [`EvidenceError::Removed`] when the log was removed and no retained file holds the proof;
/// [`EvidenceError::Ledger`] for an empty `old` or sizes in the wrong order; [`EvidenceError::Io`].
pub fn prove_consistency(
    storage: &dyn ReadStorage,
    path: &Path,
    old: &Checkpoint,
    new: &Checkpoint,
) -> Result<Vec<Hash>, EvidenceError> {
    if old.origin != new.origin {
        let told = format!(
            "the checkpoints belong to two logs, {} and {}",
            old.origin, new.origin
        );
        return Err(EvidenceError::Inconsistent(told));
    }
    if old.size == new.size && old.root != new.root {
        let told = format!(
            "{} has two roots at {} records: the log has forked",
            old.origin, old.size
        );
        return Err(EvidenceError::Inconsistent(told));
    }
    let dir = log_directory(storage, path, &old.origin)?;
    build_proof(storage, &dir, (old.size, Some(old.root)), new)
}

/// Same as [`prove_consistency`], but from a size only. The caller knows the root that was signed
/// for this size.
///
/// # Errors
/// Same as [`prove_consistency`].
pub fn prove_consistency_from_size(
    storage: &dyn ReadStorage,
    path: &Path,
    size: u64,
    new: &Checkpoint,
) -> Result<Vec<Hash>, EvidenceError> {
    let dir = log_directory(storage, path, &new.origin)?;
    build_proof(storage, &dir, (size, None), new)
}

/// Builds the proof from the tree file, or from the records where the tree file is missing, short
/// or wrong. If `root` is `None`, the log's root at that size is used.
fn build_proof(
    storage: &dyn ReadStorage,
    dir: &Path,
    (size, root): (u64, Option<Hash>),
    new: &Checkpoint,
) -> Result<Vec<Hash>, EvidenceError> {
    let old = |root| Checkpoint {
        origin: new.origin.clone(),
        size,
        root,
    };
    let stored = TreeFile::open(storage, dir).and_then(|tree| read_proof(&tree, (size, root), new.size));
    if let Ok((hashes, root)) = stored
        && check(&old(root), new, &hashes).is_ok()
    {
        return Ok(hashes);
    }
    if read_tombstone(storage, dir)?.is_some() {
        // A removal retains the proofs from the sizes that other logs stated.
        let stays = read_consistency(storage, dir, size)?.zip(root);
        return match stays.filter(|(hashes, root)| check(&old(*root), new, hashes).is_ok()) {
            Some((hashes, _)) => Ok(hashes),
            None => Err(EvidenceError::Removed(dir.to_owned())),
        };
    }
    if size == 0 {
        return Err(LedgerError::EmptyTree.into());
    }
    if size > new.size {
        let (old, new) = (size, new.size);
        return Err(LedgerError::SizesReversed { old, new }.into());
    }
    let mut whole = false;
    loop {
        let rebuilt = match rebuild_tree(storage, dir, new, whole) {
            Err(EvidenceError::NoSuchRecord { seq, .. }) => {
                let told = format!("the ledger has {seq} records of {}, not {}", new.origin, new.size);
                return Err(EvidenceError::Inconsistent(told));
            }
            other => other?,
        };
        let nodes = RebuiltNodeReader::new(storage, dir, &rebuilt);
        let proved = read_proof(&nodes, (size, root), new.size).and_then(|(hashes, root)| {
            check(&old(root), new, &hashes)?;
            Ok(hashes)
        });
        if proved.is_ok() || rebuilt.is_complete() {
            return proved;
        }
        // A node of the tree file is wrong, so compute all nodes from the records.
        whole = true;
    }
}

fn read_proof<N: NodeReader<Error = EvidenceError> + ?Sized>(
    nodes: &N,
    (size, root): (u64, Option<Hash>),
    new: u64,
) -> Result<(Vec<Hash>, Hash), EvidenceError> {
    let hashes = consistency_proof(nodes, size, new)?;
    let root = match root {
        Some(root) => root,
        None => tree_root(nodes, size)?,
    };
    Ok((hashes, root))
}

/// Checks a consistency proof between two checkpoints of one log, without the log.
///
/// # Errors
/// [`EvidenceError::Inconsistent`].
pub fn check(old: &Checkpoint, new: &Checkpoint, hashes: &[Hash]) -> Result<(), EvidenceError> {
    if old.origin != new.origin {
        let told = format!(
            "the checkpoints belong to two logs, {} and {}",
            old.origin, new.origin
        );
        return Err(EvidenceError::Inconsistent(told));
    }
    verify_consistency(old.size, &old.root, new.size, &new.root, hashes).map_err(|error| {
        let told = format!(
            "{} with {} records is not a prefix of the same log with {} records: {error}",
            old.origin, old.size, new.size
        );
        EvidenceError::Inconsistent(told)
    })
}

/// Returns the directory of the log with this origin.
fn log_directory(storage: &dyn ReadStorage, path: &Path, origin: &str) -> Result<PathBuf, EvidenceError> {
    let missing = || EvidenceError::NotALog(path.join(origin));
    let incarnation = origin
        .rsplit('/')
        .next()
        .and_then(parse_incarnation)
        .ok_or_else(missing)?;
    for shard in shards(storage, path)? {
        if shard.incarnations.contains(&incarnation) {
            return Ok(shard.dir.join(incarnation.to_string()));
        }
    }
    Err(missing())
}

#[cfg(test)]
mod tests {
    use super::split_notes;

    #[test]
    fn notes_in_a_file_are_told_apart() {
        let (one, two) = (
            "a/0/X\n1\nroot=\n\n\u{2014} a AA==\n",
            "a/0/X\n2\nroot=\n\n\u{2014} a AA==\n\u{2014} b AA==\n",
        );
        for between in ["", "\n", "\n\n"] {
            let text = format!("{between}{one}{between}{two}");
            assert_eq!(split_notes(&text), [one, two], "{text:?}");
        }
        assert_eq!(split_notes(""), [""; 0]);
        assert_eq!(split_notes("\n\n"), [""; 0]);
        assert_eq!(split_notes("half a note"), ["half a note"]);
    }
}
