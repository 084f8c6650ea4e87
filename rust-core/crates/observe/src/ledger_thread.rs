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
use proofgate_wal::{Follower, Incarnation, Preparation, Unsynced, WalError};

use crate::held_checkpoint::HeldCheckpoint;
use crate::incarnation::NextLog;
use crate::ledger_delay::LedgerDelay;
use crate::rotation::{Bounds, CurrentLog, Desk, InService, Next};

/// How long the thread sleeps between two looks at what was written, while nothing is.
const IDLE_POLL: Duration = Duration::from_millis(50);

/// How long it sleeps while records come. What has gathered until then is a small piece of work: traffic that wakes up
/// meanwhile waits for its end, and on many kernels for that of a time slice of some milliseconds if it takes so long.
/// Each look costs the core some ten microseconds, much of it for the timer of a virtual machine.
const BUSY_POLL: Duration = Duration::from_millis(4);

/// How long it leaves the processor to the traffic between two steps behind which more is written.
const PAUSE: Duration = Duration::from_micros(200);

/// Of a segment that is made ready ahead of need, what is written at a time: at least this, and twice what the log
/// has grown by meanwhile, so that it is ready when half of the former one is filled.
const PREPARED_TOGETHER: u64 = 256 << 10;
const PREPARED_FASTER: u64 = 2;

/// Bytes of records that are synced together. More of them would wait for the next checkpoint and then take the processor
/// for milliseconds.
const SYNCED_TOGETHER: u64 = 4 << 20;

/// How long it waits after it found no space for a segment.
const STARVED: Duration = Duration::from_secs(1);

/// Logs that are asked for before the one in service is full or old begin so far apart, at least.
const ASKED_APART: Duration = Duration::from_secs(10);

/// How long it waits after the next log could not be made.
const NOT_MADE: Duration = Duration::from_secs(60);

/// How long a signer that gave no signature is left alone: while it is asked, nothing is synced.
const SIGNER_AWAY: Duration = Duration::from_secs(10);

/// The thread that turns written records into evidence: reads them back, grows the tree, syncs, signs checkpoints, and
/// has the next log made in time.
pub struct LedgerThread {
    pub follower: Follower,
    pub key: SigningKey,
    pub durability: Durability,
    pub checkpoint_interval: Duration,
    /// Set when the last record has been appended.
    pub finish: Arc<AtomicBool>,
    pub delay: Arc<LedgerDelay>,
    pub current: CurrentLog,
    pub rotation: Rotation,
    pub held: Option<HeldCheckpoint>,
    /// Files beside the logs that records speak of.
    pub unsynced: Option<Arc<Unsynced>>,
    /// When the newest checkpoint was signed, in unix seconds.
    pub checkpoint_timestamp: Gauge,
}

/// What becomes of the log in service.
pub struct Rotation {
    pub bounds: Bounds,
    pub desk: Arc<Desk>,
    /// How the next log is made.
    pub next: NextLog,
    since: Instant,
    state: State,
    /// Before this moment nobody is asked to sign the end of the former log again.
    asks_at: Instant,
    /// When a log was last begun because somebody had asked for it.
    asked_at: Option<Instant>,
}

enum State {
    /// Nothing to do before this moment.
    Idle(Instant),
    /// A thread of its own makes the next log, as that takes some syncs.
    Making(JoinHandle<Result<Incarnation, WalError>>),
    /// The next log lies on the desk; its follower waits here.
    Laid(Box<(Follower, InService)>),
}

impl Rotation {
    pub fn new(bounds: Bounds, desk: Arc<Desk>, next: NextLog) -> Self {
        let since = Instant::now();
        Rotation {
            bounds,
            desk,
            next,
            since,
            state: State::Idle(since),
            asks_at: since,
            asked_at: None,
        }
    }
}

