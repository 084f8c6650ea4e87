//! The ledger keys of a worker: the signing key, and at the first start with a new signing key also
//! the previous key.

use std::path::Path;

use proofgate_base::Error;
use proofgate_config::Ledger;
use proofgate_evidence::key_successions;
use proofgate_ledger::{KeySuccession, SigningKey, VerifyingKey};
use proofgate_wal::FileStorage;

/// The ledger keys of a worker. They are secret, so there is no `Debug`.
#[derive(Clone)]
pub struct LedgerKeys {
    pub signing: SigningKey,
    pub(crate) former_key: Option<SigningKey>,
    /// The notes of key succession in the same file.
    pub(crate) successions: Vec<String>,
}

impl LedgerKeys {
    /// # Errors
    /// [`Error::Config`] if the text is not a key, is for another ledger, or contains a former key without a statement that
    /// the signing key succeeds it.
    pub fn new(config: &Ledger) -> Result<Self, Error> {
        let text = &config.signing_key.0;
        let read = proofgate_signer::read_keys(text);
        let (signing, former) =
            read.map_err(|error| Error::Config(format!("ledger signing key: {error}")))?;
        if signing.name() != config.name {
            return Err(Error::Config(format!(
                "the ledger is named {:?}, but its signing key is for {:?}",
                config.name,
                signing.name()
            )));
        }
        let notes = KeySuccession::split_notes(text).into_iter();
        // The keys come before the first statement.
        let successions = notes.filter(|note| KeySuccession::verify(note).is_ok());
        Ok(Self {
            successions: successions.collect(),
            signing,
            former_key: former,
        })
    }

    /// Returns the verifying key of the signing key, with all predecessors and successors that the
    /// key file and the ledger in `directory` name.
    ///
    /// # Errors
    /// [`Error::Ledger`] if the ledger's statements cannot be read or contradict each other.
    pub fn verifying_key(&self, directory: &Path) -> Result<VerifyingKey, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::Ledger(format!("key successions: {error}"));
        let kept = key_successions::read(&FileStorage, directory).map_err(|error| failed(&error))?;
        let line = self.signing.verifying_key().with_successions(&kept.statements());
        line.map_err(|error| failed(&error))
    }

    /// Returns the last time at which the signing key may start a log, in Unix microseconds; `None`
    /// if no other key succeeds it.
    ///
    /// # Errors
    /// Same as [`Self::verifying_key`].
    pub fn log_start_deadline(&self, directory: &Path) -> Result<Option<u64>, Error> {
        let line = self.verifying_key(directory)?;
        let own = line
            .lineage()
            .into_iter()
            .find(|member| member.key.is_same_key(&line));
        Ok(own.and_then(|member| member.valid_until))
    }
}
