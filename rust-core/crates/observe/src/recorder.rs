mod changeover;
pub(crate) mod clock_steps;
mod log_history;
mod refusal_budget;
mod refusals;
mod refused_keys;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use proofgate_base::clock::unix_micros;
use proofgate_base::open_exchange_table::OpenExchangeTable;
use proofgate_base::rejection::Rejection;
use proofgate_config::Durability;
use proofgate_ledger::LedgerError;
use proofgate_ledger::record::{Config as ConfigRecord, ConfigDigests, ConfigId, Seal};
use proofgate_wal::{Reservation, Ulid, WalError, Watermark, Writer};
use tokio::sync::Notify;

use crate::analysis::Finding;
use crate::ledger_delay::LedgerDelay;
use crate::rotation::LogHandoff;
use log_history::{FormerLog, LastResumePoint};
use refusal_budget::RefusalBudget;
use refused_keys::RefusedKeys;

/// Bytes reserved in the ledger at the admission of an exchange: the maximum size of the frames of
/// its two records.
const EXCHANGE_BYTES: u64 = 5472 + ATTRIBUTION_BYTES as u64 + ADDRESS_BYTES + KEY_NAME_BYTES;
/// The part of `EXCHANGE_BYTES` for the attribution of an admission. The maximum is a name of
/// control characters, each of which takes six bytes in JSON.
pub(crate) const ATTRIBUTION_BYTES: usize = 1368;
/// The part of `EXCHANGE_BYTES` for the client's address, at its maximum.
const ADDRESS_BYTES: u64 = 64;
/// The part of `EXCHANGE_BYTES` for the name of the key: at most 63 characters, which JSON does not
/// escape.
const KEY_NAME_BYTES: u64 = 80;
/// Bytes reserved for a record of the worker itself, or for a refusal.
const RECORD_BYTES: u64 = 2048;

/// Bytes reserved for a record of the analysis of responses.
const ANALYSIS_BYTES: u64 = 3584;

/// Delay before a write that found no space is retried.
const WRITE_RETRY_DELAY: Duration = Duration::from_millis(100);
/// Number of such retries for which exchanges wait. After these retries, the waiting exchanges are
/// refused, and the log continues once there is space.
const MAX_BLOCKING_RETRIES: u32 = 20;

/// A reservation for the records of one exchange.
pub type RecordPermit = Reservation;

/// The error that the ledger accepts no more records.
#[derive(Debug, Clone, Copy)]
pub struct LedgerStopped;

/// The reason why an exchange cannot be recorded and is therefore not admitted.
#[derive(Debug, Clone, Copy)]
pub enum LedgerUnavailable {
    /// The volume is full.
    Full,
    /// The error that the ledger accepts no more records.
    Stopped,
    /// The bodies cannot be stored, but the tenant requires their storage.
    Payloads,
    /// The tenant has no shred key, which the salt needs.
    NoShredKey,
}

/// The error that a tenant has no shred key although every tenant must have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoShredKey;

impl From<WalError> for LedgerUnavailable {
    fn from(error: WalError) -> Self {
        match error {
            WalError::OutOfSpace { .. } => LedgerUnavailable::Full,
            _ => LedgerUnavailable::Stopped,
        }
    }
}

impl From<LedgerStopped> for LedgerUnavailable {
    fn from(_: LedgerStopped) -> Self {
        LedgerUnavailable::Stopped
    }
}

impl From<NoShredKey> for LedgerUnavailable {
    fn from(_: NoShredKey) -> Self {
        LedgerUnavailable::NoShredKey
    }
}

impl From<LedgerUnavailable> for Rejection {
    fn from(unavailable: LedgerUnavailable) -> Self {
        match unavailable {
            LedgerUnavailable::Full => Rejection::LEDGER_FULL,
            LedgerUnavailable::Stopped => Rejection::LEDGER_STOPPED,
            LedgerUnavailable::Payloads => Rejection::PAYLOADS_UNAVAILABLE,
            LedgerUnavailable::NoShredKey => Rejection::NO_SHRED_KEY,
        }
    }
}