impl LedgerThread {
    /// Runs until the log is sealed and its last checkpoint is on disk, or until it fails; a failure, also a panic,
    /// poisons the log, and a poisoned log admits nothing. `false` when it failed.
    pub fn run(mut self) -> bool {
        priority::yield_to_traffic();
        let failed = match catch_unwind(AssertUnwindSafe(|| self.follow())) {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the ledger thread panicked".to_owned(),
        };
        // The data-plane thread may already have gone over to the next log.
        if let State::Laid(next) = &self.rotation.state {
            next.1.watermark.poison(failed.clone());
        }
        self.follower.watermark().poison(failed.clone());
        self.current.get().watermark.poison(failed);
        false
    }

    fn follow(&mut self) -> Result<(), WalError> {
        let mut checkpoint_due = Instant::now();
        let mut segment_due = checkpoint_due;
        let (mut written, mut unsynced) = (0, 0);
        loop {
            // Read before the last look: whatever was appended before it was set is then seen.
            let finish = self.finish.load(Ordering::Acquire);
            self.go_over()?;
            if finish {
                let note = self.follower.finish(&self.key)?;
                self.keep(&note);
                return self.put_away();
            }
            self.delay.seen();
            let (timer, followed) = (self.delay.profiler.timer(), self.follower.followed());
            let bytes = self.follower.watermark().written_bytes();
            let grown = bytes.saturating_sub(std::mem::replace(&mut written, bytes));
            let mut prepares = false;
            while Instant::now() >= segment_due && !prepares {
                let most = PREPARED_TOGETHER.max(grown.saturating_mul(PREPARED_FASTER));
                match self.follower.prepare_some(most) {
                    Preparation::Prepared => {}
                    Preparation::Begun => prepares = true,
                    Preparation::Enough => break,
                    Preparation::Starved(_) => segment_due = Instant::now() + STARVED,
                }
            }
            while self.follower.step()?.behind {
                park_timeout(PAUSE);
            }
            unsynced += grown;
            if self.durability == Durability::Synced || unsynced >= SYNCED_TOGETHER {
                self.follower.sync()?;
                unsynced = 0;
            }
            let watermark = self.follower.watermark();
            if watermark.checkpointed() < self.follower.followed() && Instant::now() >= checkpoint_due {
                self.follower.sync()?;
                let pause = self.sign()?;
                checkpoint_due = Instant::now() + pause;
            }
            self.have_the_next_log_made();
            let follows = self.follower.followed() > followed;
            if follows {
                timer.stop(&self.delay.profiler, Interval::LedgerBatch);
            }
            let poll = if follows || prepares { BUSY_POLL } else { IDLE_POLL };
            park_timeout(poll.min(self.checkpoint_interval));
        }
    }

    /// Has the next log made when it is time, and lays it on the desk.
    fn have_the_next_log_made(&mut self) {
        let state = std::mem::replace(&mut self.rotation.state, State::Idle(Instant::now()));
        self.rotation.state = match state {
            State::Idle(due) if Instant::now() < due || !self.is_due() => State::Idle(due),
            State::Idle(due) => match self.follower.signed() {
                Some(former) => {
                    if self.rotation.desk.begin_next() {
                        self.rotation.asked_at = Some(Instant::now());
                    }
                    match self.rotation.next.make(self.follower.incarnation(), former) {
                        Ok(thread) => State::Making(thread),
                        Err(error) => self.not_made(&error),
                    }
                }
                None => State::Idle(due),
            },
            State::Making(thread) if !thread.is_finished() => State::Making(thread),
            State::Making(thread) => match thread.join() {
                Ok(Ok(log)) => self.lay(log),
                Ok(Err(error)) => self.not_made(&error),
                Err(_) => self.not_made(&"its thread panicked"),
            },
            laid @ State::Laid(_) => laid,
        };
    }

    /// Without another log this one goes on; one is still asked for.
    fn not_made(&self, error: &dyn std::fmt::Display) -> State {
        proofgate_log::warning!("cannot create the next log, continuing with this one: {error}");
        self.rotation.desk.ask();
        State::Idle(Instant::now() + NOT_MADE)
    }

    fn is_due(&self) -> bool {
        let Rotation {
            bounds, since, desk, ..
        } = &self.rotation;
        let apart = self
            .rotation
            .asked_at
            .is_none_or(|at| at.elapsed() >= ASKED_APART);
        let asked = desk.is_asked() && apart;
        asked || self.follower.watermark().written_bytes() >= bounds.bytes || since.elapsed() >= bounds.age
    }

