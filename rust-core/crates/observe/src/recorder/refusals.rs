//! Refusals, which are recorded individually within a budget and counted beyond it.
//!
//! A sender must not fill the volume with a flood of refusals, or keep the refusals of others out
//! of the log. Every tenant, and every sender without a tenant, therefore has its own budget. Like
//! the exchanges that the rules allow, refusals by the rules are limited only by their tenant's
//! limits. A denied request is recorded like an admission, with a number among its tenant's
//! requests.

use std::time::Instant;

use proofgate_base::clock::unix_micros;
use proofgate_base::rejection::Rejection;
use proofgate_ledger::record::{Gap, Rejection as RejectionRecord};

use super::refusal_budget::{RefusalGroup, UnrecordedRefusals};
use super::{ADDRESS_BYTES, KEY_NAME_BYTES, RECORD_BYTES, Recorder};
use crate::rejected_request::RejectedRequest;

/// Reasons in the gap records of refusals that were counted instead of recorded.
const FLOOD: &str = "refusal_flood";
const FULL: &str = "ledger_full";

impl Recorder {
    /// Records a refusal, or counts it if there are too many refusals or there is no space.
    pub fn reject(
        &self,
        now: u64,
        id: &str,
        rejection: &Rejection,
        refused: RejectedRequest<'_>,
    ) -> Option<u64> {
        if let Some(sender) = refused.sender.filter(|_| rejection.status == 401) {
            self.refused_keys.borrow_mut().add(sender);
        }
        let mut refusals = self.refusals.borrow_mut();
        if !refusals.allows(&refused) {
            refusals.count_unrecorded(now, refused.tenant, rejection.code, FLOOD);
            return None;
        }
        let bytes = RECORD_BYTES + ADDRESS_BYTES + KEY_NAME_BYTES;
        let Ok(mut room) = self.writer.borrow_mut().reserve(bytes) else {
            refusals.count_unrecorded(now, refused.tenant, rejection.code, FULL);
            return None;
        };
        let address = refused.client_address.map(|address| address.to_string());
        let record = |seq| RejectionRecord {
            seq,
            ts: now,
            id: id.into(),
            tenant: refused.tenant.map(Into::into),
            counted: refused.counted_key.as_ref().map(|key| key.as_str().into()),
            key_name: refused.key_name.as_deref().map(Into::into),
            shared_plan: refused.shared_plan.as_deref().map(Into::into),
            status: rejection.status,
            code: rejection.code.into(),
            endpoint: refused.endpoint.map(Into::into),
            bytes: refused.bytes as u64,
            policy: refused.policy.clone(),
            client_address: address.as_deref().map(Into::into),
            config: self.config(),
            ..RejectionRecord::default()
        };
        self.append(&mut room, |seq, out| record(seq).encode_into(out))
            .ok()
    }

    /// Counts a denied request that has no record, because there is no space for it.
    pub fn count_unrecorded_denial(&self, now: u64, tenant: &str, rejection: &Rejection) {
        let mut refusals = self.refusals.borrow_mut();
        refusals.count_unrecorded(now, Some(tenant), rejection.code, FULL);
    }

    /// Starts a new second of refusals. Records the counts of the unrecorded refusals, and returns
    /// their number. Writes the addresses of refused keys to the worker's log.
    pub fn start_second(&self) -> u64 {
        if let Some(line) = self.refused_keys.borrow_mut().take_line() {
            proofgate_log::warning!("{line}");
        }
        let mut refusals = self.refusals.borrow_mut();
        refusals.start_second(Instant::now());
        let mut recorded = 0;
        refusals.unrecorded.retain(|what, missed| {
            let is_recorded = self.record_unrecorded(what, *missed);
            recorded += if is_recorded { missed.count } else { 0 };
            !is_recorded
        });
        recorded
    }

    /// Records a number of unrecorded refusals. Returns whether there was space for the record.
    fn record_unrecorded(&self, what: &RefusalGroup, missed: UnrecordedRefusals) -> bool {
        let Ok(mut room) = self.writer.borrow_mut().reserve(RECORD_BYTES) else {
            return false;
        };
        let gap = |seq| Gap {
            seq,
            ts: unix_micros(),
            first_ts: missed.first,
            last_ts: missed.last,
            count: missed.count,
            reason: what.reason.into(),
            code: what.code.into(),
            tenant: what.tenant.as_deref().map(Into::into),
            config: self.config(),
        };
        self.append(&mut room, |seq, out| gap(seq).encode_into(out))
            .is_ok()
    }
}
