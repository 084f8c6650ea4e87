//! The change from one log to the next while the worker serves, and what is noted for a successor.

use std::time::{Duration, Instant};

use proofgate_base::clock::unix_micros;
use proofgate_ledger::record::{Seal, Takeover};
use proofgate_wal::{Mark, PreviousLog};

use super::log_history::{Former, Marked};
use super::{RECORD_BYTES, Recorder, Stopped, follow_progress};
use crate::rotation::Next;

/// How many records, or how long, lie between two marks where a successor may take up the log.
const MARK_RECORDS: u64 = 1 << 16;
const MARK_EVERY: Duration = Duration::from_secs(10);
/// How often it is looked whether the end of the former log is known, while only that is waited for.
const SETTLE_EVERY: Duration = Duration::from_millis(5);

impl Recorder {
    /// What is done about the log once a second: tells how the one before ended, goes over to the next one if it is
    /// there, and marks now and then where a successor may take it up.
    pub fn keep(&self) {
        if self.stopped.get() {
            return;
        }
        self.tell_if_known();
        if self.has_told()
            && let Some(next) = self.desk.take_next()
        {
            self.go_over(next);
        }
        self.mark();
    }

    /// Waits until the log says how the one before it ended, which the ledger thread finds out, at most `patience`.
    pub async fn settle(&self, patience: Duration) {
        let told = async {
            while !self.has_told() && !self.has_stopped() {
                self.tell_if_known();
                tokio::time::sleep(SETTLE_EVERY).await;
            }
        };
        // What is not told now is found out by the successor.
        let _ = tokio::time::timeout(patience, told).await;
    }

    fn has_told(&self) -> bool {
        self.former.borrow().last().is_none_or(|former| former.told)
    }

    fn tell_if_known(&self) {
        if let Some(left) = self.desk.take_ended() {
            self.tell(left);
        }
    }

    /// The last record of the log in service is a seal that names the next log; whatever follows is in that one. Room
    /// that was set aside counts there from now on.
    fn go_over(&self, mut next: Next) {
        if self.turn(&mut next).is_err() {
            // Too much is set aside for the room that the next log has, or there is no space: at the next second, perhaps.
            self.desk.lay_next(next);
            return;
        }
        let opened_with = next.config.id();
        let incarnation = self.writer.borrow().incarnation();
        follow_progress(&next.writer, &self.synced);
        let watermark = next.writer.watermark();
        let writer = self.writer.replace(next.writer);
        let watermark = self.watermark.replace(watermark);
        self.former.borrow_mut().push(Former {
            base: self.base.get(),
            incarnation,
            watermark,
            told: false,
        });
        self.base.set(self.base.get() + writer.next_seq());
        self.numbered.borrow_mut().clear();
        self.wake();
        (self.wake_ledger)();
        if opened_with != self.config() {
            self.append_config("rotated", opened_with);
        }
    }

    fn turn(&self, next: &mut Next) -> Result<(), Stopped> {
        let mut writer = self.writer.borrow_mut();
        // Without space for what is to be written, the next second is as good.
        writer.flush().map_err(|error| match error.is_out_of_space() {
            true => Stopped,
            false => self.stop(),
        })?;
        next.writer.inherit(&writer).map_err(|_| Stopped)?;
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
            // Behind its seal a log takes nothing, and nobody would write it later.
            self.watermark.borrow().poison(error.to_string());
            self.stop()
        })
    }

    /// Records how the log before ended.
    fn tell(&self, left: PreviousLog) {
        let Ok(mut room) = self.writer.borrow_mut().reserve(RECORD_BYTES) else {
            self.desk.lay_ended(left);
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
            && let Some(former) = self.former.borrow_mut().last_mut()
        {
            former.told = true;
        }
    }

    /// Notes which exchanges are open behind the records so far, so that a successor need not read those.
    fn mark(&self) {
        let (marked, position) = (self.marked.get(), self.appended());
        let due = position >= marked.position + MARK_RECORDS
            || position > marked.position && marked.at.elapsed() >= MARK_EVERY;
        if !due {
            return;
        }
        self.marked.set(Marked {
            position,
            at: Instant::now(),
        });
        let former = self.former.borrow();
        self.writer.borrow().mark(Mark {
            open: self.open.list(|position| self.locate(position)),
            continues: former.last().map(|former| former.incarnation),
            settled: self.has_told(),
        });
    }
}
