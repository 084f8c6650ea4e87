//! Builds proofs of records for third parties, from the files only. The worker that wrote the files
//! need not run.

use crate::checkpoint_file::{self, CHECKPOINT_FILE};
use crate::layout::{incarnation_of, parse_incarnation};
use crate::lookup::read_record;
use crate::rebuilt_tree::{RebuiltNodeReader, rebuild_tree};
use crate::salts::{SALT_LEN, read_stored_salt};
use crate::{EvidenceError, ReadStorage, ShredKeys, TreeFile};
use proofgate_ledger::{
    Checkpoint, Hash, LedgerError, ShredKeyId, TlogProof, VerifyingKey, inclusion_proof, leaf_hash,
    record::{self, Record},
    verify_inclusion,
};
use std::io;
use std::path::Path;

/// Returns the proof that record `seq` is in the log, under the log's stored checkpoint. Nodes come
/// from the tree file, or from the records where the tree file is missing, short or wrong. The
/// function verifies the proof, and if `key` is given also the checkpoint's signature. The proof
/// includes the salt of the commitment in the record, if the salt is available.
///
/// # Errors
/// [`EvidenceError::NotCovered`] when no checkpoint covers the record yet (a crashed incarnation's last records are
/// covered by a note that its successor signs), [`EvidenceError::NoSuchRecord`], [`EvidenceError::Removed`] when the
/// retention job removed the log, [`EvidenceError::Corruption`] when the records do not lead to the signed root,
/// [`EvidenceError::Ledger`] when the checkpoint is refused, [`EvidenceError::Io`].
pub fn record_proof(
    storage: &dyn ReadStorage,
    incarnation_dir: &Path,
    seq: u64,
    key: Option<&VerifyingKey>,
) -> Result<TlogProof, EvidenceError> {
    let record = read_record(storage, incarnation_dir, seq)?;
    proof_for_record(storage, incarnation_dir, seq, &record, key)
}

/// Same as [`record_proof`], for a record whose stored bytes the caller has.
///
/// # Errors
/// Same as [`record_proof`].
pub fn proof_for_record(
    storage: &dyn ReadStorage,
    incarnation_dir: &Path,
    seq: u64,
    record: &[u8],
    key: Option<&VerifyingKey>,
) -> Result<TlogProof, EvidenceError> {
    let (proof, salt) = proof_with_keys(storage, incarnation_dir, seq, record, key, None)?;
    salt?;
    Ok(proof)
}

/// The availability of the salt of a record's commitment in a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaltAvailability {
    /// The record commits to no body.
    NotRequired,
    /// The proof includes the salt.
    Included,
    /// The salt was erased, or is missing.
    Unavailable,
    /// The salt needs this key of its tenant, which was not provided.
    KeyMissing(ShredKeyId),
}

/// Same as [`proof_for_record`], with the tenants' keys for salts that need one. Also returns
/// whether the salt is available, or the error of reading it. The proof is returned in either case.
///
/// # Errors
/// Same as [`record_proof`].
pub fn proof_with_keys(
    storage: &dyn ReadStorage,
    incarnation_dir: &Path,
    seq: u64,
    record: &[u8],
    key: Option<&VerifyingKey>,
    shred_keys: Option<&ShredKeys>,
) -> Result<(TlogProof, Result<SaltAvailability, EvidenceError>), EvidenceError> {
    let leaf = leaf_hash(record);
    let not_covered = |size| EvidenceError::NotCovered {
        dir: incarnation_dir.to_owned(),
        seq,
        size,
    };
    let covering = |note: String| -> Result<(String, Checkpoint), EvidenceError> {
        let signed = match key {
            Some(key) => Checkpoint::verify(&note, key)?,
            None => Checkpoint::parse_unverified(&note)?,
        };
        Ok((note, signed))
    };
    let own = checkpoint_file::read(storage, incarnation_dir)?
        .map(covering)
        .transpose()?;
    let own_size = own.as_ref().map_or(0, |(_, signed)| signed.size);
    let (note, signed) = match own {
        Some(own) if seq < own_size => own,
        _ => {
            let note = successor_note(storage, incarnation_dir)?.ok_or_else(|| not_covered(own_size))?;
            let (note, signed) = covering(note)?;
            if seq >= signed.size {
                return Err(not_covered(signed.size));
            }
            (note, signed)
        }
    };
    let hashes = inclusion_path(storage, incarnation_dir, seq, &leaf, &signed)?;
    let mut proof = TlogProof {
        extra: None,
        index: seq,
        hashes,
        checkpoint: note,
    };
    let salt = find_salt(storage, incarnation_dir, record, shred_keys).map(|salt| match salt {
        Ok(salt) => {
            proof.set_salt(&salt);
            SaltAvailability::Included
        }
        Err(other) => other,
    });
    Ok((proof, salt))
}

