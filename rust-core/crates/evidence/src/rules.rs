//! The rules for the records of a valid log. Recovery and `fsck` share this definition.
//!
//! A log starts with its `open`, and nothing follows a `seal`. Every record states its own number.
//! Each admission has exactly one end: a `completion` in the same log, or an `aborted` or
//! `completion` in a later log, which names the log of the admission. A completion states the
//! received part of a request body if, and only if, the body was still arriving at admission. The
//! admissions of each tenant are numbered from 1 without a gap. If a log was still being written
//! when its successor was opened, exactly one `takeover` states its end. This `takeover` is in the
//! successor, or in a later log if the successor ended too early. An `analysis` refers to an
//! earlier admission.

use crate::layout::parse_incarnation;
use proofgate_ledger::Hash;
use proofgate_ledger::record::{self, Record};
use std::collections::{BTreeMap, HashMap};
use ulid::Ulid;

/// The content of a log's `open` record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOpening {
    /// Origin of the log: `<ledger>/<shard>/<incarnation>`.
    pub origin: String,
    /// The second part of the origin.
    pub shard: u32,
    /// The vkey of the ledger key that signs this log; `None` when an older version wrote the log,
    /// which did not record the key.
    pub key: Option<String>,
    /// The previous log of the shard.
    pub predecessor: Option<Predecessor>,
}

/// The statement of a log about the previous log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// The incarnation of the previous log.
    pub incarnation: Ulid,
    /// Number of records of the previous log; for a running log, the size of its newest checkpoint.
    pub size: u64,
    /// Root of the previous log at that size.
    pub root: Hash,
    /// Whether the last record of the previous log was a seal.
    pub sealed: bool,
    /// Whether the previous log was still being written.
    pub running: bool,
}

/// The end of another log's admission in this log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForeignEnd {
    /// The log of the admission.
    pub incarnation: Ulid,
    /// Number of the admission in that log.
    pub admission: u64,
    /// Number of the record in this log that ends the exchange.
    pub seq: u64,
    /// Whether that record states the received part of the body; `None` for a record that cannot
    /// state it.
    pub received: Option<bool>,
}

/// An admission without an end so far.
#[derive(Clone, Debug, PartialEq, Eq)]
struct OpenAdmission {
    id: String,
    /// Whether the body was still arriving; `None` when the admission was not read.
    body_pending: Option<bool>,
}

/// The state of a log while its records are processed. The memory that it needs grows with the
/// number of open exchanges and of tenants, not with the log.
#[derive(Clone, Debug)]
pub struct LogTracker {
    incarnation: Ulid,
    opening: Option<LogOpening>,
    open_admissions: BTreeMap<u64, OpenAdmission>,
    /// Number of the newest admitted or denied request of each tenant.
    last_request_numbers: HashMap<String, u64>,
    /// Whether the records were processed from the start of the log.
    counted_from_start: bool,
    foreign_ends: Vec<ForeignEnd>,
    takeovers: Vec<(u64, Predecessor)>,
    sealed: bool,
    successor: Option<Ulid>,
    first_served: Option<u64>,
    complete: bool,
}

impl LogTracker {
    /// Creates the tracker for the log of an incarnation, before its first record.
    #[must_use]
    pub fn new(incarnation: Ulid) -> Self {
        Self {
            incarnation,
            opening: None,
            open_admissions: BTreeMap::new(),
            last_request_numbers: HashMap::new(),
            counted_from_start: true,
            foreign_ends: Vec::new(),
            takeovers: Vec::new(),
            sealed: false,
            successor: None,
            first_served: None,
            complete: true,
        }
    }

    /// Creates the tracker for the rest of a log whose first records were already checked. `open`
    /// holds the log's own admissions that have no end among those records, by number, with their
    /// request ids.
    #[must_use]
    pub fn resume(incarnation: Ulid, open: impl IntoIterator<Item = (u64, String)>) -> Self {
        Self {
            open_admissions: open
                .into_iter()
                .map(|(admission, id)| {
                    (
                        admission,
                        OpenAdmission {
                            id,
                            body_pending: None,
                        },
                    )
                })
                .collect(),
            counted_from_start: false,
            ..Self::new(incarnation)
        }
    }

