//! Checks the destruction of shred keys that the retention job signed.

use super::scope::FsckKeys;
use crate::key_destructions::{self, DestroyedKeys, KEY_DESTRUCTIONS_DIR};
use crate::report::{Finding, Verdict};
use crate::{EvidenceError, ReadStorage};
use std::path::Path;

/// Finding code: a file among the key destructions is invalid, not signed by the retention key, or
/// about another ledger.
const KEY_DESTRUCTION_REFUSED: &str = "key_destruction_refused";
/// Finding code: a destruction was signed, but the key still exists.
const KEY_DESTRUCTION_UNFINISHED: &str = "key_destruction_unfinished";

/// Reads the destructions that the retention job signed; returns none without the ledger key and the retention key, or
/// when salts are not `wanted`.
pub(super) fn read(
    storage: &dyn ReadStorage,
    ledger: &Path,
    keys: FsckKeys<'_>,
    wanted: bool,
) -> Result<(DestroyedKeys, Vec<Finding>), EvidenceError> {
    let (Some(key), Some(keeping), true) = (keys.ledger, keys.retention, wanted) else {
        return Ok((DestroyedKeys::default(), Vec::new()));
    };
    let destroyed = key_destructions::read(storage, ledger, key.name(), keeping)?;
    let found = |file: &Path, verdict, code, message| Finding {
        file: file.display().to_string(),
        offset: 0,
        verdict,
        code: Some(code),
        message,
    };
    let mut findings: Vec<Finding> = destroyed
        .refused
        .iter()
        .map(|(file, why)| {
            let message = format!("it is not a key destruction signed by the retention job: {why}");
            found(file, Verdict::Invalid, KEY_DESTRUCTION_REFUSED, message)
        })
        .collect();
    let dir = ledger.join(KEY_DESTRUCTIONS_DIR);
    let there = destroyed
        .keys()
        .filter(|(tenant, key)| keys.shred.is_some_and(|keys| keys.find(tenant, *key).is_some()));
    findings.extend(there.map(|(tenant, key)| {
        let message =
            format!("the key {key} of {tenant} should have been destroyed but still exists: run shred again");
        found(&dir, Verdict::Incomplete, KEY_DESTRUCTION_UNFINISHED, message)
    }));
    Ok((destroyed, findings))
}
