use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use proofgate_ledger::record::{
    Config as ConfigRecord, ConfigId, Gap, Rejection as RejectionRecord, Seal, Takeover,
};
use proofgate_ledger::{Hash, LedgerError};
use proofgate_wal::{Left, Mark, Reservation, Ulid, WalError, Watermark, Writer};
use tokio::sync::Notify;

use crate::clock::unix_micros;
use crate::config::Durability;
use crate::ledger_delay::LedgerDelay;
use crate::open_table::OpenTable;
use crate::rejection::{RejectedRequest, Rejection};
use crate::rotation::{Desk, Next};

/// Room in the ledger that is set aside when an exchange is admitted: its two records, framed, at their largest.
const EXCHANGE_BYTES: u64 = 4096;
/// Room that a refusal needs.
const REFUSAL_BYTES: u64 = 2048;
/// Refusals recorded one by one in each second; beyond that a flood would fill the volume at the attacker's will, so
/// the rest is counted in one `gap` record.
const REFUSALS_PER_SECOND: u64 = 1000;
/// How many records, or how long, lie between two marks where a successor may take up the log.
const MARK_RECORDS: u64 = 1 << 16;
const MARK_EVERY: Duration = Duration::from_secs(10);
/// How often it is looked whether the end of the former log is known, while only that is waited for.
const SETTLE_EVERY: Duration = Duration::from_millis(5);

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

impl From<Unavailable> for Rejection {
    fn from(unavailable: Unavailable) -> Self {
        match unavailable {
            Unavailable::Full => Rejection::LEDGER_FULL,
            Unavailable::Stopped => Rejection::LEDGER_STOPPED,
        }
    }
}

/// The data-plane thread's end of the ledger.
///
/// Records are appended to a batch; a task of its own writes the batch once all tasks that were ready in this turn of
/// the event loop have run, with one `pwrite`, and wakes those that wait for it.
pub(crate) struct Recorder {
    writer: RefCell<Writer>,
    watermark: RefCell<Arc<Watermark>>,
    /// Position of the first record of the log in service. A position counts all records of this life of the worker,
    /// whichever log they are in.
    base: Cell<u64>,
    /// The logs before, oldest first.
    former: RefCell<Vec<Former>>,
    /// Where the next log will lie, and what became of the former one.
    desk: Arc<Desk>,
    open: OpenTable,
    marked: Cell<Marked>,
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
    /// The whole digest of the configuration in force.
    digest: Cell<Hash>,
    delay: Arc<LedgerDelay>,
}

/// A log of this life of the worker that is not in service any more.
struct Former {
    base: u64,
    incarnation: Ulid,
    watermark: Arc<Watermark>,
    /// Whether its end is told in the log that followed it.
    told: bool,
}

