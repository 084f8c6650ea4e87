//! The thread that publishes this worker's consumption of tenant limits, and reads the consumption
//! of other workers.

use std::collections::HashMap;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use proofgate_base::Error;
use proofgate_base::clock::{MAX_LIMIT_TIME_LEAD, unix_micros};
use proofgate_base::priority;
use proofgate_ledger::record::Record;
use proofgate_limit_store::{LimitStore, OpenedStore};
use proofgate_limits::{
    ActualUsage, AdmittedReservation, Changes, CredentialId, Limiter, Replay, Snapshot, SubjectName, Totals,
    Usage,
};
use proofgate_wal::{FileStorage, Shard, Ulid, WalError, recovery};
use tokio::sync::mpsc;

use crate::ledger_keys::LedgerKeys;
use crate::recorder::clock_steps::CLOCK_STEP;

/// Interval between two reads of other workers' files.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Number of subjects that the data-plane thread processes in one turn of its event loop.
const SUBJECTS_PER_TURN: usize = 256;
/// Maximum number of queued messages in each direction.
const QUEUE_CAPACITY: usize = 4;

type RemoteUsage = Vec<(SubjectName, Usage)>;

/// A message of the data-plane thread.
enum LimitUpdate {
    Changes(Changes),
    /// The limits have changed, so the thread must send the consumption of the other workers again.
    Resend,
    /// The log is sealed, so there are no more changes.
    Finish,
}

/// The data-plane thread's side of the limits thread.
pub struct LimitThreadHandle {
    updates: SyncSender<LimitUpdate>,
    remote_usage: mpsc::Receiver<RemoteUsage>,
    /// The update that could not be sent yet.
    unsent: Option<LimitUpdate>,
    /// Whether the thread must be asked to send everything again.
    needs_resend: bool,
    /// The consumption of other workers before the start.
    initial_usage: RemoteUsage,
}

/// The state of the limits thread, shared with the admin port. The limits thread and the admin port
/// may wait for each other. The data-plane thread waits for neither while it serves.
#[derive(Clone)]
pub struct SharedLimitStore(Arc<Mutex<LimitStore>>);

impl SharedLimitStore {
    fn lock(&self) -> MutexGuard<'_, LimitStore> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reported consumption of the limits of tenants and namespaces by all workers
    /// together. Waits while files are read or written.
    pub fn totals(&self) -> HashMap<SubjectName, Totals> {
        self.lock().totals(unix_micros())
    }
}

/// The slow side, which runs as a thread.
pub struct LimitThread {
    store: SharedLimitStore,
    updates: Receiver<LimitUpdate>,
    remote_usage: mpsc::Sender<RemoteUsage>,
}

/// A mapping of the model names in records, which are the names that clients requested.
pub trait ModelNames {
    /// Returns the configured name of the model that serves `asked`, or `asked` itself if no model
    /// serves it.
    fn configured_name<'n>(&'n self, asked: &'n str) -> &'n str;
}

/// A worker run of a gateway.
pub struct WorkerRun<'p> {
    pub gateway_dir: &'p Path,
    pub shard: u32,
    /// The first log of this worker run.
    pub incarnation: Ulid,
    pub keys: &'p LedgerKeys,
    /// The name of the ledger.
    pub ledger: &'p str,
    /// Whether written files must survive a loss of power.
    pub sync: bool,
    pub models: &'p dyn ModelNames,
}

