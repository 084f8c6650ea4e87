//! Checks which keys and policies may be used together for auditing and cosigning.

use crate::AuditorError;
use crate::catalogue::Identity;
use crate::settings::Settings;
use proofgate_ledger::{SigningKey, TrustPolicy};

/// Refuses a policy for other logs, and a policy whose quorum can never be reached.
pub(crate) fn validate_policy(policy: &TrustPolicy, signing: &SigningKey) -> Result<(), AuditorError> {
    let own = signing.verifying_key();
    if !policy.logs().is_empty() && !policy.logs().contains(&own.without_lineage()) {
        return Err(AuditorError::InvalidPolicy(format!(
            "none of its log lines names this auditor's key: add `log {}`",
            own.to_text()
        )));
    }
    let asked = |place: usize| {
        policy
            .witnesses()
            .get(place)
            .is_some_and(|witness| witness.url.is_some())
    };
    match policy.is_quorum(&asked) {
        true => Ok(()),
        false => Err(AuditorError::InvalidPolicy(
            "the witnesses with a URL do not form a quorum, so nothing would ever be published".to_owned(),
        )),
    }
}

/// Returns the identity of an auditor. Neither the auditor's key nor the ledger's key may be valid
/// for the other's logs, and the retention key must not be a key of the auditor.
pub(crate) fn build_identity(settings: &Settings, signing: &SigningKey) -> Result<Identity, AuditorError> {
    let (ledger, own) = (&settings.key, signing.verifying_key());
    let refused = |why: String| Err(AuditorError::InvalidKey(why));
    if own.shares_key_with(ledger) {
        return refused(
            "the auditor's signing key is the ledger's key: create a separate key for the auditor, and give that key to no worker"
                .to_owned(),
        );
    }
    if !own.is_independent_of(ledger) {
        return refused(format!(
            "the auditor's key is named {}, and the ledger's key is named {}: the names must differ, and neither name may be below the other, because a key can sign for all names below its own name",
            own.name(),
            ledger.name()
        ));
    }
    let keeping = settings.retention_key.as_ref();
    if keeping.is_some_and(|keeping| keeping.shares_key_with(&own) || !keeping.is_independent_of(ledger)) {
        return refused(
            "the retention key is the auditor's key, or could sign for the ledger: create a separate retention key"
                .to_owned(),
        );
    }
    Ok(Identity {
        v: 1,
        ledger: ledger.to_text(),
        auditor: own.to_text(),
    })
}