    /// Returns the content of the `open` record, once it was processed.
    #[must_use]
    pub fn opening(&self) -> Option<&LogOpening> {
        self.opening.as_ref()
    }

    /// Returns the numbers of the admissions that have no end in this log so far.
    pub fn open_exchanges(&self) -> impl Iterator<Item = u64> {
        self.open_admissions.keys().copied()
    }

    /// Returns the request id of an admission that has no end in this log so far.
    #[must_use]
    pub fn open_request_id(&self, admission: u64) -> Option<&str> {
        self.open_admissions
            .get(&admission)
            .map(|admitted| admitted.id.as_str())
    }

    /// Returns whether the body of an admission without an end was still arriving; `None` when that is unknown.
    #[must_use]
    pub fn is_body_pending(&self, admission: u64) -> Option<bool> {
        self.open_admissions.get(&admission)?.body_pending
    }

    /// Returns the ends of other logs' admissions, in order.
    #[must_use]
    pub fn foreign_ends(&self) -> &[ForeignEnd] {
        &self.foreign_ends
    }

    /// Returns the statements of `takeover` records about the ends of earlier logs, with the
    /// numbers of those records.
    #[must_use]
    pub fn takeovers(&self) -> &[(u64, Predecessor)] {
        &self.takeovers
    }

    /// Returns whether the last record is a seal.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// Returns the incarnation that continues the log, according to the seal.
    #[must_use]
    pub fn successor(&self) -> Option<Ulid> {
        self.successor
    }

    /// Returns the number of the first record that is not `open`, `takeover` or `aborted`. From
    /// this record on the log has served requests. A log without such a record is the result of an
    /// interrupted start.
    #[must_use]
    pub fn first_served(&self) -> Option<u64> {
        self.first_served
    }

    /// Returns whether no record was lost. Only then are the admissions without an end known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Marks that records are missing before the next record. From now on it is unknown which
    /// admission a record ends, and the next request of each tenant may have any number.
    pub fn mark_missing(&mut self) {
        self.complete = false;
        self.open_admissions.clear();
        self.last_request_numbers.clear();
        self.counted_from_start = false;
    }

    /// Marks that no record follows, and releases the state that only the next record needs.
    pub fn finish(&mut self) {
        self.last_request_numbers = HashMap::new();
        self.counted_from_start = false;
    }

