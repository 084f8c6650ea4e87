//! Opens what was stored of an exchange, as its records say.

use crate::{BodySlot, PayloadError, PayloadKey};
use proofgate_evidence::layout::parse_incarnation;
use proofgate_evidence::payloads::{Field, PayloadFiles};
use proofgate_evidence::{
    FoundRecord, ReadStorage, Search, ShredKeys, find, key_successions, prove, stored_salt,
};
use proofgate_ledger::commitment::commit;
use proofgate_ledger::record::{self, Admission, Completion, PayloadOutcome, Record};
use proofgate_ledger::{Hash, VerifyingKey};
use std::path::{Path, PathBuf};

/// A body of an exchange, or why it is not there.
pub type Body = Result<Vec<u8>, PayloadError>;

/// An admission under a checkpoint.
#[derive(Debug)]
pub(crate) struct CheckpointedAdmission {
    /// Of the log that holds it.
    pub(crate) origin: String,
    /// The directory of that.
    pub(crate) dir: PathBuf,
    /// As it is stored.
    pub(crate) record: Vec<u8>,
}

/// An exchange with what was stored of it.
#[derive(Debug)]
pub struct Exchange {
    /// The directory of the log that holds its admission.
    pub dir: PathBuf,
    /// Number of its admission there.
    pub seq: u64,
    /// The admission, as it is stored: JSON.
    pub admission: Vec<u8>,
    /// Its end, a completion or an aborted, as it is stored; `None` where no end is under a checkpoint.
    pub end: Option<Vec<u8>>,
    /// What the client sent.
    pub request: Body,
    /// What it was answered.
    pub response: Body,
}

impl Exchange {
    /// Opens what is stored of an exchange whose records were verified.
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
            let Record::Admission(admitted) = record::parse(&admission)? else {
                return Err(PayloadError::NoExchange("it is not an admission".to_owned()));
            };
            let completion = match end.as_deref().map(record::parse).transpose()? {
                Some(Record::Completion(completion)) => Some(completion),
                _ => None,
            };
            let stored = Stored {
                storage,
                files: files.as_ref(),
                keys,
                origin: &origin,
                dir: &dir,
                admission: &admitted,
            };
            let of = |field| stored.body(field, completion.as_ref());
            (admitted.seq, of(Field::Request), of(Field::Response))
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

    /// One of its bodies.
    pub fn body(&self, field: Field) -> &Body {
        match field {
            Field::Request => &self.request,
            Field::Response => &self.response,
        }
    }
}

/// A body of an exchange whose records were verified. `log`: origin and directory of the log that holds its admission.
///
/// # Errors
/// [`PayloadError`]: why it is not there.
pub fn stored_body(
    storage: &dyn ReadStorage,
    keys: &ShredKeys,
    log: (&str, &Path),
    (admission, completion): (&Admission<'_>, Option<&Completion<'_>>),
    field: Field,
) -> Body {
    let (origin, dir) = log;
    let files = PayloadFiles::open(storage, dir)?;
    let stored = Stored {
        storage,
        files: files.as_ref(),
        keys,
        origin,
        dir,
        admission,
    };
    stored.body(field, completion)
}

/// What is stored of one exchange.
struct Stored<'s> {
    storage: &'s dyn ReadStorage,
    files: Option<&'s PayloadFiles>,
    keys: &'s ShredKeys,
    origin: &'s str,
    dir: &'s Path,
    admission: &'s Admission<'s>,
}