/// Reads the consumption of other workers, and computes the consumption of crashed predecessors
/// from their logs.
pub fn open(place: &WorkerRun<'_>) -> Result<(LimitThread, LimitThreadHandle), Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Ledger(format!("limits: {error}"));
    let now = unix_micros();
    let opened = LimitStore::open(
        Arc::new(FileStorage),
        place.gateway_dir,
        place.shard,
        place.incarnation,
        place.sync,
        now,
    );
    let OpenedStore {
        mut store,
        crashed_predecessors: crashed,
        problems,
    } = opened.map_err(|error| failed(&error))?;
    for problem in problems {
        proofgate_log::warning!("limits: {}: {}", problem.path.display(), problem.reason);
    }
    let directory = place.gateway_dir.join(place.shard.to_string());
    let shard = Shard {
        dir: &directory,
        ledger: place.ledger,
        number: place.shard,
        key: &place.keys.signing,
        previous_key: place.keys.former_key.as_ref(),
    };
    let mut lives: Vec<Ulid> = crashed.iter().map(|life| Ulid(life.origin.incarnation)).collect();
    lives.push(place.incarnation);
    for (snapshot, until) in crashed.into_iter().zip(lives.into_iter().skip(1)) {
        let ended = replay(&shard, place.models, snapshot, until, now).map_err(|error| failed(&error))?;
        store.inherit(ended, now);
    }
    store.write(now).map_err(|error| failed(&error))?;
    let initial = store.remote_changes(usize::MAX, now);
    let (told, hears) = sync_channel(QUEUE_CAPACITY);
    let (says, foreign) = mpsc::channel(QUEUE_CAPACITY);
    let thread = LimitThread {
        store: SharedLimitStore(Arc::new(Mutex::new(store))),
        updates: hears,
        remote_usage: says,
    };
    let link = LimitThreadHandle {
        updates: told,
        remote_usage: foreign,
        unsent: None,
        needs_resend: false,
        initial_usage: initial,
    };
    Ok((thread, link))
}

/// Computes the consumption of a worker run after its last snapshot, from the run's logs. Record
/// positions count across all of these logs.
fn replay(
    shard: &Shard<'_>,
    models: &dyn ModelNames,
    snapshot: Snapshot,
    until: Ulid,
    now: u64,
) -> Result<Snapshot, WalError> {
    let logs = recovery::run_logs(&FileStorage, shard, Ulid(snapshot.origin.incarnation), until)?;
    let position = |incarnation: Ulid, seq: u64| {
        let base = logs.iter().find(|(log, _)| *log == incarnation);
        base.map(|(_, base)| base + seq)
    };
    let through = snapshot.through_seq;
    let mut replay = Replay::new(snapshot);
    let mut from = (0, 0);
    let resumed = match logs.last() {
        Some((last, base)) => {
            recovery::find_resume_point(&FileStorage, shard, *last)?.map(|place| (*base, place))
        }
        None => None,
    };
    // Records that the snapshot covers need not be read.
    if let Some((base, (size, open))) = resumed
        && base + size <= through
    {
        for open in open {
            if let (Some(at), Some(reserved)) = (position(open.incarnation, open.admission), open.reserved) {
                replay.record_admission(&AdmittedReservation {
                    seq: at,
                    ts: open.ts,
                    tenant: &open.tenant,
                    key: CredentialId::parse(&open.key),
                    model: models.configured_name(&open.model),
                    reserved,
                    reserved_cost: open.reserved_nanodollars,
                    shared_plan: open.shared_plan.as_deref(),
                });
            }
        }
        from = (logs.len().saturating_sub(1), size);
    }
    let mut records = through;
    for (incarnation, base) in logs.iter().skip(from.0) {
        recovery::replay(&FileStorage, shard.dir, *incarnation, from.1, |record| {
            let at = base + record.seq();
            records = records.max(at + 1);
            apply_record(
                &mut replay,
                models,
                record,
                at,
                |admission, elsewhere| match elsewhere {
                    None => Some(base + admission),
                    Some(log) => position(Ulid::from_string(log).ok()?, admission),
                },
            );
        })?;
        from.1 = 0;
    }
    Ok(replay.finish(records, now))
}

fn apply_record(
    replay: &mut Replay,
    models: &dyn ModelNames,
    record: &Record<'_>,
    at: u64,
    admission_at: impl FnOnce(u64, Option<&str>) -> Option<u64>,
) {
    match record {
        Record::Admission(admission) => {
            if let Some(reserved) = admission.reserved {
                replay.record_admission(&AdmittedReservation {
                    seq: at,
                    ts: admission.ts,
                    tenant: &admission.tenant,
                    key: CredentialId::parse(&admission.key),
                    model: models.configured_name(&admission.model),
                    reserved,
                    reserved_cost: admission.reserved_nanodollars,
                    shared_plan: admission.shared_plan.as_deref(),
                });
            }
        }
        Record::Completion(completion) => {
            if let Some(admission) = admission_at(completion.admission, completion.incarnation.as_deref()) {
                let cost = completion.cost_nanodollars.unwrap_or(0);
                let charged = completion.charged.map(|tokens| ActualUsage { tokens, cost });
                replay.record_completion(at, completion.ts, admission, charged);
            }
        }
        Record::Rejection(rejection) => {
            if let (Some(tenant), Some(key)) = (&rejection.tenant, &rejection.counted) {
                let shared_plan = rejection.shared_plan.as_deref();
                replay.record_counted_rejection(
                    at,
                    rejection.ts,
                    tenant,
                    CredentialId::parse(key),
                    shared_plan,
                );
            }
        }
        Record::Gap(gap) if gap.code == CLOCK_STEP => {
            replay.record_clock_step(at, gap.first_ts, gap.last_ts, MAX_LIMIT_TIME_LEAD);
        }
        _ => {}
    }
}

