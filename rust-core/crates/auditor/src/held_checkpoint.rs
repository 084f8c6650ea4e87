//! Checkpoints of the aggregate log that are held outside the state. They show whether an empty or
//! old state was lost or rolled back.

use crate::{Auditor, AuditorError, Settings, StateStorage};
use proofgate_evidence::ReadStorage;
use proofgate_ledger::{Checkpoint, SigningKey, verify_consistency};
use std::sync::Arc;

impl Auditor {
    /// Opens a state that contains `held`, the signed note of an older checkpoint of its aggregate log. Without a held
    /// checkpoint, an empty state is initialized.
    ///
    /// # Errors
    /// [`AuditorError::HeldCheckpointRefused`] for a note of another log;
    /// [`AuditorError::StateLost`] and [`AuditorError::StateRolledBack`] for a state that does not
    /// contain `held`; same as [`Self::open`] and [`Self::create`].
    pub fn resume(
        volume: Arc<dyn ReadStorage>,
        state: Arc<dyn StateStorage>,
        signing: SigningKey,
        settings: Settings,
        held: Option<&str>,
    ) -> Result<Self, AuditorError> {
        let opened = Self::open(
            Arc::clone(&volume),
            Arc::clone(&state),
            signing.clone(),
            settings.clone(),
        );
        match (opened, held) {
            (Err(AuditorError::NoState), None) => Self::create(volume, state, signing, settings),
            (Err(AuditorError::NoState), Some(note)) => {
                Err(AuditorError::StateLost(verify_note(note, &signing)?.size))
            }
            (opened, None) => opened,
            (opened, Some(note)) => {
                let auditor = opened?;
                auditor.check_contains(&verify_note(note, &signing)?, &signing)?;
                Ok(auditor)
            }
        }
    }

    fn check_contains(&self, held: &Checkpoint, signing: &SigningKey) -> Result<(), AuditorError> {
        let published = self.published_log();
        // The newest signed checkpoint, which may have no quorum yet.
        let own = verify_note(&published.signed_checkpoint().1, signing)?;
        let set_back =
            |found: &str| AuditorError::StateRolledBack(format!("{} entries, but {found}", held.size));
        if own.size < held.size {
            return Err(set_back(&format!("the state has {}", own.size)));
        }
        // Every log is an extension of the empty log.
        if held.size == 0 {
            return Ok(());
        }
        let path = published.proof_for_witness(held.size, own.size)?;
        verify_consistency(held.size, &held.root, own.size, &own.root, &path)
            .map_err(|_| set_back("the entries in the state differ"))
    }
}

fn verify_note(note: &str, signing: &SigningKey) -> Result<Checkpoint, AuditorError> {
    let key = signing.verifying_key();
    let held = Checkpoint::verify(note, &key)
        .map_err(|error| AuditorError::HeldCheckpointRefused(error.to_string()))?;
    match held.origin == key.name() {
        true => Ok(held),
        false => Err(AuditorError::HeldCheckpointRefused(format!(
            "it belongs to the log {}",
            held.origin
        ))),
    }
}