/// The data-plane thread's side of the ledger.
///
/// Records are appended to a batch. A separate task writes the batch with one `pwrite`, once all tasks that were ready in
/// this turn of the event loop have run, and wakes the tasks that wait for it.
pub struct Recorder {
    writer: RefCell<Writer>,
    watermark: RefCell<Arc<Watermark>>,
    /// Position of the first record of the log in service. Positions count all records of this worker run, across its logs.
    base: Cell<u64>,
    /// The previous logs, oldest first.
    former_logs: RefCell<Vec<FormerLog>>,
    /// Exchanges the next log, and the end of the former log, with the ledger thread.
    handoff: Arc<LogHandoff>,
    open_exchanges: OpenExchangeTable,
    /// Number of admitted and denied requests of each tenant in the log in service.
    tenant_counts: RefCell<HashMap<Arc<str>, u64>>,
    last_mark: Cell<LastResumePoint>,
    durability: Durability,
    /// Wakes the writing task.
    batch_ready: Notify,
    /// Signal of the ledger thread after each sync.
    synced: Arc<Notify>,
    /// Wakes the ledger thread for tasks that wait for a sync.
    wake_ledger: Box<dyn Fn()>,
    wakers: RefCell<Vec<Waker>>,
    refusals: RefCell<RefusalBudget>,
    refused_keys: RefCell<RefusedKeys>,
    stopped: Cell<bool>,
    /// Whether the volume has been full for so long that exchanges no longer wait for space.
    no_space: Cell<bool>,
    /// The configuration in force.
    config: Cell<ConfigDigests>,
    delay: Arc<LedgerDelay>,
}

impl Recorder {
    pub fn new(
        writer: Writer,
        durability: Durability,
        config: ConfigDigests,
        synced: Arc<Notify>,
        delay: Arc<LedgerDelay>,
        desk: Arc<LogHandoff>,
        wake_ledger: impl Fn() + 'static,
    ) -> Self {
        follow_progress(&writer, &synced);
        Recorder {
            config: Cell::new(config),
            watermark: RefCell::new(writer.watermark()),
            base: Cell::new(0),
            former_logs: RefCell::default(),
            handoff: desk,
            open_exchanges: OpenExchangeTable::default(),
            tenant_counts: RefCell::default(),
            last_mark: Cell::new(LastResumePoint::none()),
            writer: RefCell::new(writer),
            durability,
            batch_ready: Notify::new(),
            synced,
            delay,
            wake_ledger: Box::new(wake_ledger),
            wakers: RefCell::default(),
            refusals: RefCell::new(RefusalBudget::new()),
            refused_keys: RefCell::default(),
            stopped: Cell::new(false),
            no_space: Cell::new(false),
        }
    }

