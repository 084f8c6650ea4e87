//! Which key of the ledger speaks for which log.

use super::scanned::Scanned;
use crate::key_successions::{self, KEY_SUCCESSIONS};
use crate::report::{Finding, KeyReport, Verdict};
use crate::{EvidenceError, ReadStorage};
use proofgate_ledger::VerifyingKey;
use std::path::Path;

/// A file that stands among the statements of succession and is none that both of its keys signed.
const REFUSED: &str = "key_succession_refused";
/// Statements that contradict each other.
const FORKED: &str = "key_line_forked";
/// A log is signed by another key than the one that its `open` names.
const DIFFERS: &str = "key_differs";
/// A log is signed by an older key than a log before it on its shard.
const OUT_OF_TURN: &str = "key_out_of_turn";

/// The keys of a line, oldest first.
pub(super) fn report(key: Option<&VerifyingKey>) -> Vec<KeyReport> {
    let line = key.into_iter().flat_map(VerifyingKey::line);
    line.map(|member| KeyReport {
        vkey: member.key.to_text(),
        until: member.until,
    })
    .collect()
}

/// The key with those of its line that the ledger's statements lead to; what is wrong with them is told, and then they
/// lead nowhere.
pub(super) fn follow(
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
            REFUSED,
            format!("not a valid statement of key succession: {why}"),
        ));
    }
    let Some(key) = key else {
        return Ok((None, findings));
    };
    match key.with_successions(&kept.statements()) {
        Ok(line) => Ok((Some(line), findings)),
        Err(error) => {
            findings.push(found(&ledger.join(KEY_SUCCESSIONS), FORKED, error.to_string()));
            Ok((Some(key.clone()), findings))
        }
    }
}

/// Holds the key that signed a log against the one that its `open` names.
pub(super) fn compare(log: &mut Scanned) {
    let named = log.rules.opened().and_then(|opened| opened.key.as_ref());
    let Some((named, signer)) = named.zip(log.signer.as_ref()) else {
        return;
    };
    let same = VerifyingKey::from_text(named).is_ok_and(|named| named.is_same_point(signer));
    if !same {
        let message = format!("its open record names the key {named}, but another key signed the log");
        log.find_named(DIFFERS, Verdict::Invalid, message);
    }
}

/// Tells of logs of a shard, oldest first, that are signed by an older key than one before: from the first log of a new key
/// on, the shard is that one's.
pub(super) fn compare_turns(logs: &mut [Scanned], key: Option<&VerifyingKey>) {
    let Some(key) = key else { return };
    let mut newest = 0;
    for log in logs {
        let Some(place) = log.signer.as_ref().and_then(|signer| key.place_of(signer)) else {
            continue;
        };
        if place < newest {
            let message = "it is signed by an older key than an earlier log".to_owned();
            log.find_named(OUT_OF_TURN, Verdict::Invalid, message);
        }
        newest = newest.max(place);
    }
}
