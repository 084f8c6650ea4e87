//! Checks which key of the ledger may sign which log.

use super::scanned_log::ScannedLog;
use crate::key_successions::{self, KEY_SUCCESSIONS_DIR};
use crate::report::{Finding, KeyReport, Verdict};
use crate::{EvidenceError, ReadStorage};
use proofgate_ledger::VerifyingKey;
use std::path::Path;

/// Finding code: a file among the statements of key succession is not signed by both of its keys.
const KEY_SUCCESSION_REFUSED: &str = "key_succession_refused";
/// Finding code: statements contradict each other.
const KEY_LINEAGE_FORKED: &str = "key_line_forked";
/// Finding code: a log is signed by a key that its `open` does not name.
const KEY_DIFFERS: &str = "key_differs";
/// Finding code: a log is signed by an older key than an earlier log of its shard.
const KEY_OUT_OF_ORDER: &str = "key_out_of_turn";

/// Returns the keys of a lineage, oldest first.
pub(super) fn key_reports(key: Option<&VerifyingKey>) -> Vec<KeyReport> {
    let line = key.into_iter().flat_map(VerifyingKey::lineage);
    line.map(|member| KeyReport {
        vkey: member.key.to_text(),
        until: member.valid_until,
    })
    .collect()
}

/// Adds the lineage from the ledger's statements to the key. Invalid statements are reported. If
/// statements contradict each other, the lineage is not extended.
pub(super) fn follow_successions(
    storage: &dyn ReadStorage,
    ledger: &Path,
    key: Option<&VerifyingKey>,
) -> Result<(Option<VerifyingKey>, Vec<Finding>), EvidenceError> {
    let found = |file: &Path, code, message| Finding {
        file: file.display().to_string(),
        offset: 0,
        verdict: Verdict::Invalid,
        code: Some(code),
        message,
    };
    let kept = key_successions::read(storage, ledger)?;
    let mut findings: Vec<Finding> = Vec::new();
    for (file, why) in &kept.refused {
        findings.push(found(
            file,
            KEY_SUCCESSION_REFUSED,
            format!("it is not a valid statement of key succession: {why}"),
        ));
    }
    let Some(key) = key else {
        return Ok((None, findings));
    };
    match key.with_successions(&kept.statements()) {
        Ok(line) => Ok((Some(line), findings)),
        Err(error) => {
            findings.push(found(
                &ledger.join(KEY_SUCCESSIONS_DIR),
                KEY_LINEAGE_FORKED,
                error.to_string(),
            ));
            Ok((Some(key.clone()), findings))
        }
    }
}

/// Compares the key that signed a log with the key that its `open` names.
pub(super) fn check_signer(log: &mut ScannedLog) {
    let named = log.tracker.opening().and_then(|opened| opened.key.as_ref());
    let Some((named, signer)) = named.zip(log.signer.as_ref()) else {
        return;
    };
    let same = VerifyingKey::from_text(named).is_ok_and(|named| named.is_same_key(signer));
    if !same {
        let message = format!("its open record names the key {named}, but another key signed the log");
        log.add_finding_with_code(KEY_DIFFERS, Verdict::Invalid, message);
    }
}

/// Reports logs that are signed by an older key than an earlier log of the shard. After the first
/// log with a new key, the older keys may not sign logs of the shard. `logs` are ordered from the
/// oldest.
pub(super) fn check_key_order(logs: &mut [ScannedLog], key: Option<&VerifyingKey>) {
    let Some(key) = key else { return };
    let mut newest = 0;
    for log in logs {
        let Some(place) = log.signer.as_ref().and_then(|signer| key.position_of(signer)) else {
            continue;
        };
        if place < newest {
            let message =
                "it is signed by an older key, although an earlier log is signed by a newer key".to_owned();
            log.add_finding_with_code(KEY_OUT_OF_ORDER, Verdict::Invalid, message);
        }
        newest = newest.max(place);
    }
}