impl Stored<'_> {
    fn body(&self, field: Field, completion: Option<&Completion<'_>>) -> Body {
        let not_stored = |why| PayloadError::NotStored {
            field: field.as_str(),
            why,
        };
        let claim = completion.map(|completion| {
            completion.payloads.map(|kept| match field {
                Field::Request => kept.request,
                Field::Response => kept.response,
            })
        });
        let commitment = match (field, completion) {
            (Field::Request, _) => self.admission.request,
            (Field::Response, Some(completion)) => completion.response,
            (Field::Response, None) => return Err(not_stored("no_completion")),
        };
        match claim {
            None | Some(Some(PayloadOutcome::Stored)) => {}
            Some(Some(kept)) => return Err(not_stored(kept.as_str())),
            Some(None) => return Err(not_stored("committed")),
        }
        let placed = match self.files {
            Some(files) => files
                .place(self.admission.seq, field)?
                .map(|placed| (files, placed)),
            None => None,
        };
        if placed.is_none() && claim.is_none() {
            return Err(not_stored("no_completion"));
        }
        // First of all: of what was erased, nothing is missing.
        let (key, salt) = self.key()?;
        let (files, placed) = placed.ok_or(PayloadError::Missing {
            field: field.as_str(),
        })?;
        let place = BodySlot {
            origin: self.origin,
            seq: self.admission.seq,
            field,
        };
        let body = key.open(&place, files.sealed(placed)?)?;
        require(&salt, field, &body, &commitment)?;
        Ok(body)
    }

    /// The key of the exchange, and its salt.
    fn key(&self) -> Result<(PayloadKey, [u8; 32]), PayloadError> {
        let id = self.admission.shred_key.ok_or(PayloadError::Refused)?;
        let half =
            stored_salt(self.storage, self.dir, self.admission.seq)?.ok_or(PayloadError::SaltErased)?;
        let shred_key =
            self.keys
                .find(&self.admission.tenant, id)
                .ok_or_else(|| PayloadError::KeyMissing {
                    tenant: self.admission.tenant.clone().into_owned(),
                    id: id.to_string(),
                })?;
        let salt = shred_key.salt(&half);
        Ok((PayloadKey::new(shred_key, &salt), salt))
    }
}

fn require(salt: &[u8; 32], field: Field, body: &[u8], commitment: &Hash) -> Result<(), PayloadError> {
    match commit(salt, field.as_str(), body) == *commitment {
        true => Ok(()),
        false => Err(PayloadError::Mismatch),
    }
}

/// Opens what is stored of one exchange in a ledger. Its records are proved under checkpoints of `key` first.
///
/// # Errors
/// [`PayloadError::NoExchange`] when there is none; [`PayloadError::Evidence`] when its admission is not covered by a
/// checkpoint, was removed, or cannot be read. Why a body is not there stands in its place.
pub fn show(
    storage: &dyn ReadStorage,
    ledger: &Path,
    key: &VerifyingKey,
    keys: &ShredKeys,
    request_id: &str,
) -> Result<Exchange, PayloadError> {
    let key = key_successions::follow(storage, ledger, key)?;
    let mut found = find(storage, ledger, request_id, Search::ByTime)?;
    if found.is_empty() {
        found = find(storage, ledger, request_id, Search::Scan)?;
    }
    let is_admission = |found: &FoundRecord| matches!(record::parse(&found.record), Ok(Record::Admission(_)));
    let (admissions, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_admission);
    let admission = match <[FoundRecord; 1]>::try_from(admissions) {
        Ok([admission]) => admission,
        Err(none) if none.is_empty() => {
            let why = format!("the ledger holds no admission of {request_id}");
            return Err(PayloadError::NoExchange(why));
        }
        Err(_) => {
            let why = format!("the ledger holds several admissions of {request_id}: run fsck");
            return Err(PayloadError::NoExchange(why));
        }
    };
    let signed = |found: &FoundRecord| {
        let proof = prove::proof_of(storage, &found.dir, found.seq, &found.record, Some(&key))?;
        Ok::<_, PayloadError>(proof.verify(&found.record, &key)?)
    };
    let origin = signed(&admission)?.origin;
    let mut end = None;
    for other in others {
        // What no checkpoint covers yet is no end yet.
        if ends(&other, &admission) && signed(&other).is_ok() {
            end = Some(other.record);
        }
    }
    let admitted = CheckpointedAdmission {
        origin,
        dir: admission.dir,
        record: admission.record,
    };
    Exchange::open(storage, keys, admitted, end)
}

/// Whether a record is the end of what another admitted.
fn ends(record: &FoundRecord, admission: &FoundRecord) -> bool {
    end_of(&record.dir, &record.record)
        .is_some_and(|(dir, seq)| (dir, seq) == (admission.dir.clone(), admission.seq))
}

/// Which admission a record is the end of, in `dir`: the directory of its log, and its number there.
pub(crate) fn end_of(dir: &Path, record: &[u8]) -> Option<(PathBuf, u64)> {
    let (incarnation, seq) = match record::parse(record).ok()? {
        Record::Completion(completion) => (completion.incarnation, completion.admission),
        Record::Aborted(aborted) => (Some(aborted.incarnation), aborted.admission),
        _ => return None,
    };
    let dir = match incarnation {
        None => dir.to_owned(),
        Some(named) => dir.parent()?.join(parse_incarnation(&named)?.to_string()),
    };
    Some((dir, seq))
}