    /// Records that another configuration is in force from now on. If there is no space for the
    /// record, the configuration still applies, because every record names its configuration.
    pub fn set_config(&self, config: ConfigDigests) {
        let previous = self.config.replace(config);
        self.append_config("reload", previous.id());
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> ConfigId {
        self.config.get().id()
    }

    fn append_config(&self, reason: &str, previous: ConfigId) {
        let Ok(mut room) = self.writer.borrow_mut().reserve(RECORD_BYTES) else {
            return;
        };
        let in_force = self.config.get();
        let config = |seq| ConfigRecord {
            seq,
            ts: unix_micros(),
            reason: reason.into(),
            config: in_force.config,
            settings: in_force.settings,
            previous,
        };
        let _ = self.append(&mut room, |seq, out| config(seq).encode_into(out));
    }

    /// Returns the number of records appended so far in this worker run.
    pub fn appended_count(&self) -> u64 {
        self.base.get() + self.writer.borrow().next_seq()
    }

    /// Returns the log that holds a record, and the record's number in that log.
    pub fn locate(&self, position: u64) -> (Ulid, u64) {
        if let Some(seq) = position.checked_sub(self.base.get()) {
            return (self.writer.borrow().incarnation(), seq);
        }
        let former = self.former_logs.borrow();
        let holding = former.iter().rev().find(|former| former.base <= position);
        holding.map_or((Ulid::nil(), 0), |former| {
            (former.incarnation, position - former.base)
        })
    }

    /// Returns whether a record is in the log in service.
    pub fn is_current(&self, position: u64) -> bool {
        position >= self.base.get()
    }

    /// Returns the open exchanges.
    pub fn open_exchanges(&self) -> &OpenExchangeTable {
        &self.open_exchanges
    }

    /// Reserves space for the records of one exchange.
    pub fn reserve(&self) -> Result<RecordPermit, LedgerUnavailable> {
        Ok(self.writer.borrow_mut().reserve(EXCHANGE_BYTES)?)
    }

    /// Reserves space for one more record of an exchange.
    pub fn reserve_one(&self) -> Result<RecordPermit, LedgerUnavailable> {
        Ok(self.writer.borrow_mut().reserve(RECORD_BYTES)?)
    }

    /// Returns the stored form of the salt of the record that is appended next.
    pub fn next_salt(&self) -> Result<[u8; 32], LedgerUnavailable> {
        let mut writer = self.writer.borrow_mut();
        let seq = writer.next_seq();
        Ok(writer.salt(seq)?)
    }

    /// Appends a record in reserved space and returns its position. The record is written at the
    /// end of this turn of the event loop.
    pub fn append(
        &self,
        room: &mut RecordPermit,
        encode: impl FnOnce(u64, &mut Vec<u8>) -> Result<(), LedgerError>,
    ) -> Result<u64, LedgerStopped> {
        if self.stopped.get() {
            return Err(LedgerStopped);
        }
        let appended = self.writer.borrow_mut().append_reserved(room, encode);
        let seq = appended.map_err(|_| self.stop())?;
        self.batch_ready.notify_one();
        Ok(self.base.get() + seq)
    }

    /// Appends an admission or a denied request like [`Recorder::append`]. `encode` also receives
    /// the request's number among its tenant's requests in this log.
    pub fn append_numbered(
        &self,
        room: &mut RecordPermit,
        tenant: &Arc<str>,
        encode: impl FnOnce(u64, u64, &mut Vec<u8>) -> Result<(), LedgerError>,
    ) -> Result<u64, LedgerStopped> {
        let mut numbered = self.tenant_counts.borrow_mut();
        let before = match numbered.get_mut(tenant) {
            Some(before) => before,
            None => numbered.entry(Arc::clone(tenant)).or_default(),
        };
        *before += 1;
        let tenant_seq = *before;
        // A number is lost only together with the log, because a failed append stops the log.
        self.append(room, |seq, out| encode(seq, tenant_seq, out))
    }

    /// Appends the record of an analysis finding. No task waits for this record.
    pub(crate) fn append_finding(&self, finding: &Finding) -> Result<u64, LedgerUnavailable> {
        let mut room = self.writer.borrow_mut().reserve(ANALYSIS_BYTES)?;
        let (incarnation, admission) = self.locate(finding.admission_position);
        if incarnation.is_nil() {
            // The log of the admission is no longer known.
            return Err(LedgerUnavailable::Full);
        }
        let elsewhere = (!self.is_current(finding.admission_position)).then(|| incarnation.to_string());
        let config = self.config();
        let appended = self.append(&mut room, |seq, out| {
            finding.encode(seq, admission, elsewhere.as_deref(), config, out)
        })?;
        Ok(appended)
    }

    /// Waits until the record at a position is written with the configured durability.
    ///
    /// # Errors
    /// [`LedgerStopped`] if the record will never be written, or while there is no space for it.
    pub async fn wait_written(&self, position: u64) -> Result<(), LedgerStopped> {
        poll_fn(|context| {
            if self.is_written(position) {
                return Poll::Ready(Ok(()));
            }
            if self.has_stopped() || self.no_space.get() {
                return Poll::Ready(Err(LedgerStopped));
            }
            self.wakers.borrow_mut().push(context.waker().clone());
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
        let former = self.former_logs.borrow();
        let holding = former.iter().rev().find(|former| former.base <= position);
        holding.is_some_and(|former| count(&former.watermark) > position - former.base)
    }

    /// Same as [`Recorder::wait_written`], for a record that may not have been appended at all.
    pub async fn wait_written_or_stopped(&self, position: Option<u64>) -> Result<(), LedgerStopped> {
        self.wait_written(position.ok_or(LedgerStopped)?).await
    }

    /// Returns whether no more records are accepted.
    pub fn has_stopped(&self) -> bool {
        self.stopped.get() || self.watermark.borrow().is_poisoned()
    }

    /// Writes batches when records were appended, as a separate task.
    pub async fn write_batches(self: Rc<Self>) {
        loop {
            self.batch_ready.notified().await;
            let mut writes = 1;
            while let Err(error) = self.flush() {
                if writes == MAX_BLOCKING_RETRIES {
                    proofgate_log::error!("refusing exchanges until the ledger has disk space: {error}");
                    self.no_space.set(true);
                    self.wake_waiters();
                }
                writes += 1;
                tokio::time::sleep(WRITE_RETRY_DELAY).await;
            }
            if self.no_space.take() && !self.has_stopped() {
                proofgate_log::info!("the ledger has disk space again");
            }
        }
    }

    /// Wakes the tasks that wait for a sync when the ledger thread reports a sync. Runs as a
    /// separate task.
    pub async fn follow_syncs(self: Rc<Self>) {
        loop {
            self.synced.notified().await;
            self.wake_waiters();
        }
    }

    /// Ends the log with a `seal` record.
    pub fn seal(&self, reason: &str) -> Result<(), LedgerStopped> {
        self.start_second();
        let seal = |seq| Seal {
            seq,
            ts: unix_micros(),
            reason: reason.into(),
            records: seq,
            successor: None,
            config: self.config(),
        };
        let sealed = self
            .writer
            .borrow_mut()
            .seal(|seq, out| seal(seq).encode_into(out));
        sealed.map_err(|_| self.stop())?;
        if let Err(error) = self.flush() {
            // No task remains that would retry the write.
            self.watermark.borrow().poison(error.to_string());
        }
        self.stopped.set(true);
        if self.watermark.borrow().is_poisoned() {
            Err(LedgerStopped)
        } else {
            Ok(())
        }
    }

    /// Writes the batch. A failure stops the log.
    ///
    /// # Errors
    /// There was no space for the batch. This does not stop the log, and the batch must be written
    /// again.
    fn flush(&self) -> Result<(), WalError> {
        match self.writer.borrow_mut().flush() {
            Err(error) if error.is_out_of_space() => return Err(error),
            Err(_) => {
                self.stopped.set(true);
                self.wake_waiters();
            }
            Ok(()) => {}
        }
        self.delay.mark_written();
        match self.durability {
            Durability::Written => self.wake_waiters(),
            Durability::Synced => (self.wake_ledger)(),
        }
        Ok(())
    }

    fn wake_waiters(&self) {
        for waker in self.wakers.borrow_mut().drain(..) {
            waker.wake();
        }
    }

    fn stop(&self) -> LedgerStopped {
        self.stopped.set(true);
        self.wake_waiters();
        LedgerStopped
    }
}

/// Makes each sync of the ledger thread for a log signal `synced`.
fn follow_progress(writer: &Writer, synced: &Arc<Notify>) {
    let synced = Arc::clone(synced);
    writer.watermark().on_progress(move || synced.notify_one());
}
