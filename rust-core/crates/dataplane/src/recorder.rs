use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use proofgate_ledger::record::{Config as ConfigRecord, ConfigId, Gap, Rejection as RejectionRecord, Seal};
use proofgate_ledger::{Hash, LedgerError};
use proofgate_wal::{Reservation, WalError, Watermark, Writer};
use tokio::sync::Notify;

use crate::clock::unix_micros;
use crate::config::Durability;
use crate::gateway::Refused;
use crate::ledger_delay::LedgerDelay;
use crate::rejection::Rejection;

/// Room in the ledger that is set aside when an exchange is admitted: its two records, framed, at their largest.
const EXCHANGE_BYTES: u64 = 4096;
/// Room that a refusal needs.
const REFUSAL_BYTES: u64 = 2048;
/// Refusals recorded one by one in each second; beyond that a flood would fill the volume at the attacker's will, so
/// the rest is counted in one `gap` record.
const REFUSALS_PER_SECOND: u64 = 1000;

/// Room for the records of one exchange.
pub(crate) type Room = Reservation;

/// The ledger refuses or cannot take records any more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopped;

/// Why an exchange cannot be recorded, and so is not admitted.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Unavailable {
    /// The volume has no room now.
    Full,
    /// The ledger takes no records any more.
    Stopped,
}

impl From<WalError> for Unavailable {
    fn from(error: WalError) -> Self {
        match error {
            WalError::Full { .. } => Unavailable::Full,
            _ => Unavailable::Stopped,
        }
    }
}

impl From<Stopped> for Unavailable {
    fn from(_: Stopped) -> Self {
        Unavailable::Stopped
    }
}

/// The data-plane thread's end of the ledger.
///
/// Records are appended to a batch; a task of its own writes the batch once all tasks that were ready in this turn of
/// the event loop have run, with one `pwrite`, and wakes those that wait for it.
pub(crate) struct Recorder {
    writer: RefCell<Writer>,
    watermark: Arc<Watermark>,
    durability: Durability,
    /// Wakes the writing task.
    batch: Notify,
    /// Signalled by the ledger thread after each sync.
    synced: Arc<Notify>,
    /// Wakes the ledger thread, for those who wait for a sync.
    wake_ledger: Box<dyn Fn()>,
    waiting: RefCell<Vec<Waker>>,
    refusals: RefCell<Refusals>,
    stopped: Cell<bool>,
    config: Cell<ConfigId>,
    delay: Arc<LedgerDelay>,
}

/// What became of the refusals of the current second.
struct Refusals {
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

impl Recorder {
    pub(crate) fn new(
        writer: Writer,
        durability: Durability,
        config: ConfigId,
        synced: Arc<Notify>,
        delay: Arc<LedgerDelay>,
        wake_ledger: impl Fn() + 'static,
    ) -> Self {
        Recorder {
            config: Cell::new(config),
            watermark: writer.watermark(),
            writer: RefCell::new(writer),
            durability,
            batch: Notify::new(),
            synced,
            delay,
            wake_ledger: Box::new(wake_ledger),
            waiting: RefCell::default(),
            refusals: RefCell::new(Refusals {
                second: Instant::now(),
                recorded: 0,
                missed: None,
            }),
            stopped: Cell::new(false),
        }
    }

    /// Records that another configuration is in force from here on. Without room for the record it holds all the same:
    /// every record names its configuration.
    pub(crate) fn set_config(&self, digest: &Hash) {
        let previous = self.config.replace(ConfigId::from(digest));
        let Ok(mut room) = self.writer.borrow_mut().reserve(REFUSAL_BYTES) else {
            return;
        };
        let config = |seq| ConfigRecord {
            seq,
            ts: unix_micros(),
            reason: "reload".into(),
            config: *digest,
            previous,
        };
        let _ = self.append(&mut room, |seq, out| config(seq).encode_into(out));
    }

    /// Records appended so far.
    pub(crate) fn appended(&self) -> u64 {
        self.writer.borrow().next_seq()
    }