impl LimitThreadHandle {
    /// Applies the consumption of other workers before the start. Called once, when the limiter has
    /// its limits.
    pub fn apply_initial_usage(&mut self, limiter: &mut Limiter, now: u64) {
        limiter.apply_remote(&std::mem::take(&mut self.initial_usage), now);
    }

    /// Sends this worker's changes and applies the consumption of other workers. Called about once
    /// a second. Never waits: while the limits thread is busy, changes remain in the limiter.
    pub fn sync_usage(&mut self, limiter: &mut Limiter, appended: u64, now: u64) {
        if self.unsent.is_none() && std::mem::take(&mut self.needs_resend) {
            self.unsent = Some(LimitUpdate::Resend);
        }
        if self.flush() {
            let mut changes = Changes::default();
            limiter.take_changes(appended, now, &mut changes);
            if !changes.is_empty() {
                self.unsent = Some(LimitUpdate::Changes(changes));
                self.flush();
            }
        }
        while let Ok(foreign) = self.remote_usage.try_recv() {
            limiter.apply_remote(&foreign, now);
        }
        limiter.sweep(SUBJECTS_PER_TURN, now);
    }

    /// Sends the last changes, after the seal, and ends the updates. Blocks until the thread receives them.
    pub fn finish(mut self, limiter: &mut Limiter, appended: u64, now: u64) {
        let mut changes = Changes::default();
        limiter.take_changes(appended, now, &mut changes);
        let remaining = [
            self.unsent.take(),
            Some(LimitUpdate::Changes(changes)),
            Some(LimitUpdate::Finish),
        ];
        for told in remaining.into_iter().flatten() {
            let _ = self.updates.send(told);
        }
    }

    /// Sends the pending update. Returns whether no update is pending any more.
    fn flush(&mut self) -> bool {
        if let Some(told) = self.unsent.take() {
            match self.updates.try_send(told) {
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
                Err(TrySendError::Full(told)) => self.unsent = Some(told),
            }
        }
        self.unsent.is_none()
    }

    /// Marks that limits have changed.
    pub fn notify_limits_changed(&mut self) {
        self.needs_resend = true;
    }
}

impl LimitThread {
    /// Returns the shared state of the thread.
    pub fn store(&self) -> SharedLimitStore {
        self.store.clone()
    }

    /// Runs until the data plane has ended. Returns false if the last state could not be written.
    /// If the data plane ended without a seal, the worker's successor computes the final state from
    /// the log.
    pub fn run(self) -> bool {
        priority::lower_priority();
        loop {
            match self.updates.recv_timeout(POLL_INTERVAL) {
                Ok(LimitUpdate::Changes(changes)) => self.store.lock().apply(&changes),
                Ok(LimitUpdate::Resend) => self.store.lock().mark_all_changed(),
                Ok(LimitUpdate::Finish) => {
                    let mut store = self.store.lock();
                    store.finish();
                    return store.write(unix_micros()).is_ok();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return true,
            }
            self.publish();
        }
    }

    fn publish(&self) {
        let mut store = self.store.lock();
        let now = unix_micros();
        // If this fails, the previous file remains and the next second retries. The log has all
        // data anyway.
        let _ = store.write(now);
        for problem in store.poll(now) {
            proofgate_log::warning!("limits: {}: {}", problem.path.display(), problem.reason);
        }
        while let Ok(permit) = self.remote_usage.try_reserve() {
            let foreign = store.remote_changes(SUBJECTS_PER_TURN, now);
            if foreign.is_empty() {
                break;
            }
            permit.send(foreign);
        }
    }
}

#[cfg(test)]
#[path = "limit_thread_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
