//! The own file, and everybody else's.

use crate::directory::{self, FileRead, Incarnation, file_name};
use crate::error::{LimitStoreError, Problem};
use crate::format::{self, HEADER_BYTES, MAX_FILE_BYTES};
use proofgate_limits::{
    Changes, IN_FLIGHT_FRESH_SECONDS, Origin, RemoteSnapshots, Snapshot, SubjectName, Totals, Usage,
};
use proofgate_wal::{Directory, Storage, Ulid};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// While requests are in flight the own file is written at least this often, so that others go on believing it.
const WRITE_INTERVAL_MICROS: u64 = IN_FLIGHT_FRESH_SECONDS * 1_000_000 / 3;

/// A clock that goes back by so many microseconds was set: a minute.
const MIN_CLOCK_STEP_BACK: u64 = 60 * 1_000_000;
/// For so many looks, some two days, what predecessors consumed is written whole: the clock that says that a day is over may
/// have been set ahead, and come back.
const INHERITED_FULL_POLLS: u64 = 2 * 86_400;

/// One incarnation's view of the state files of a gateway. Times are unix microseconds.
///
/// 1. [`LimitStore::open`], before the first request, reads all files and writes the own one.
/// 2. For each of [`OpenedStore::crashed`], replay its log and [`LimitStore::inherit`] the result.
/// 3. About once a second: [`LimitStore::apply`], [`LimitStore::write`], [`LimitStore::poll`],
///    [`LimitStore::remote_changes`].
/// 4. After the seal: the last changes, [`LimitStore::finish`], [`LimitStore::write`].
pub struct LimitStore {
    storage: Arc<dyn Storage>,
    gateway: PathBuf,
    directory: Arc<dyn Directory>,
    path: PathBuf,
    temporary: PathBuf,
    sync: bool,
    own_snapshot: Snapshot,
    /// Predecessors that crashed, as this incarnation worked them out. They stay when nothing of them counts any more,
    /// so that nobody works them out again.
    inherited: BTreeMap<Origin, Snapshot>,
    remote: RemoteSnapshots,
    /// Incarnations on the own shard whose file is damaged.
    damaged: BTreeSet<Origin>,
    files: BTreeMap<Origin, KnownFile>,
    dirty: bool,
    /// Whether a limit needs counts that workers from before them cannot read.
    needs_all_counts: bool,
    writes: u64,
    written_at: u64,
    /// When files were last looked at, and how often.
    polled_at: u64,
    polls: u64,
    buffer: Vec<u8>,
}

/// A store, and what was found when it was opened.
pub struct OpenedStore {
    /// The store.
    pub store: LimitStore,
    /// Predecessors on the own shard that did not end, oldest first: the last state known of each, from which its log is
    /// to be replayed. One whose file is damaged starts from nothing.
    pub crashed: Vec<Snapshot>,
    /// Files that could not be read or believed.
    pub problems: Vec<Problem>,
}

/// What is known of another incarnation's file.
#[derive(Default)]
struct KnownFile {
    header: Option<[u8; HEADER_BYTES]>,
    /// What was last said about it.
    problem: Option<String>,
    /// It is never looked at again.
    expired: bool,
}