    /// Sets room aside for the records of one exchange.
    pub(crate) fn reserve(&self) -> Result<Room, Unavailable> {
        Ok(self.writer.borrow_mut().reserve(EXCHANGE_BYTES)?)
    }

    /// The salt of the record that is appended next.
    pub(crate) fn next_salt(&self) -> Result<[u8; 32], Unavailable> {
        let mut writer = self.writer.borrow_mut();
        let seq = writer.next_seq();
        Ok(writer.salt(seq)?)
    }

    /// Appends a record in room that was set aside and returns its number; it is written at the end of this turn.
    pub(crate) fn append(
        &self,
        room: &mut Room,
        encode: impl FnOnce(u64, &mut Vec<u8>) -> Result<(), LedgerError>,
    ) -> Result<u64, Stopped> {
        if self.stopped.get() {
            return Err(Stopped);
        }
        let appended = self.writer.borrow_mut().append_reserved(room, encode);
        let seq = appended.map_err(|_| self.stop())?;
        self.batch.notify_one();
        Ok(seq)
    }

    /// Records a refusal, or counts it when there are too many or no room.
    pub(crate) fn reject(
        &self,
        now: u64,
        id: &str,
        rejection: &Rejection,
        refused: Refused<'_>,
    ) -> Option<u64> {
        let mut refusals = self.refusals.borrow_mut();
        refusals.recorded += 1;
        let room = self.writer.borrow_mut().reserve(REFUSAL_BYTES);
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
                    config: self.config.get(),
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
        let Ok(mut room) = self.writer.borrow_mut().reserve(REFUSAL_BYTES) else {
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
            config: self.config.get(),
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

    /// Waits until record `seq` is written, in the sense of the configured durability.
    ///
    /// # Errors
    /// [`Stopped`] when it never will be.
    pub(crate) async fn written(&self, seq: u64) -> Result<(), Stopped> {
        poll_fn(|context| {
            let count = match self.durability {
                Durability::Written => self.watermark.written(),
                Durability::Synced => self.watermark.durable(),
            };
            if count > seq {
                return Poll::Ready(Ok(()));
            }
            if self.has_stopped() {
                return Poll::Ready(Err(Stopped));
            }
            self.waiting.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// As [`Recorder::written`], for a record that may not have been appended at all.
    pub(crate) async fn written_or_stopped(&self, seq: Option<u64>) -> Result<(), Stopped> {
        self.written(seq.ok_or(Stopped)?).await
    }

    /// Whether no record will be taken any more.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.get() || self.watermark.is_poisoned()
    }

    /// Writes batches as they come; runs as a task of its own.
    pub(crate) async fn write_batches(self: Rc<Self>) {
        loop {
            self.batch.notified().await;
            self.flush();
        }
    }

    /// Wakes those who wait for a sync as the ledger thread reports them; runs as a task of its own.
    pub(crate) async fn follow_syncs(self: Rc<Self>) {
        loop {
            self.synced.notified().await;
            self.wake();
        }
    }

    /// Ends the log with a `seal` record.
    pub(crate) fn seal(&self, reason: &str) -> Result<(), Stopped> {
        self.turn_second();
        let seal = |seq| Seal {
            seq,
            ts: unix_micros(),
            reason: reason.into(),
            records: seq,
            config: self.config.get(),
        };
        let sealed = self
            .writer
            .borrow_mut()
            .seal(|seq, out| seal(seq).encode_into(out));
        sealed.map_err(|_| self.stop())?;
        self.flush();
        self.stopped.set(true);
        if self.watermark.is_poisoned() {
            Err(Stopped)
        } else {
            Ok(())
        }
    }

    fn flush(&self) {
        if self.writer.borrow_mut().flush().is_err() {
            self.stop();
        }
        self.delay.written();
        match self.durability {
            Durability::Written => self.wake(),
            Durability::Synced => (self.wake_ledger)(),
        }
    }

    fn wake(&self) {
        for waker in self.waiting.borrow_mut().drain(..) {
            waker.wake();
        }
    }

    fn stop(&self) -> Stopped {
        self.stopped.set(true);
        self.wake();
        Stopped
    }
}