/// Returns the verified path from the leaf at `seq` to the root of a checkpoint of the log. The
/// caller must trust this checkpoint. Nodes come from the tree file, or from the records where the
/// tree file is missing, short or wrong.
///
/// # Errors
/// [`EvidenceError::Corruption`] when the records do not lead to the root; [`EvidenceError::NoSuchRecord`];
/// [`EvidenceError::Ledger`] for a number beyond the checkpoint; [`EvidenceError::Io`].
pub fn inclusion_path(
    storage: &dyn ReadStorage,
    incarnation_dir: &Path,
    seq: u64,
    leaf: &Hash,
    signed: &Checkpoint,
) -> Result<Vec<Hash>, EvidenceError> {
    let mut paths = inclusion_paths(storage, incarnation_dir, &[(seq, *leaf)], signed)?;
    Ok(paths.pop().unwrap_or_default())
}

/// Same as [`inclusion_path`], for several leaves. Nodes missing from the tree file are hashed once
/// for all leaves, and cached for later calls.
///
/// # Errors
/// Same as [`inclusion_path`].
pub fn inclusion_paths(
    storage: &dyn ReadStorage,
    incarnation_dir: &Path,
    leaves: &[(u64, Hash)],
    signed: &Checkpoint,
) -> Result<Vec<Vec<Hash>>, EvidenceError> {
    let leads_to_root = |(seq, leaf): &(u64, Hash), hashes: &Vec<Hash>| {
        verify_inclusion(leaf, *seq, signed.size, hashes, &signed.root).is_ok()
    };
    if let Some((index, _)) = leaves.iter().find(|(seq, _)| *seq >= signed.size) {
        let (index, size) = (*index, signed.size);
        return Err(LedgerError::IndexOutOfRange { index, size }.into());
    }
    let tree = TreeFile::open(storage, incarnation_dir).ok();
    let stored = |of: &(u64, Hash)| {
        let hashes = inclusion_proof(tree.as_ref()?, of.0, signed.size).ok()?;
        leads_to_root(of, &hashes).then_some(hashes)
    };
    let mut paths: Vec<Option<Vec<Hash>>> = leaves.iter().map(stored).collect();
    for whole in [false, true] {
        if paths.iter().all(Option::is_some) {
            break;
        }
        let rebuilt = rebuild_tree(storage, incarnation_dir, signed, whole)?;
        let nodes = RebuiltNodeReader::new(storage, incarnation_dir, &rebuilt);
        for (of, path) in leaves.iter().zip(&mut paths) {
            if path.is_some() {
                continue;
            }
            // If all records were hashed, no node came from the tree file.
            *path = match inclusion_proof(&nodes, of.0, signed.size) {
                Err(error) if rebuilt.is_complete() => return Err(error),
                found => found.ok().filter(|hashes| leads_to_root(of, hashes)),
            };
        }
        if rebuilt.is_complete() {
            break;
        }
    }
    let paths: Option<Vec<_>> = paths.into_iter().collect();
    paths.ok_or_else(|| EvidenceError::Corruption {
        path: incarnation_dir.join(CHECKPOINT_FILE),
        offset: 0,
        reason: format!(
            "the records do not hash to the root that the checkpoint signs at size {}",
            signed.size
        ),
    })
}

