//! The keys of the ledger that a worker is given: the one that it signs with, and at its first start with that the one
//! before.

use std::path::Path;

use proofgate_base::Error;
use proofgate_config::Ledger;
use proofgate_evidence::key_successions;
use proofgate_ledger::{KeySuccession, SigningKey, VerifyingKey};
use proofgate_wal::FileStorage;

/// Holds secrets and has no `Debug`.
#[derive(Clone)]
pub struct LedgerKeys {
    pub signing: SigningKey,
    pub(crate) former_key: Option<SigningKey>,
    /// The notes of succession that came with it.
    pub(crate) successions: Vec<String>,
}

impl LedgerKeys {
    /// # Errors
    /// [`Error::Config`] when the text is no key, is another ledger's, or holds a former key without a statement that the
    /// one which signs follows it.
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
        // Before the first statement stand the keys.
        let successions = notes.filter(|note| KeySuccession::verify(note).is_ok());
        Ok(Self {
            successions: successions.collect(),
            signing,
            former_key: former,
        })
    }

    /// The key that signs, with all keys before and after it that are known here and to the ledger in `directory`.
    ///
    /// # Errors
    /// [`Error::Ledger`] when the ledger's statements cannot be read or contradict each other.
    pub fn verifying_key(&self, directory: &Path) -> Result<VerifyingKey, Error> {
        let failed = |error: &dyn std::fmt::Display| Error::Ledger(format!("key successions: {error}"));
        let kept = key_successions::read(&FileStorage, directory).map_err(|error| failed(&error))?;
        let line = self.signing.verifying_key().with_successions(&kept.statements());
        line.map_err(|error| failed(&error))
    }

    /// The last moment at which the key that signs may begin a log, in unix microseconds, if another one follows it.
    ///
    /// # Errors
    /// As [`Self::verifying_key`].
    pub fn log_start_deadline(&self, directory: &Path) -> Result<Option<u64>, Error> {
        let line = self.verifying_key(directory)?;
        let own = line
            .lineage()
            .into_iter()
            .find(|member| member.key.is_same_key(&line));
        Ok(own.and_then(|member| member.valid_until))
    }
}