    fn lay(&mut self, mut log: Incarnation) -> State {
        if let Some(unsynced) = &self.unsynced {
            log.follower.sync_beside(Arc::clone(unsynced));
        }
        let in_service = InService {
            origin: log.origin,
            directory: log.dir,
            incarnation: log.incarnation,
            watermark: log.writer.watermark(),
            before: 0,
        };
        self.rotation.desk.lay_next(Next {
            incarnation: log.incarnation,
            writer: log.writer,
            config: self.rotation.next.config,
        });
        State::Laid(Box::new((log.follower, in_service)))
    }

    /// Goes over to the next log once the data-plane thread has: the former one is signed to its end first, so that
    /// nothing in the next can be durable before what came before it.
    fn go_over(&mut self) -> Result<(), WalError> {
        if !self.follower.watermark().sealed()
            || self.rotation.desk.holds_next()
            || Instant::now() < self.rotation.asks_at
        {
            return Ok(());
        }
        match std::mem::replace(&mut self.rotation.state, State::Idle(Instant::now())) {
            State::Laid(next) => {
                match self.follower.finish(&self.key) {
                    Err(error) if error.is_of_the_signer() => {
                        self.rotation.asks_at = Instant::now() + away(&error);
                        self.rotation.state = State::Laid(next);
                        return Ok(());
                    }
                    other => other?,
                };
                let (follower, mut in_service) = *next;
                self.checkpoint_timestamp.set(unix_seconds());
                in_service.before = self.current.get().before + self.follower.followed();
                self.rotation.desk.lay_ended(self.follower.left());
                self.follower = follower;
                self.current.replace(in_service);
                self.rotation.since = Instant::now();
            }
            other => self.rotation.state = other,
        }
        Ok(())
    }

    /// Ends a next log that nobody went over to, so that it says itself that it was never used.
    fn put_away(&mut self) -> Result<(), WalError> {
        let state = std::mem::replace(&mut self.rotation.state, State::Idle(Instant::now()));
        let (mut follower, mut writer) = match state {
            State::Idle(_) => return Ok(()),
            State::Making(thread) => match thread.join() {
                Ok(Ok(log)) => (log.follower, log.writer),
                _ => return Ok(()),
            },
            State::Laid(next) => match self.rotation.desk.take_back() {
                Some(on_desk) => (next.0, on_desk.writer),
                None => return Ok(()),
            },
        };
        crate::incarnation::seal_unused(&mut writer, &self.rotation.next.config)?;
        follower.finish(&self.key).map(drop)
    }

    /// Signs a checkpoint; returns after which time to do so again. Without space for it, or without a signature of a
    /// signer that is away, the former one stays.
    fn sign(&mut self) -> Result<Duration, WalError> {
        match self.follower.checkpoint(&self.key) {
            Err(error) if !self.follower.watermark().is_poisoned() && error.is_out_of_space() => {
                Ok(self.checkpoint_interval)
            }
            Err(error) if error.is_of_the_signer() => Ok(away(&error).max(self.checkpoint_interval)),
            Err(error) => Err(error),
            Ok(note) => {
                self.checkpoint_timestamp.set(unix_seconds());
                self.keep(&note);
                Ok(self.checkpoint_interval)
            }
        }
    }

    /// Keeps a checkpoint outside the ledger, too. Where that fails, the former one goes on being held, and the next
    /// interval tries again.
    fn keep(&self, note: &str) {
        if let Some(held) = &self.held
            && let Err(error) = held.keep(note)
        {
            proofgate_log::warning!("cannot store the checkpoint outside the ledger: {error}");
        }
    }
}

/// Tells that there is no signature; for how long not to ask for one again.
fn away(error: &dyn std::fmt::Display) -> Duration {
    proofgate_log::error!(
        "cannot sign the ledger: {error}; retrying in {} seconds",
        SIGNER_AWAY.as_secs()
    );
    SIGNER_AWAY
}
