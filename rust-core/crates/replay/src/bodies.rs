//! The bodies of an exchange: as they were stored beside its log, or as somebody else kept them.

use std::io;

use proofgate_evidence::{EvidenceError, ReadStorage, ShredKeys, read_stored_salt};
use proofgate_ledger::commitment::reveal;
use proofgate_ledger::record::{self, Record};
use proofgate_payloads::{PayloadError, PayloadField, stored_body};

use crate::exchanges::Exchange;

/// A stable machine code of why a body is not there: `not_stored`, `erased` (half of its salt), `other_body` (it is not what
/// the record commits to), or one of the [payloads](PayloadError::code) or of the ledger.
pub type MissingReason = &'static str;

const NOT_STORED: MissingReason = "not_stored";
const ERASED: MissingReason = "erased";
const OTHER_BODY: MissingReason = "other_body";

impl Exchange {
    /// A body as it was stored, opened and compared with what the record commits to.
    ///
    /// # Errors
    /// Why it is not there.
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

    /// Requires that a record commits to a body.
    ///
    /// # Errors
    /// Why that does not hold, or cannot be told.
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
            // A copy without salts, such as a mirror's.
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
