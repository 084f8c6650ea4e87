//! Refusals, recorded one by one up to a rate and counted beyond it.

use std::time::{Duration, Instant};

use proofgate_ledger::record::{Gap, Rejection as RejectionRecord};

use super::{RECORD_BYTES, Recorder};
use crate::clock::unix_micros;
use crate::rejection::{RejectedRequest, Rejection};

/// Refusals recorded one by one in each second; beyond that a flood would fill the volume at the attacker's will, so
/// the rest is counted in one `gap` record.
const REFUSALS_PER_SECOND: u64 = 1000;

/// What became of the refusals of the current second.
pub(super) struct Refusals {
    second: Instant,
    recorded: u64,
    missed: Option<Missed>,
}

struct Missed {
    first: u64,
    last: u64,
    count: u64,
    reason: &'static str,
}

impl Refusals {
    pub(super) fn none() -> Self {
        Self {
            second: Instant::now(),
            recorded: 0,
            missed: None,
        }
    }
}

impl Recorder {
    /// Records a refusal, or counts it when there are too many or no room.
    pub(crate) fn reject(
        &self,
        now: u64,
        id: &str,
        rejection: &Rejection,
        refused: RejectedRequest<'_>,
    ) -> Option<u64> {
        let mut refusals = self.refusals.borrow_mut();
        refusals.recorded += 1;
        let room = self.writer.borrow_mut().reserve(RECORD_BYTES);
        match room {
            Ok(mut room) if refusals.recorded <= REFUSALS_PER_SECOND => {
                let record = |seq| RejectionRecord {
                    seq,
                    ts: now,
                    id: id.into(),
                    tenant: refused.tenant.map(Into::into),
                    counted: refused.counted.as_ref().map(|key| key.as_str().into()),
                    status: rejection.status,
                    code: rejection.code.into(),
                    endpoint: refused.endpoint.map(Into::into),
                    bytes: refused.bytes as u64,
                    policy: refused.policy.clone(),
                    config: self.config(),
                };
                self.append(&mut room, |seq, out| record(seq).encode_into(out))
                    .ok()
            }
            room => {
                let reason = if room.is_ok() {
                    "refusal_flood"
                } else {
                    "ledger_full"
                };
                let new = Missed {
                    first: now,
                    last: now,
                    count: 0,
                    reason,
                };
                let missed = refusals.missed.get_or_insert(new);
                missed.last = now;
                missed.count += 1;
                None
            }
        }
    }

    /// Starts a new second of refusals and records what the last one missed; returns how many.
    pub(crate) fn turn_second(&self) -> u64 {
        let mut refusals = self.refusals.borrow_mut();
        if refusals.second.elapsed() >= Duration::from_secs(1) {
            refusals.second = Instant::now();
            refusals.recorded = 0;
        }
        let Some(missed) = &refusals.missed else { return 0 };
        let Ok(mut room) = self.writer.borrow_mut().reserve(RECORD_BYTES) else {
            return 0;
        };
        let count = missed.count;
        let gap = |seq| Gap {
            seq,
            ts: unix_micros(),
            first_ts: missed.first,
            last_ts: missed.last,
            count,
            reason: missed.reason.into(),
            config: self.config(),
        };
        if self
            .append(&mut room, |seq, out| gap(seq).encode_into(out))
            .is_err()
        {
            return 0;
        }
        refusals.missed = None;
        count
    }
}
