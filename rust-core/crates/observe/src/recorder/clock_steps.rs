//! Steps of the system's clock, so that whoever reads the times of records knows where they jump.

use proofgate_base::clock::ClockStep;
use proofgate_ledger::record::Gap;

use super::{RECORD_BYTES, Recorder};

/// Why there is a gap: it is in the times of records, and none is missing.
pub(crate) const CLOCK_STEP: &str = "clock_step";

impl Recorder {
    /// Records that the system's clock was set: what stands behind this record has times of the new one. Without room for it
    /// the step is counted and logged alone.
    ///
    /// Where the clock had been wrong, another log is asked for: exchanges are looked for in the log that had begun at the
    /// time in their id.
    pub fn mark_step(&self, step: ClockStep) {
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
