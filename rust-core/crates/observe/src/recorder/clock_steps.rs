//! Steps of the system's clock, which are recorded so that readers know where the times of records
//! jump.

use proofgate_base::clock::ClockStep;
use proofgate_ledger::record::Gap;

use super::{RECORD_BYTES, Recorder};

/// The reason in a gap record for a jump of record times. No record is missing in such a gap.
pub(crate) const CLOCK_STEP: &str = "clock_step";

impl Recorder {
    /// Records that the system's clock was set. Later records have times of the new clock. If there
    /// is no space for the record, the step is only counted and logged.
    ///
    /// If the clock had been wrong, a log rotation is requested, because the search for an exchange
    /// uses the log that had started at the time in the exchange's ID.
    pub fn record_clock_step(&self, step: ClockStep) {
        if step.moves_limit_time_back {
            self.handoff.request_rotation();
        }
        let Ok(mut room) = self.writer.borrow_mut().reserve(RECORD_BYTES) else {
            return;
        };
        let gap = |seq| Gap {
            seq,
            ts: step.to,
            first_ts: step.from,
            last_ts: step.to,
            count: 0,
            reason: CLOCK_STEP.into(),
            code: CLOCK_STEP.into(),
            tenant: None,
            config: self.config(),
        };
        let _ = self.append(&mut room, |seq, out| gap(seq).encode_into(out));
    }
}