    /// Processes the record at `seq`.
    ///
    /// # Errors
    /// A description of the fault. The record counts as read in any case.
    pub fn process<'a>(&mut self, seq: u64, payload: &'a [u8]) -> Result<Record<'a>, String> {
        let followed_seal = std::mem::take(&mut self.sealed);
        let record = record::parse(payload).map_err(|error| format!("record {seq}: {error}"))?;
        self.sealed = matches!(record, Record::Seal(_));
        if record.seq() != seq {
            return Err(format!("record {seq} says that it is record {}", record.seq()));
        }
        if followed_seal {
            return Err(format!("record {seq} follows a seal"));
        }
        match &record {
            Record::Open(open) if seq == 0 => self.start(open)?,
            Record::Open(_) => {
                return Err(format!(
                    "record {seq} is an open record, but only the first record of a log may be an open record"
                ));
            }
            _ if seq == 0 => return Err("the first record is not an open record".to_owned()),
            Record::Abort(aborted) => {
                self.end_foreign(seq, &aborted.incarnation, aborted.admission, None)?;
            }
            Record::Takeover(takeover) => self.take_over(seq, takeover)?,
            other => {
                self.first_served.get_or_insert(seq);
                self.apply(seq, other)?;
            }
        }
        Ok(record)
    }

    fn start(&mut self, open: &record::Open<'_>) -> Result<(), String> {
        let origin = format!("{}/{}/{}", open.ledger, open.shard, open.incarnation);
        let predecessor = match &open.predecessor {
            None => None,
            Some(named) => Some(Predecessor {
                incarnation: parse_incarnation(&named.incarnation)
                    .ok_or_else(|| format!("{:?} is not a valid predecessor", named.incarnation))?,
                size: named.size,
                root: named.root,
                sealed: named.sealed,
                running: named.running,
            }),
        };
        self.opening = Some(LogOpening {
            origin,
            shard: open.shard,
            key: open.key.as_ref().map(|key| key.as_ref().to_owned()),
            predecessor,
        });
        if open.incarnation != self.incarnation.to_string() {
            return Err(format!("the log was opened by incarnation {}", open.incarnation));
        }
        Ok(())
    }

    fn apply(&mut self, seq: u64, record: &Record<'_>) -> Result<(), String> {
        match record {
            Record::Admission(admission) => {
                let admitted = OpenAdmission {
                    id: admission.id.as_ref().to_owned(),
                    body_pending: Some(admission.coming.is_some()),
                };
                self.open_admissions.insert(seq, admitted);
                self.count_request(seq, &admission.tenant, admission.tenant_seq)
            }
            Record::Rejection(rejection) => self.count_denied(seq, rejection),
            Record::Attempt(attempt) if attempt.incarnation.is_none() => {
                self.check_open(seq, attempt.admission, &attempt.id)
            }
            Record::Completion(completion) => {
                let received = completion.received.is_some();
                match &completion.incarnation {
                    Some(incarnation) => {
                        self.end_foreign(seq, incarnation, completion.admission, Some(received))
                    }
                    None => self.end_local(seq, completion.admission, &completion.id, received),
                }
            }
            Record::Analysis(analysis) => self.check_reference(seq, analysis),
            Record::Seal(seal) => self.seal(seq, seal),
            _ => Ok(()),
        }
    }

    /// Checks that an analysis names an earlier record or another log. Only the named record shows
    /// whether it is an admission.
    fn check_reference(&self, seq: u64, analysis: &record::Analysis<'_>) -> Result<(), String> {
        let refers = match &analysis.incarnation {
            None => analysis.admission < seq,
            Some(named) => parse_incarnation(named).is_some_and(|named| named != self.incarnation),
        };
        match refers {
            true => Ok(()),
            false => Err(format!(
                "record {seq} is an analysis of record {}, which is not an earlier record",
                analysis.admission
            )),
        }
    }

    /// Counts a denied request, and checks that fields of its record that belong together are all present.
    fn count_denied(&mut self, seq: u64, rejection: &record::Rejection<'_>) -> Result<(), String> {
        let Some(number) = rejection.tenant_seq else {
            return match rejection.request {
                Some(_) => Err(format!(
                    "record {seq} commits to a refused request, but does not state the tenant's request number"
                )),
                None => Ok(()),
            };
        };
        let whole = rejection.key.is_some()
            && rejection.model.is_some()
            && rejection.request.is_some() == rejection.salt.is_some();
        match rejection.tenant.as_ref().filter(|_| whole) {
            Some(tenant) => self.count_request(seq, tenant, number),
            None => Err(format!(
                "record {seq} is a denied request, but lacks its tenant, key, model or salt"
            )),
        }
    }

    fn count_request(&mut self, seq: u64, tenant: &str, number: u64) -> Result<(), String> {
        let wrong = |before: u64| {
            Err(format!(
                "record {seq} is request {number} of {tenant}, but this log has {before} earlier requests of that tenant"
            ))
        };
        match self.last_request_numbers.get_mut(tenant) {
            Some(newest) => {
                let before = std::mem::replace(newest, number);
                if before.checked_add(1) == Some(number) {
                    Ok(())
                } else {
                    wrong(before)
                }
            }
            None => {
                self.last_request_numbers.insert(tenant.to_owned(), number);
                match number {
                    1 => Ok(()),
                    2.. if !self.counted_from_start => Ok(()),
                    _ => wrong(0),
                }
            }
        }
    }

    fn check_open(&self, seq: u64, admission: u64, id: &str) -> Result<(), String> {
        match self.open_admissions.get(&admission) {
            Some(admitted) if admitted.id == id => Ok(()),
            None if !self.complete => Ok(()),
            _ => Err(format!(
                "record {seq} is an attempt of record {admission}, which is not an open admission of {id}"
            )),
        }
    }

    fn end_local(&mut self, seq: u64, admission: u64, id: &str, received: bool) -> Result<(), String> {
        match self.open_admissions.remove(&admission) {
            Some(admitted) if admitted.id == id => {
                check_agreement(seq, admission, admitted.body_pending, Some(received))
            }
            Some(_) => Err(format!(
                "record {seq} completes record {admission}, which admitted another exchange"
            )),
            None if self.complete => Err(format!(
                "record {seq} completes record {admission}, which is not an open admission"
            )),
            None => Ok(()),
        }
    }

    fn end_foreign(
        &mut self,
        seq: u64,
        incarnation: &str,
        admission: u64,
        received: Option<bool>,
    ) -> Result<(), String> {
        let incarnation = parse_incarnation(incarnation)
            .filter(|named| *named != self.incarnation)
            .ok_or_else(|| {
                format!("record {seq} ends an exchange of {incarnation:?}, which is not an earlier log")
            })?;
        self.foreign_ends.push(ForeignEnd {
            incarnation,
            admission,
            seq,
            received,
        });
        Ok(())
    }

    fn take_over(&mut self, seq: u64, takeover: &record::Takeover<'_>) -> Result<(), String> {
        let named = parse_incarnation(&takeover.incarnation).filter(|named| *named != self.incarnation);
        let Some(incarnation) = named else {
            return Err(format!(
                "record {seq} takes over {:?}, which is not an earlier log",
                takeover.incarnation
            ));
        };
        let before = self.opening.as_ref().and_then(|opened| opened.predecessor);
        let before = before.filter(|named| named.incarnation == incarnation);
        if self
            .takeovers
            .iter()
            .any(|(_, told)| told.incarnation == incarnation)
        {
            return Err(format!("record {seq} is a second takeover of {incarnation}"));
        }
        if before.is_some_and(|before| !before.running) {
            return Err(format!(
                "record {seq} takes over {incarnation}, which was not a running predecessor"
            ));
        }
        if let Some(before) = before.filter(|before| takeover.size < before.size) {
            return Err(format!(
                "record {seq} says that the predecessor ended with {} records, but {} had already been signed",
                takeover.size, before.size
            ));
        }
        let ended = Predecessor {
            incarnation,
            size: takeover.size,
            root: takeover.root,
            sealed: before.is_some(),
            running: false,
        };
        self.takeovers.push((seq, ended));
        Ok(())
    }

    fn seal(&mut self, seq: u64, seal: &record::Seal<'_>) -> Result<(), String> {
        self.successor = match &seal.successor {
            Some(named) => Some(
                parse_incarnation(named)
                    .filter(|named| *named != self.incarnation)
                    .ok_or_else(|| format!("record {seq} names {named:?}, which is not a valid successor"))?,
            ),
            None => None,
        };
        if seal.records == seq {
            Ok(())
        } else {
            Err(format!(
                "record {seq} is a seal of {} records, not of {seq}",
                seal.records
            ))
        }
    }
}

/// Checks that an end and its admission agree on whether the body was still arriving, as far as both are known.
///
/// # Errors
/// A description of the disagreement.
pub(crate) fn check_agreement(
    seq: u64,
    admission: u64,
    body_pending: Option<bool>,
    received: Option<bool>,
) -> Result<(), String> {
    match (body_pending, received) {
        (Some(true), Some(false)) => Err(format!(
            "record {seq} does not say how much was received of the body that was incomplete in record {admission}"
        )),
        (Some(false), Some(true)) => Err(format!(
            "record {seq} says how much was received of a body that record {admission} admitted in full"
        )),
        _ => Ok(()),
    }
}