/// Where the log was last marked.
#[derive(Clone, Copy)]
struct Marked {
    position: u64,
    at: Instant,
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
        digest: &Hash,
        synced: Arc<Notify>,
        delay: Arc<LedgerDelay>,
        desk: Arc<Desk>,
        wake_ledger: impl Fn() + 'static,
    ) -> Self {
        follow_progress(&writer, &synced);
        Recorder {
            config: Cell::new(ConfigId::from(digest)),
            digest: Cell::new(*digest),
            watermark: RefCell::new(writer.watermark()),
            base: Cell::new(0),
            former: RefCell::default(),
            desk,
            open: OpenTable::default(),
            marked: Cell::new(Marked {
                position: 0,
                at: Instant::now(),
            }),
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
        self.digest.set(*digest);
        let previous = self.config.replace(ConfigId::from(digest));
        self.append_config("reload", previous);
    }

    fn append_config(&self, reason: &str, previous: ConfigId) {
        let Ok(mut room) = self.writer.borrow_mut().reserve(REFUSAL_BYTES) else {
            return;
        };
        let config = |seq| ConfigRecord {
            seq,
            ts: unix_micros(),
            reason: reason.into(),
            config: self.digest.get(),
            previous,
        };
        let _ = self.append(&mut room, |seq, out| config(seq).encode_into(out));
    }

    /// Records appended so far in this life of the worker.
    pub(crate) fn appended(&self) -> u64 {
        self.base.get() + self.writer.borrow().next_seq()
    }

    /// Which log a record is in, and its number there.
    pub(crate) fn locate(&self, position: u64) -> (Ulid, u64) {
        if let Some(seq) = position.checked_sub(self.base.get()) {
            return (self.writer.borrow().incarnation(), seq);
        }
        let former = self.former.borrow();
        let holding = former.iter().rev().find(|former| former.base <= position);
        holding.map_or((Ulid::nil(), 0), |former| {
            (former.incarnation, position - former.base)
        })
    }

    /// Whether a record is in the log in service.
    pub(crate) fn is_current(&self, position: u64) -> bool {
        position >= self.base.get()
    }

    /// The exchanges that are open.
    pub(crate) fn open(&self) -> &OpenTable {
        &self.open
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

    /// Appends a record in room that was set aside and returns its position; it is written at the end of this turn.
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
        Ok(self.base.get() + seq)
    }

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

    /// Waits until the record at a position is written, in the sense of the configured durability.
    ///
    /// # Errors
    /// [`Stopped`] when it never will be.
    pub(crate) async fn written(&self, position: u64) -> Result<(), Stopped> {
        poll_fn(|context| {
            if self.is_written(position) {
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

    fn is_written(&self, position: u64) -> bool {
        let count = |watermark: &Watermark| match self.durability {
            Durability::Written => watermark.written(),
            Durability::Synced => watermark.durable(),
        };
        if let Some(seq) = position.checked_sub(self.base.get()) {
            return count(&self.watermark.borrow()) > seq;
        }
        let former = self.former.borrow();
        let holding = former.iter().rev().find(|former| former.base <= position);
        holding.is_some_and(|former| count(&former.watermark) > position - former.base)
    }

    /// As [`Recorder::written`], for a record that may not have been appended at all.
    pub(crate) async fn written_or_stopped(&self, position: Option<u64>) -> Result<(), Stopped> {
        self.written(position.ok_or(Stopped)?).await
    }

    /// Whether no record will be taken any more.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped.get() || self.watermark.borrow().is_poisoned()
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

    /// What is done about the log once a second: tells how the one before ended, goes over to the next one if it is
    /// there, and marks now and then where a successor may take it up.
    pub(crate) fn keep(&self) {
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
    pub(crate) async fn settle(&self, patience: Duration) {
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
            // Too much is set aside for the room that the next log has: at the next second, perhaps.
            self.desk.lay_next(next);
            return;
        }
        let opened_with = ConfigId::from(&next.config);
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
        self.wake();
        (self.wake_ledger)();
        if opened_with != self.config.get() {
            self.append_config("rotated", opened_with);
        }
    }

    fn turn(&self, next: &mut Next) -> Result<(), Stopped> {
        let mut writer = self.writer.borrow_mut();
        next.writer.inherit(&writer).map_err(|_| Stopped)?;
        let successor = next.incarnation.to_string();
        let seal = |seq| Seal {
            seq,
            ts: unix_micros(),
            reason: "rotated".into(),
            records: seq,
            successor: Some(successor.as_str().into()),
            config: self.config.get(),
        };
        let sealed = writer.seal(|seq, out| seal(seq).encode_into(out));
        sealed.map_err(|_| self.stop())?;
        writer.flush().map_err(|_| self.stop())
    }

    /// Records how the log before ended.
    fn tell(&self, left: Left) {
        let Ok(mut room) = self.writer.borrow_mut().reserve(REFUSAL_BYTES) else {
            self.desk.lay_ended(left);
            return;
        };
        let takeover = |seq| Takeover {
            seq,
            ts: unix_micros(),
            incarnation: left.incarnation.to_string().into(),
            size: left.size,
            root: left.root,
            config: self.config.get(),
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

    /// Ends the log with a `seal` record.
    pub(crate) fn seal(&self, reason: &str) -> Result<(), Stopped> {
        self.turn_second();
        let seal = |seq| Seal {
            seq,
            ts: unix_micros(),
            reason: reason.into(),
            records: seq,
            successor: None,
            config: self.config.get(),
        };
        let sealed = self
            .writer
            .borrow_mut()
            .seal(|seq, out| seal(seq).encode_into(out));
        sealed.map_err(|_| self.stop())?;
        self.flush();
        self.stopped.set(true);
        if self.watermark.borrow().is_poisoned() {
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

/// Has the ledger thread's syncs of a log wake those who wait for them.
fn follow_progress(writer: &Writer, synced: &Arc<Notify>) {
    let synced = Arc::clone(synced);
    writer.watermark().on_progress(move || synced.notify_one());
}
