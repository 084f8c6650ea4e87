//! Checks the statements that the retention job signed about holds and their releases.

use super::scope::FsckKeys;
use crate::hold_statements;
use crate::report::{Finding, Verdict};
use crate::{EvidenceError, ReadStorage};
use std::path::Path;

/// Finding code: a file among the hold statements is invalid, not signed by the retention key, or
/// about another ledger.
const HOLD_STATEMENT_REFUSED: &str = "hold_statement_refused";
/// Finding code: the time of a statement is before the events that it refers to.
pub(super) const STATEMENT_BACKDATED: &str = "statement_backdated";

/// Checks the statements about holds. Without the retention key and the ledger key, there are no
/// findings.
pub(super) fn check(
    storage: &dyn ReadStorage,
    ledger: &Path,
    keys: FsckKeys<'_>,
) -> Result<Vec<Finding>, EvidenceError> {
    let (Some(key), Some(keeping)) = (keys.ledger, keys.retention) else {
        return Ok(Vec::new());
    };
    let mut findings = Vec::new();
    for (file, read) in hold_statements::read(storage, ledger, key.name(), keeping)? {
        let (code, message) = match read {
            Ok(statement) if statement.is_backdated() => {
                let message = format!(
                    "its times are impossible: hold {} was released before it was placed, or the statement is older than the hold or its release",
                    statement.hold
                );
                (STATEMENT_BACKDATED, message)
            }
            Ok(_) => continue,
            Err(why) => (
                HOLD_STATEMENT_REFUSED,
                format!("it is not a hold statement signed by the retention job: {why}"),
            ),
        };
        findings.push(Finding {
            file: file.display().to_string(),
            offset: 0,
            verdict: Verdict::Invalid,
            code: Some(code),
            message,
        });
    }
    Ok(findings)
}