impl LimitStore {
    /// Reads all files below `gateway` (the ledger's directory) and writes the first one of this life, whose shard's
    /// directory must be there. With `sync`, what is written survives a loss of power.
    ///
    /// # Errors
    /// [`LimitStoreError::Io`] when the gateway's directory cannot be listed or the own file not be written.
    pub fn open(
        storage: Arc<dyn Storage>,
        gateway: &Path,
        shard: u32,
        incarnation: Ulid,
        sync: bool,
        now: u64,
    ) -> Result<OpenedStore, LimitStoreError> {
        let dir = gateway.join(shard.to_string());
        let path = dir.join(file_name(incarnation));
        let directory = storage
            .open_dir(&dir)
            .map_err(LimitStoreError::io("open", &dir))?;
        let own = Origin {
            shard,
            incarnation: incarnation.0,
        };
        let mut store = Self {
            storage,
            gateway: gateway.to_owned(),
            directory,
            temporary: path.with_extension("limits.tmp"),
            path,
            sync,
            own_snapshot: Snapshot::empty(own),
            inherited: BTreeMap::new(),
            remote: RemoteSnapshots::new(own),
            damaged: BTreeSet::new(),
            files: BTreeMap::new(),
            dirty: true,
            needs_all_counts: false,
            writes: 0,
            written_at: 0,
            polled_at: 0,
            polls: 0,
            buffer: Vec::new(),
        };
        let problems = store
            .read_others(now)
            .map_err(LimitStoreError::io("list", gateway))?;
        let crashed = store.crashed();
        // Until changes say what is limited, nothing that was worth a count is forgotten.
        store.needs_all_counts = store.remote.snapshots().any(format::has_all_counts);
        store.remote.tick(now);
        store.write(now)?;
        Ok(OpenedStore {
            store,
            crashed,
            problems,
        })
    }

    fn crashed(&self) -> Vec<Snapshot> {
        let own = self.own_snapshot.origin;
        let unreadable = self
            .damaged
            .iter()
            .filter(|origin| self.remote.get(origin).is_none());
        let unreadable = unreadable.map(|origin| Snapshot::empty(*origin));
        let unended = self
            .remote
            .snapshots()
            .filter(|snapshot| !snapshot.finished)
            .cloned();
        let mut crashed: Vec<Snapshot> = unreadable
            .chain(unended)
            .filter(|found| found.origin.shard == own.shard && found.origin.incarnation < own.incarnation)
            .collect();
        crashed.sort_by_key(|found| found.origin);
        crashed
    }

    /// Takes over the last state of a predecessor, as its log tells it ([`proofgate_limits::Replay::finish`]). It is
    /// published with the next write.
    pub fn inherit(&mut self, ended: Snapshot, now: u64) {
        self.remote.insert(ended.clone(), now);
        self.inherited.insert(ended.origin, ended);
        self.dirty = true;
    }

    /// Adds what changed in the own limiter. Changes come in the order in which they were taken.
    pub fn apply(&mut self, changes: &Changes) {
        self.own_snapshot.apply(changes);
        self.needs_all_counts = changes.needs_all_counts();
        self.dirty |= !changes.is_empty();
    }

    /// Says that this incarnation has consumed all that it ever will.
    pub fn finish(&mut self) {
        self.own_snapshot.finished = true;
        self.dirty = true;
    }

    /// Replaces the own file, if there is anything new to say; returns whether there was.
    ///
    /// # Errors
    /// [`LimitStoreError`]; the file before stays, and the next call tries again.
    pub fn write(&mut self, now: u64) -> Result<bool, LimitStoreError> {
        self.own_snapshot.prune(now);
        // Whichever way the clock went: others believe nobody for long who falls silent.
        let silent = now.abs_diff(self.written_at) >= WRITE_INTERVAL_MICROS;
        let due = silent
            && self
                .own_snapshot
                .subjects
                .values()
                .any(|usage| usage.in_flight > 0);
        if !self.dirty && !due {
            return Ok(false);
        }
        if self.polls > INHERITED_FULL_POLLS {
            for snapshot in self.inherited.values_mut() {
                snapshot.prune(now);
            }
        }
        self.own_snapshot.taken_at = self.own_snapshot.taken_at.max(now);
        self.writes += 1;
        let snapshots = std::iter::once(&self.own_snapshot).chain(self.inherited.values());
        format::encode(self.writes, snapshots, self.needs_all_counts, &mut self.buffer);
        if self.buffer.len() > MAX_FILE_BYTES {
            return Err(LimitStoreError::TooLarge {
                subjects: self.own_snapshot.subjects.len(),
                bytes: self.buffer.len(),
                limit: MAX_FILE_BYTES,
            });
        }
        let paths = (self.temporary.as_path(), self.path.as_path());
        directory::replace_file(&*self.storage, &*self.directory, paths, &self.buffer, self.sync)
            .map_err(|(call, source)| LimitStoreError::io(call, &self.path)(source))?;
        self.dirty = false;
        self.written_at = now;
        Ok(true)
    }

