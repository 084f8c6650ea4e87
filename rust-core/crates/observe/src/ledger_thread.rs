use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, park_timeout};
use std::time::{Duration, Instant};

use prometheus_client::metrics::gauge::Gauge;
use proofgate_base::clock::unix_seconds;
use proofgate_base::priority;
use proofgate_config::Durability;
use proofgate_ledger::SigningKey;
use proofgate_stages::Interval;
use proofgate_wal::{Follower, Incarnation, Preparation, UnsyncedFiles, WalError};

use crate::held_checkpoint::HeldCheckpoint;
use crate::incarnation::LogFactory;
use crate::ledger_delay::LedgerDelay;
use crate::rotation::{ActiveLog, CurrentLog, LogHandoff, ReadyLog, RotationBounds};

/// The poll interval while no records are written.
const IDLE_POLL: Duration = Duration::from_millis(50);

/// The poll interval while records arrive. A short interval keeps each batch small. A traffic
/// thread that wakes up during a batch waits for the end of the batch, and on many kernels, if the
/// batch is long, for the end of a time slice of some milliseconds. Each poll costs the core about
/// ten microseconds, most of them for the timer of a virtual machine.
const BUSY_POLL: Duration = Duration::from_millis(4);

/// Pause between two steps while more records follow, in which the traffic can use the processor.
const STEP_PAUSE: Duration = Duration::from_micros(200);

/// Minimum number of bytes of a segment that are prepared at a time. If the log has grown by more
/// since the last time, the number is twice the growth, so that the next segment is ready when half
/// of the current segment is filled.
const MIN_PREPARE_BYTES: u64 = 256 << 10;
const PREPARE_FACTOR: u64 = 2;

/// Number of bytes of records after which they are synced. A larger number of bytes would wait for
/// the next checkpoint, and its sync would then occupy the processor for milliseconds.
const SYNC_BATCH_BYTES: u64 = 4 << 20;

/// Delay before another attempt after there was no space for a segment.
const NO_SPACE_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Minimum interval between the starts of logs that are requested before the current log is full or
/// old.
const MIN_ROTATION_REQUEST_INTERVAL: Duration = Duration::from_secs(10);

/// Delay before another attempt after the next log could not be created.
const ROTATION_RETRY_DELAY: Duration = Duration::from_secs(60);

/// Delay before another attempt after the signer failed. No record is synced during a call to the
/// signer.
const SIGNER_RETRY_DELAY: Duration = Duration::from_secs(10);

/// The thread that turns written records into evidence. It reads them back, extends the tree,
/// syncs, signs checkpoints, and starts the creation of the next log in time.
pub struct LedgerThread {
    pub follower: Follower,
    pub key: SigningKey,
    pub durability: Durability,
    pub checkpoint_interval: Duration,
    /// Whether the last record has been appended.
    pub finished: Arc<AtomicBool>,
    pub delay: Arc<LedgerDelay>,
    pub current_log: CurrentLog,
    pub rotation: Rotation,
    /// The file outside the ledger's volume that receives each new checkpoint; `None` if not configured.
    pub held_checkpoint: Option<HeldCheckpoint>,
    /// Files beside the logs to which records refer.
    pub unsynced_files: Option<Arc<UnsyncedFiles>>,
    /// Time of signing the newest checkpoint, in Unix seconds.
    pub checkpoint_timestamp: Gauge,
}

/// The rotation of the log in service.
pub struct Rotation {
    pub bounds: RotationBounds,
    pub handoff: Arc<LogHandoff>,
    /// Creates the next log.
    pub log_factory: LogFactory,
    started_at: Instant,
    state: State,
    /// Earliest time of the next call to the signer for the end of the former log.
    next_signature_attempt: Instant,
    /// Start time of the last requested log; `None` before the first.
    last_requested_start: Option<Instant>,
}

enum State {
    /// There is nothing to do before this time.
    Idle(Instant),
    /// A separate thread creates the next log, because the creation takes several syncs.
    Creating(JoinHandle<Result<Incarnation, WalError>>),
    /// The next log was offered to the data-plane thread. Its follower is stored here until the
    /// switch.
    Ready(Box<(Follower, ActiveLog)>),
}

impl Rotation {
    pub fn new(bounds: RotationBounds, desk: Arc<LogHandoff>, next: LogFactory) -> Self {
        let since = Instant::now();
        Rotation {
            bounds,
            handoff: desk,
            log_factory: next,
            started_at: since,
            state: State::Idle(since),
            next_signature_attempt: since,
            last_requested_start: None,
        }
    }
}

