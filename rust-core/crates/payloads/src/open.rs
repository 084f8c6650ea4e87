//! Opens the stored bodies of an exchange and checks them against the exchange's records.

use crate::{BodySlot, PayloadError, PayloadKey};
use proofgate_evidence::layout::parse_incarnation;
use proofgate_evidence::payloads::{PayloadField, PayloadFiles};
use proofgate_evidence::{
    FoundRecord, ReadStorage, SearchMode, ShredKeys, find_records, key_successions, prove, read_stored_salt,
};
use proofgate_ledger::CommittedRequest;
use proofgate_ledger::commitment::commit;
use proofgate_ledger::record::{self, Completion, PayloadOutcome, Record};
use proofgate_ledger::{Hash, VerifyingKey};
use std::path::{Path, PathBuf};

/// A body of an exchange, or the reason why it is not available.
pub type BodyResult = Result<Vec<u8>, PayloadError>;

/// An admission that a checkpoint covers.
#[derive(Debug)]
pub(crate) struct CheckpointedAdmission {
    /// Origin of the log that holds the admission.
    pub(crate) origin: String,
    /// Directory of that log.
    pub(crate) dir: PathBuf,
    /// The record as stored.
    pub(crate) record: Vec<u8>,
}

/// An exchange with its stored bodies.
#[derive(Debug)]
pub struct ExchangePayloads {
    /// Directory of the log that holds the admission.
    pub dir: PathBuf,
    /// Number of the admission in that log.
    pub seq: u64,
    /// The admission as stored: JSON.
    pub admission: Vec<u8>,
    /// The record that ends the exchange, `completion` or `aborted`, as stored; `None` if no
    /// checkpoint covers such a record.
    pub end: Option<Vec<u8>>,
    /// The request body.
    pub request: BodyResult,
    /// The response body.
    pub response: BodyResult,
}

impl ExchangePayloads {
    /// Opens the stored bodies of an exchange whose records were verified.
    pub(crate) fn open(
        storage: &dyn ReadStorage,
        keys: &ShredKeys,
        admitted: CheckpointedAdmission,
        end: Option<Vec<u8>>,
    ) -> Result<Self, PayloadError> {
        let CheckpointedAdmission {
            origin,
            dir,
            record: admission,
        } = admitted;
        let files = PayloadFiles::open(storage, &dir)?;
        let (seq, request, response) = {
            let begun = record::parse(&admission)?;
            let Some(seq) = begun.committed_request().map(|request| request.seq) else {
                return Err(PayloadError::NoExchange(
                    "the given record is not an admission".to_owned(),
                ));
            };
            let completion = match end.as_deref().map(record::parse).transpose()? {
                Some(Record::Completion(completion)) => Some(completion),
                _ => None,
            };
            let stored = StoredBodies {
                storage,
                files: files.as_ref(),
                keys,
                origin: &origin,
                dir: &dir,
                start_record: &begun,
            };
            let of = |field| stored.body(field, completion.as_ref());
            (seq, of(PayloadField::Request), of(PayloadField::Response))
        };
        Ok(Self {
            dir,
            seq,
            admission,
            end,
            request,
            response,
        })
    }

    /// Returns one of the bodies.
    pub fn body(&self, field: PayloadField) -> &BodyResult {
        match field {
            PayloadField::Request => &self.request,
            PayloadField::Response => &self.response,
        }
    }
}

/// Opens a body of an exchange whose records were verified. `begun` is the admission, or the record
/// of a denied request. `log` is the origin and the directory of the log that holds this record.
///
/// # Errors
/// [`PayloadError`] with the reason why the body is not available.
pub fn stored_body(
    storage: &dyn ReadStorage,
    keys: &ShredKeys,
    log: (&str, &Path),
    (begun, completion): (&Record<'_>, Option<&Completion<'_>>),
    field: PayloadField,
) -> BodyResult {
    let (origin, dir) = log;
    let files = PayloadFiles::open(storage, dir)?;
    let stored = StoredBodies {
        storage,
        files: files.as_ref(),
        keys,
        origin,
        dir,
        start_record: begun,
    };
    stored.body(field, completion)
}

/// The stored bodies of one exchange.
struct StoredBodies<'s> {
    storage: &'s dyn ReadStorage,
    files: Option<&'s PayloadFiles>,
    keys: &'s ShredKeys,
    origin: &'s str,
    dir: &'s Path,
    start_record: &'s Record<'s>,
}