    /// Reads the files that have changed since the last look, at the cost of an open and a read of 32 bytes for each that
    /// has not. What cannot be read or believed is returned once; what was read before it stands.
    pub fn poll(&mut self, now: u64) -> Vec<Problem> {
        if now.saturating_add(MIN_CLOCK_STEP_BACK) < self.polled_at {
            self.recheck_all(now);
        }
        self.polled_at = now;
        self.polls = self.polls.saturating_add(1);
        match self.read_others(now) {
            Ok(problems) => {
                self.remote.tick(now);
                problems
            }
            Err(error) => vec![Problem {
                path: self.gateway.clone(),
                reason: format!("list: {error}"),
            }],
        }
    }

    /// The clock was set back: what no longer counted may count again, and is read once more.
    fn recheck_all(&mut self, now: u64) {
        self.files.clear();
        for snapshot in self.inherited.values() {
            self.remote.insert(snapshot.clone(), now);
        }
    }

    /// For [`proofgate_limits::Limiter::apply_remote`]: the sums over all others, of at most `max` of the subjects for which it
    /// has changed.
    pub fn remote_changes(&mut self, max: usize, now: u64) -> Vec<(SubjectName, Usage)> {
        self.remote.take_changes(max, now)
    }

    /// Lets all sums come again with [`LimitStore::remote_changes`], for a limiter that has new limits.
    pub fn mark_all_changed(&mut self) {
        self.remote.mark_all_changed();
    }

    /// What all incarnations together have consumed of the limits of each tenant, and of those that the tenants of each
    /// namespace share, as far as it was told.
    #[must_use]
    pub fn totals(&self, now: u64) -> HashMap<SubjectName, Totals> {
        let mut totals = HashMap::new();
        self.own_snapshot.add_to(&mut totals, now, true);
        self.remote.add_to(&mut totals, now);
        totals
    }

    /// What this incarnation has consumed, as far as it was told.
    #[must_use]
    pub fn own(&self) -> &Snapshot {
        &self.own_snapshot
    }

    fn read_others(&mut self, now: u64) -> std::io::Result<Vec<Problem>> {
        let mut problems = Vec::new();
        let incarnations = directory::list_incarnations(&*self.storage, &self.gateway, now, &mut problems)?;
        for incarnation in &incarnations {
            if incarnation.origin != self.own_snapshot.origin {
                problems.extend(self.read_other(incarnation, now));
            }
        }
        let known: BTreeSet<Origin> = incarnations.iter().map(|found| found.origin).collect();
        self.files.retain(|origin, _| known.contains(origin));
        Ok(problems)
    }

    fn read_other(&mut self, incarnation: &Incarnation, now: u64) -> Option<Problem> {
        let origin = incarnation.origin;
        let seen = self.files.entry(origin).or_default();
        if seen.expired {
            return None;
        }
        let path = incarnation.path.clone();
        let read = directory::read(&*self.storage, &path, origin, seen.header.as_ref());
        let problem = match read {
            Ok(FileRead::Unchanged) => {
                // Nothing of it counts, and its successor has begun.
                seen.expired = !incarnation.newest && self.remote.get(&origin).is_none();
                seen.problem.clone()
            }
            Ok(FileRead::Missing) => {
                // It writes one before it serves.
                seen.expired = !incarnation.newest;
                None
            }
            Ok(FileRead::Snapshots(header, snapshots)) => {
                seen.header = Some(header);
                self.damaged.remove(&origin);
                for snapshot in snapshots {
                    self.remote.insert(snapshot, now);
                }
                None
            }
            Ok(FileRead::Damaged(damage)) => {
                seen.header = None;
                self.damaged.insert(origin);
                Some(damage.to_owned())
            }
            Err(error) => Some(error.to_string()),
        };
        let news = problem
            .clone()
            .filter(|problem| seen.problem.as_ref() != Some(problem));
        seen.problem = problem;
        news.map(|reason| Problem { path, reason })
    }
}