impl LedgerThread {
    /// Runs until the log is sealed and its last checkpoint is on disk. Returns false after a
    /// failure. A failure or a panic poisons the log, and a poisoned log admits no exchange.
    pub fn run(mut self) -> bool {
        priority::lower_priority();
        let failed = match catch_unwind(AssertUnwindSafe(|| self.follow())) {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the ledger thread panicked".to_owned(),
        };
        // The data-plane thread may already use the next log.
        if let State::Ready(next) = &self.rotation.state {
            next.1.watermark.poison(failed.clone());
        }
        self.follower.watermark().poison(failed.clone());
        self.current_log.get().watermark.poison(failed);
        false
    }

    fn follow(&mut self) -> Result<(), WalError> {
        let mut checkpoint_due = Instant::now();
        let mut segment_due = checkpoint_due;
        let (mut written, mut unsynced) = (0, 0);
        loop {
            // Read the flag before the last poll, so that this poll includes every record that was
            // appended before the flag was set.
            let finish = self.finished.load(Ordering::Acquire);
            self.switch_to_next_log()?;
            if finish {
                let note = self.follower.finish(&self.key)?;
                self.store_held_checkpoint(&note);
                return self.discard_next_log();
            }
            self.delay.mark_seen();
            let (timer, followed) = (self.delay.profiler.timer(), self.follower.followed_records());
            let bytes = self.follower.watermark().written_bytes();
            let grown = bytes.saturating_sub(std::mem::replace(&mut written, bytes));
            let mut prepares = false;
            while Instant::now() >= segment_due && !prepares {
                let most = MIN_PREPARE_BYTES.max(grown.saturating_mul(PREPARE_FACTOR));
                match self.follower.prepare_bounded(most) {
                    Preparation::Prepared => {}
                    Preparation::InProgress => prepares = true,
                    Preparation::Sufficient => break,
                    Preparation::NoSpace(_) => segment_due = Instant::now() + NO_SPACE_RETRY_DELAY,
                }
            }
            while self.follower.step()?.has_more {
                park_timeout(STEP_PAUSE);
            }
            unsynced += grown;
            if self.durability == Durability::Synced || unsynced >= SYNC_BATCH_BYTES {
                self.follower.sync()?;
                unsynced = 0;
            }
            let watermark = self.follower.watermark();
            if watermark.checkpointed() < self.follower.followed_records() && Instant::now() >= checkpoint_due
            {
                self.follower.sync()?;
                let pause = self.sign_checkpoint()?;
                checkpoint_due = Instant::now() + pause;
            }
            self.prepare_next_log();
            let follows = self.follower.followed_records() > followed;
            if follows {
                timer.stop(&self.delay.profiler, Interval::LedgerBatch);
            }
            let poll = if follows || prepares { BUSY_POLL } else { IDLE_POLL };
            park_timeout(poll.min(self.checkpoint_interval));
        }
    }

    /// Starts the creation of the next log when it is due, and offers the created log to the
    /// data-plane thread.
    fn prepare_next_log(&mut self) {
        let state = std::mem::replace(&mut self.rotation.state, State::Idle(Instant::now()));
        self.rotation.state = match state {
            State::Idle(due) if Instant::now() < due || !self.is_due() => State::Idle(due),
            State::Idle(due) => match self.follower.last_checkpoint() {
                Some(former) => {
                    if self.rotation.handoff.start_next() {
                        self.rotation.last_requested_start = Some(Instant::now());
                    }
                    match self
                        .rotation
                        .log_factory
                        .create_next(self.follower.incarnation(), former)
                    {
                        Ok(thread) => State::Creating(thread),
                        Err(error) => self.creation_failed(&error),
                    }
                }
                None => State::Idle(due),
            },
            State::Creating(thread) if !thread.is_finished() => State::Creating(thread),
            State::Creating(thread) => match thread.join() {
                Ok(Ok(log)) => self.offer_next_log(log),
                Ok(Err(error)) => self.creation_failed(&error),
                Err(_) => self.creation_failed(&"its thread panicked"),
            },
            laid @ State::Ready(_) => laid,
        };
    }

    /// Keeps the current log in service, and requests the next log again.
    fn creation_failed(&self, error: &dyn std::fmt::Display) -> State {
        proofgate_log::warning!(
            "cannot create the next log, so the worker continues with the current one: {error}"
        );
        self.rotation.handoff.request_rotation();
        State::Idle(Instant::now() + ROTATION_RETRY_DELAY)
    }

