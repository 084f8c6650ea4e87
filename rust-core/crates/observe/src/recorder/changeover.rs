//! Log rotation while the worker serves, and resume points for a successor.

use std::time::{Duration, Instant};

use proofgate_base::clock::unix_micros;
use proofgate_ledger::record::{Seal, Takeover};
use proofgate_wal::{PreviousLog, ResumeState};

use super::log_history::{FormerLog, LastResumePoint};
use super::{LedgerStopped, RECORD_BYTES, Recorder, follow_progress};
use crate::rotation::ReadyLog;

/// Maximum number of records, and maximum time, between two resume points for a successor.
const MARK_RECORD_INTERVAL: u64 = 1 << 16;
const MARK_INTERVAL: Duration = Duration::from_secs(10);
/// Interval of checks for the end of the former log while only this end is awaited.
const SETTLE_POLL_INTERVAL: Duration = Duration::from_millis(5);

impl Recorder {
    /// Maintains the log once a second: records the end of the previous log, switches to the next
    /// log if it is available, and marks resume points for a successor.
    pub fn maintain(&self) {
        if self.stopped.get() {
            return;
        }
        self.record_previous_log_end_if_known();
        if self.has_reported_previous()
            && let Some(next) = self.handoff.take_next()
        {
            self.switch_to_next_log(next);
        }
        self.mark_open_exchanges();
    }

    /// Waits at most `patience` until the log records the end of the previous log, which the ledger
    /// thread determines.
    pub async fn wait_for_previous_log_end(&self, patience: Duration) {
        let told = async {
            while !self.has_reported_previous() && !self.has_stopped() {
                self.record_previous_log_end_if_known();
                tokio::time::sleep(SETTLE_POLL_INTERVAL).await;
            }
        };
        // If this end is not recorded now, the successor determines it.
        let _ = tokio::time::timeout(patience, told).await;
    }

    fn has_reported_previous(&self) -> bool {
        self.former_logs
            .borrow()
            .last()
            .is_none_or(|former| former.end_recorded)
    }

    fn record_previous_log_end_if_known(&self) {
        if let Some(left) = self.handoff.take_previous_log() {
            self.record_previous_end(left);
        }
    }

    /// Seals the log in service with a record that names the next log, and switches to the next
    /// log. Existing reservations apply to the next log from now on.
    fn switch_to_next_log(&self, mut next: ReadyLog) {
        if self.seal_current_log(&mut next).is_err() {
            // The next log has too little capacity for the reservations, or the volume is full: retry in a second.
            self.handoff.offer_next(next);
            return;
        }
        let opened_with = next.config.id();
        let incarnation = self.writer.borrow().incarnation();
        follow_progress(&next.writer, &self.synced);
        let watermark = next.writer.watermark();
        let writer = self.writer.replace(next.writer);
        let watermark = self.watermark.replace(watermark);
        self.former_logs.borrow_mut().push(FormerLog {
            base: self.base.get(),
            incarnation,
            watermark,
            end_recorded: false,
        });
        self.base.set(self.base.get() + writer.next_seq());
        self.tenant_counts.borrow_mut().clear();
        self.wake_waiters();
        (self.wake_ledger)();
        if opened_with != self.config() {
            self.append_config("rotated", opened_with);
        }
    }

    fn seal_current_log(&self, next: &mut ReadyLog) -> Result<(), LedgerStopped> {
        let mut writer = self.writer.borrow_mut();
        // If the volume is full, retry in a second.
        writer.flush().map_err(|error| match error.is_out_of_space() {
            true => LedgerStopped,
            false => self.stop(),
        })?;
        next.writer.take_over(&writer).map_err(|_| LedgerStopped)?;
        let successor = next.incarnation.to_string();
        let seal = |seq| Seal {
            seq,
            ts: unix_micros(),
            reason: "rotated".into(),
            records: seq,
            successor: Some(successor.as_str().into()),
            config: self.config(),
        };
        let sealed = writer.seal(|seq, out| seal(seq).encode_into(out));
        sealed.map_err(|_| self.stop())?;
        writer.flush().map_err(|error| {
            // After its seal a log accepts no records, and no task would retry the write.
            self.watermark.borrow().poison(error.to_string());
            self.stop()
        })
    }

    /// Records the end of the previous log.
    fn record_previous_end(&self, left: PreviousLog) {
        let Ok(mut room) = self.writer.borrow_mut().reserve(RECORD_BYTES) else {
            self.handoff.set_previous(left);
            return;
        };
        let takeover = |seq| Takeover {
            seq,
            ts: unix_micros(),
            incarnation: left.incarnation.to_string().into(),
            size: left.size,
            root: left.root,
            config: self.config(),
        };
        if self
            .append(&mut room, |seq, out| takeover(seq).encode_into(out))
            .is_ok()
            && let Some(former) = self.former_logs.borrow_mut().last_mut()
        {
            former.end_recorded = true;
        }
    }

    /// Records which exchanges are open after the records so far, so that a successor need not read
    /// these records.
    fn mark_open_exchanges(&self) {
        let (marked, position) = (self.last_mark.get(), self.appended_count());
        let due = position >= marked.position + MARK_RECORD_INTERVAL
            || position > marked.position && marked.at.elapsed() >= MARK_INTERVAL;
        if !due {
            return;
        }
        self.last_mark.set(LastResumePoint {
            position,
            at: Instant::now(),
        });
        let former = self.former_logs.borrow();
        self.writer.borrow().set_resume_state(ResumeState {
            open: self.open_exchanges.list(|position| self.locate(position)),
            continues: former.last().map(|former| former.incarnation),
            predecessor_ended: self.has_reported_previous(),
        });
    }
}