impl StoredBodies<'_> {
    fn body(&self, field: PayloadField, completion: Option<&Completion<'_>>) -> BodyResult {
        let not_stored = |why| PayloadError::NotStored {
            field: field.as_str(),
            why,
        };
        let request = self.start_record.committed_request();
        let request = request.ok_or_else(|| not_stored("no_commitment"))?;
        let commitment = match (field, completion) {
            (PayloadField::Request, _) => request.request,
            (PayloadField::Response, Some(completion)) => completion.response,
            (PayloadField::Response, None) => return Err(not_stored("no_completion")),
        };
        let claim = self.claim(field, completion);
        match claim {
            BodyClaim::Unknown | BodyClaim::Outcome(PayloadOutcome::Stored) => {}
            BodyClaim::Outcome(kept) => return Err(not_stored(kept.as_str())),
            BodyClaim::NotRequested => return Err(not_stored("committed")),
        }
        let placed = match self.files {
            Some(files) => files.locate(request.seq, field)?.map(|placed| (files, placed)),
            None => None,
        };
        if placed.is_none() && claim == BodyClaim::Unknown {
            return Err(not_stored(match self.start_record {
                Record::Rejection(_) => PayloadOutcome::Queued.as_str(),
                _ => "no_completion",
            }));
        }
        // Check the salt first, because a body whose salt was erased does not count as missing.
        let (key, salt) = self.key(&request)?;
        let (files, placed) = placed.ok_or(PayloadError::Missing {
            field: field.as_str(),
        })?;
        let place = BodySlot {
            origin: self.origin,
            seq: request.seq,
            field,
        };
        let body = key.open(&place, files.read_sealed(placed)?)?;
        require_match(&salt, field, &body, &commitment)?;
        Ok(body)
    }

    /// Returns the statement of the records about a body.
    fn claim(&self, field: PayloadField, completion: Option<&Completion<'_>>) -> BodyClaim {
        let said = match (self.start_record, completion) {
            (Record::Rejection(rejection), _) => rejection.payload,
            (_, None) => return BodyClaim::Unknown,
            (_, Some(completion)) => completion.payloads.map(|kept| match field {
                PayloadField::Request => kept.request,
                PayloadField::Response => kept.response,
            }),
        };
        match said {
            None => BodyClaim::NotRequested,
            Some(PayloadOutcome::Queued) => BodyClaim::Unknown,
            Some(kept) => BodyClaim::Outcome(kept),
        }
    }

    /// Derives the key of the exchange and its salt.
    fn key(&self, request: &CommittedRequest<'_>) -> Result<(PayloadKey, [u8; 32]), PayloadError> {
        let id = request.shred_key.ok_or(PayloadError::Refused)?;
        let half = read_stored_salt(self.storage, self.dir, request.seq)?.ok_or(PayloadError::SaltErased)?;
        let shred_key = self
            .keys
            .find(request.tenant, id)
            .ok_or_else(|| PayloadError::KeyMissing {
                tenant: request.tenant.to_owned(),
                id: id.to_string(),
            })?;
        let salt = shred_key.derive_salt(&half);
        Ok((PayloadKey::new(shred_key, &salt), salt))
    }
}

/// The statement of an exchange's records about one of its bodies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BodyClaim {
    /// The body was not to be stored.
    NotRequested,
    /// Outcome of storing the body.
    Outcome(PayloadOutcome),
    /// The body may be stored.
    Unknown,
}

fn require_match(
    salt: &[u8; 32],
    field: PayloadField,
    body: &[u8],
    commitment: &Hash,
) -> Result<(), PayloadError> {
    match commit(salt, field.as_str(), body) == *commitment {
        true => Ok(()),
        false => Err(PayloadError::Mismatch),
    }
}

/// Opens the stored bodies of one exchange in a ledger. First proves the exchange's records under
/// checkpoints of `key`.
///
/// # Errors
/// [`PayloadError::NoExchange`] when there is no such exchange; [`PayloadError::Evidence`] when its
/// admission is not covered by a checkpoint, was removed, or cannot be read. A body that is not
/// available is not an error of this function; its [`BodyResult`] contains the reason.
pub fn open_exchange(
    storage: &dyn ReadStorage,
    ledger: &Path,
    key: &VerifyingKey,
    keys: &ShredKeys,
    request_id: &str,
) -> Result<ExchangePayloads, PayloadError> {
    let key = key_successions::follow_successions(storage, ledger, key)?;
    let mut found = find_records(storage, ledger, request_id, SearchMode::ByTime)?;
    if found.is_empty() {
        found = find_records(storage, ledger, request_id, SearchMode::Scan)?;
    }
    let begins = |found: &FoundRecord| {
        let record = record::parse(&found.record);
        record.is_ok_and(|record| record.committed_request().is_some())
    };
    let (admissions, others): (Vec<_>, Vec<_>) = found.into_iter().partition(begins);
    let admission = match <[FoundRecord; 1]>::try_from(admissions) {
        Ok([admission]) => admission,
        Err(none) if none.is_empty() => {
            let why = format!("the ledger contains no admission of {request_id}");
            return Err(PayloadError::NoExchange(why));
        }
        Err(_) => {
            let why = format!("the ledger contains several admissions of {request_id}: run fsck");
            return Err(PayloadError::NoExchange(why));
        }
    };
    let signed = |found: &FoundRecord| {
        let proof = prove::proof_for_record(storage, &found.dir, found.seq, &found.record, Some(&key))?;
        Ok::<_, PayloadError>(proof.verify(&found.record, &key)?)
    };
    let origin = signed(&admission)?.origin;
    let mut end = None;
    for other in others {
        // A record that no checkpoint covers yet does not count.
        if is_end_of(&other, &admission) && signed(&other).is_ok() {
            end = Some(other.record);
        }
    }
    let admitted = CheckpointedAdmission {
        origin,
        dir: admission.dir,
        record: admission.record,
    };
    ExchangePayloads::open(storage, keys, admitted, end)
}

/// Returns whether a record ends the exchange that `admission` admitted.
fn is_end_of(record: &FoundRecord, admission: &FoundRecord) -> bool {
    ended_admission(&record.dir, &record.record)
        .is_some_and(|(dir, seq)| (dir, seq) == (admission.dir.clone(), admission.seq))
}

/// Returns the admission whose exchange a record in `dir` ends: the directory of the admission's
/// log, and its number in that log.
pub(crate) fn ended_admission(dir: &Path, record: &[u8]) -> Option<(PathBuf, u64)> {
    let (incarnation, seq) = match record::parse(record).ok()? {
        Record::Completion(completion) => (completion.incarnation, completion.admission),
        Record::Abort(aborted) => (Some(aborted.incarnation), aborted.admission),
        _ => return None,
    };
    let dir = match incarnation {
        None => dir.to_owned(),
        Some(named) => dir.parent()?.join(parse_incarnation(&named)?.to_string()),
    };
    Some((dir, seq))
}
