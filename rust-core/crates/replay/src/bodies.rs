//! The bodies of an exchange: stored beside its log or elsewhere.

use std::io;

use proofgate_evidence::{EvidenceError, ReadStorage, ShredKeys, read_stored_salt};
use proofgate_ledger::commitment::reveal;
use proofgate_ledger::record::{self, Record};
use proofgate_payloads::{PayloadError, PayloadField, stored_body};

use crate::exchanges::Exchange;

/// A stable machine code for why a body is unavailable: `not_stored`, `erased` (its salt, or half of it, was destroyed),
/// `other_body` (it does not match the record's commitment), or a code of the [payloads](PayloadError::code) or the
/// ledger.
pub type MissingReason = &'static str;

const NOT_STORED: MissingReason = "not_stored";
const ERASED: MissingReason = "erased";
const OTHER_BODY: MissingReason = "other_body";

impl Exchange {
    /// Reads a stored body, decrypts it and verifies it against the record's commitment.
    ///
    /// # Errors
    /// The reason why the body is unavailable.
    pub fn read_stored_body(
        &self,
        storage: &dyn ReadStorage,
        keys: &ShredKeys,
        field: PayloadField,
    ) -> Result<Vec<u8>, MissingReason> {
        let begun = record::parse(&self.first_record).map_err(|_| NOT_STORED)?;
        let end = self
            .completion
            .as_deref()
            .and_then(|stored| record::parse(stored).ok());
        let completion = match &end {
            Some(Record::Completion(completion)) => Some(completion),
            _ => None,
        };
        let log = (&*self.origin, &*self.dir);
        stored_body(storage, keys, log, (&begun, completion), field).map_err(|error| match error {
            PayloadError::NotStored { .. } => NOT_STORED,
            PayloadError::SaltErased => ERASED,
            PayloadError::Mismatch => OTHER_BODY,
            error => error.code(),
        })
    }

    /// Verifies that a record commits to a body.
    ///
    /// # Errors
    /// The reason why the record does not commit to the body, or why this cannot be verified.
    pub fn check_commitment(
        &self,
        storage: &dyn ReadStorage,
        keys: &ShredKeys,
        field: PayloadField,
        body: &[u8],
    ) -> Result<(), MissingReason> {
        let begun = record::parse(&self.first_record).map_err(|_| NOT_STORED)?;
        let request = begun.committed_request().ok_or(NOT_STORED)?;
        let half = match read_stored_salt(storage, &self.dir, self.seq) {
            // The ledger is a copy without salts, such as a mirror.
            Err(EvidenceError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => None,
            stored => stored.map_err(|error| error.code())?,
        };
        let half = half.ok_or(ERASED)?;
        let salt = match request.shred_key {
            None => half,
            Some(id) => {
                let key = keys.find(request.tenant, id);
                key.ok_or("shred_key_missing")?.derive_salt(&half)
            }
        };
        let record = match field {
            PayloadField::Request => Some(begun),
            PayloadField::Response => self
                .completion
                .as_deref()
                .and_then(|stored| record::parse(stored).ok()),
        };
        let opened = record.ok_or(NOT_STORED)?;
        match reveal(&opened, &salt, body) {
            Ok(name) if name == field.as_str() => Ok(()),
            _ => Err(OTHER_BODY),
        }
    }
}