    fn is_due(&self) -> bool {
        let Rotation {
            bounds,
            started_at: since,
            handoff: desk,
            ..
        } = &self.rotation;
        let apart = self
            .rotation
            .last_requested_start
            .is_none_or(|at| at.elapsed() >= MIN_ROTATION_REQUEST_INTERVAL);
        let asked = desk.is_rotation_requested() && apart;
        asked
            || self.follower.watermark().written_bytes() >= bounds.max_bytes
            || since.elapsed() >= bounds.max_age
    }

    fn offer_next_log(&mut self, mut log: Incarnation) -> State {
        if let Some(unsynced) = &self.unsynced_files {
            log.follower.set_unsynced_files(Arc::clone(unsynced));
        }
        let in_service = ActiveLog {
            origin: log.origin,
            directory: log.dir,
            incarnation: log.incarnation,
            watermark: log.writer.watermark(),
            records_before: 0,
        };
        self.rotation.handoff.offer_next(ReadyLog {
            incarnation: log.incarnation,
            writer: log.writer,
            config: self.rotation.log_factory.config,
        });
        State::Ready(Box::new((log.follower, in_service)))
    }

    /// Switches to the next log after the data-plane thread has switched. Before the switch, the
    /// former log is signed to its end, so that no record of the next log is durable before its
    /// predecessor.
    fn switch_to_next_log(&mut self) -> Result<(), WalError> {
        if !self.follower.watermark().sealed()
            || self.rotation.handoff.has_next()
            || Instant::now() < self.rotation.next_signature_attempt
        {
            return Ok(());
        }
        match std::mem::replace(&mut self.rotation.state, State::Idle(Instant::now())) {
            State::Ready(next) => {
                match self.follower.finish(&self.key) {
                    Err(error) if error.is_signer_failure() => {
                        self.rotation.next_signature_attempt = Instant::now() + signer_unavailable(&error);
                        self.rotation.state = State::Ready(next);
                        return Ok(());
                    }
                    other => other?,
                };
                let (follower, mut in_service) = *next;
                self.checkpoint_timestamp.set(unix_seconds());
                in_service.records_before =
                    self.current_log.get().records_before + self.follower.followed_records();
                self.rotation
                    .handoff
                    .set_previous(self.follower.to_previous_log());
                self.follower = follower;
                self.current_log.replace(in_service);
                self.rotation.started_at = Instant::now();
            }
            other => self.rotation.state = other,
        }
        Ok(())
    }

    /// Seals a next log that was never used, so that this log records that it was never used.
    fn discard_next_log(&mut self) -> Result<(), WalError> {
        let state = std::mem::replace(&mut self.rotation.state, State::Idle(Instant::now()));
        let (mut follower, mut writer) = match state {
            State::Idle(_) => return Ok(()),
            State::Creating(thread) => match thread.join() {
                Ok(Ok(log)) => (log.follower, log.writer),
                _ => return Ok(()),
            },
            State::Ready(next) => match self.rotation.handoff.reclaim_next() {
                Some(on_desk) => (next.0, on_desk.writer),
                None => return Ok(()),
            },
        };
        crate::incarnation::seal_unused(&mut writer, &self.rotation.log_factory.config)?;
        follower.finish(&self.key).map(drop)
    }

    /// Signs a checkpoint and returns the delay until the next checkpoint. If there is no disk
    /// space, or the signer is unavailable, the former checkpoint remains.
    fn sign_checkpoint(&mut self) -> Result<Duration, WalError> {
        match self.follower.sign_checkpoint(&self.key) {
            Err(error) if !self.follower.watermark().is_poisoned() && error.is_out_of_space() => {
                Ok(self.checkpoint_interval)
            }
            Err(error) if error.is_signer_failure() => {
                Ok(signer_unavailable(&error).max(self.checkpoint_interval))
            }
            Err(error) => Err(error),
            Ok(note) => {
                self.checkpoint_timestamp.set(unix_seconds());
                self.store_held_checkpoint(&note);
                Ok(self.checkpoint_interval)
            }
        }
    }

    /// Stores a checkpoint outside the ledger as well. If this fails, the former checkpoint
    /// remains, and the next interval retries.
    fn store_held_checkpoint(&self, note: &str) {
        if let Some(held) = &self.held_checkpoint
            && let Err(error) = held.store(note)
        {
            proofgate_log::warning!("cannot store the checkpoint outside the ledger: {error}");
        }
    }
}

/// Logs that the signer failed. Returns the delay before the next call to it.
fn signer_unavailable(error: &dyn std::fmt::Display) -> Duration {
    proofgate_log::error!(
        "cannot sign the ledger: {error}; retrying in {} seconds",
        SIGNER_RETRY_DELAY.as_secs()
    );
    SIGNER_RETRY_DELAY
}