/// Returns the salt of the commitment in a record, or the reason why there is none.
fn find_salt(
    storage: &dyn ReadStorage,
    incarnation_dir: &Path,
    record: &[u8],
    shred_keys: Option<&ShredKeys>,
) -> Result<Result<[u8; SALT_LEN], SaltAvailability>, EvidenceError> {
    // Both commitments of an exchange use the salt of its admission.
    let (dir, seq) = match record::parse(record) {
        Ok(Record::Completion(completion)) => match &completion.incarnation {
            None => (incarnation_dir.to_owned(), completion.admission),
            Some(named) => {
                let named = parse_incarnation(named).map(|named| named.to_string());
                match named.zip(incarnation_dir.parent()) {
                    Some((named, shard)) => (shard.join(named), completion.admission),
                    None => return Ok(Err(SaltAvailability::Unavailable)),
                }
            }
        },
        Ok(record) => match record.committed_request() {
            Some(request) => (incarnation_dir.to_owned(), request.seq),
            None => return Ok(Err(SaltAvailability::NotRequired)),
        },
        Err(_) => return Ok(Err(SaltAvailability::NotRequired)),
    };
    let stored = match read_stored_salt(storage, &dir, seq) {
        Err(EvidenceError::Io {
            call: "open", source, ..
        }) if source.kind() == io::ErrorKind::NotFound => None,
        other => other?,
    };
    let Some(stored) = stored else {
        return Ok(Err(SaltAvailability::Unavailable));
    };
    // If only half of the salt is stored, the record of its request names the key.
    let begun = match read_record(storage, &dir, seq) {
        Err(error @ EvidenceError::Io { .. }) => return Err(error),
        Err(_) => return Ok(Err(SaltAvailability::Unavailable)),
        Ok(begun) => begun,
    };
    let begun = record::parse(&begun);
    let Some(request) = begun.as_ref().ok().and_then(Record::committed_request) else {
        return Ok(Err(SaltAvailability::Unavailable));
    };
    let Some(id) = request.shred_key else {
        return Ok(Ok(stored));
    };
    let key = shred_keys.and_then(|keys| keys.find(request.tenant, id));
    Ok(key
        .map(|key| key.derive_salt(&stored))
        .ok_or(SaltAvailability::KeyMissing(id)))
}

/// Returns the checkpoint that a later incarnation signed for all records of this incarnation, if
/// there is one.
///
/// # Errors
/// [`EvidenceError::Ledger`] when its signature is not by `key`; [`EvidenceError::Io`].
pub fn successor_checkpoint(
    storage: &dyn ReadStorage,
    incarnation_dir: &Path,
    key: &VerifyingKey,
) -> Result<Option<Checkpoint>, EvidenceError> {
    let note = successor_note(storage, incarnation_dir)?;
    Ok(note.map(|note| Checkpoint::verify(&note, key)).transpose()?)
}

/// Returns the largest checkpoint that a later incarnation signed for the records of this
/// incarnation. The signature is not verified.
///
/// # Errors
/// [`EvidenceError::Io`].
pub fn successor_note(
    storage: &dyn ReadStorage,
    incarnation_dir: &Path,
) -> Result<Option<String>, EvidenceError> {
    let own = incarnation_of(incarnation_dir)?;
    let Some(shard) = incarnation_dir.parent() else {
        return Ok(None);
    };
    let names = storage.list(shard).map_err(EvidenceError::io("list", shard))?;
    let later = names
        .iter()
        .filter_map(|name| parse_incarnation(name))
        .filter(|incarnation| *incarnation > own);
    let mut largest: Option<(u64, String)> = None;
    for successor in later {
        // Skip a note that cannot be read, because another note may cover the record. `fsck`
        // reports such a note.
        let note =
            match checkpoint_file::read_successor_note(storage, &shard.join(successor.to_string()), own) {
                Err(error) if error.is_damaged() => continue,
                other => other?,
            };
        let Some(note) = note else { continue };
        let Ok(signed) = Checkpoint::parse_unverified(&note) else {
            continue;
        };
        let speaks_for_own = signed.origin.ends_with(&format!("/{own}"));
        if speaks_for_own && largest.as_ref().is_none_or(|(size, _)| *size < signed.size) {
            largest = Some((signed.size, note));
        }
    }
    Ok(largest.map(|(_, note)| note))
}
