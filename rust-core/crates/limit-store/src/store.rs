//! The store, which writes its own state file and reads all others.

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

/// The longest interval between writes of the own file while requests are in flight, so that other workers keep counting
/// them.
const WRITE_INTERVAL_MICROS: u64 = IN_FLIGHT_FRESH_SECONDS * 1_000_000 / 3;

/// Minimum backward jump of the clock, in microseconds, that counts as a change of the clock (one
/// minute).
const MIN_CLOCK_STEP_BACK: u64 = 60 * 1_000_000;
/// Number of polls, about two days, during which the consumption of predecessors is written in
/// full. A clock that shows the end of a day may have been set ahead and may be set back.
const INHERITED_FULL_POLLS: u64 = 2 * 86_400;

/// One incarnation's view of a gateway's state files. Times are unix microseconds.
///
/// 1. [`LimitStore::open`], before the first request, reads all files and writes the own file.
/// 2. For each of [`OpenedStore::crashed_predecessors`], replay its log and [`LimitStore::inherit`] the result.
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
    /// Predecessors that crashed, as recovered by this incarnation. They are retained even if their
    /// consumption no longer counts, so that no worker recovers them again.
    inherited: BTreeMap<Origin, Snapshot>,
    remote: RemoteSnapshots,
    /// Incarnations on the own shard with a damaged file.
    damaged: BTreeSet<Origin>,
    files: BTreeMap<Origin, KnownFile>,
    dirty: bool,
    /// Whether a limit needs counts that older workers cannot read.
    needs_all_counts: bool,
    writes: u64,
    written_at: u64,
    /// Time of the last poll of the files.
    polled_at: u64,
    polls: u64,
    buffer: Vec<u8>,
}

/// An opened store, with the crashed predecessors and problems found.
pub struct OpenedStore {
    /// The store.
    pub store: LimitStore,
    /// Predecessors on the own shard that did not end, oldest first: the last known snapshot of
    /// each, from which its log must be replayed. A predecessor with a damaged file has an empty
    /// snapshot.
    pub crashed_predecessors: Vec<Snapshot>,
    /// Files that could not be read or are damaged.
    pub problems: Vec<Problem>,
}

/// The state of another incarnation's file.
#[derive(Default)]
struct KnownFile {
    header: Option<[u8; HEADER_BYTES]>,
    /// The problem that was last reported for the file; `None` without one.
    problem: Option<String>,
    /// Whether the file is never read again.
    expired: bool,
}

impl LimitStore {
    /// Reads all files below `gateway` (the ledger's directory) and writes the first file of this life, whose shard
    /// directory must exist. With `sync`, writes survive a power loss.
    ///
    /// # Errors
    /// Returns [`LimitStoreError::Io`] if the gateway's directory cannot be listed or the own file cannot be written.
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
        // Until the first changes report the limits, no count is dropped that a limit may need.
        store.needs_all_counts = store.remote.snapshots().any(format::has_all_counts);
        store.remote.tick(now);
        store.write(now)?;
        Ok(OpenedStore {
            store,
            crashed_predecessors: crashed,
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

    /// Adds the last state of a predecessor, recovered from its log ([`proofgate_limits::Replay::finish`]). The next write
    /// publishes it.
    pub fn inherit(&mut self, ended: Snapshot, now: u64) {
        self.remote.insert(ended.clone(), now);
        self.inherited.insert(ended.origin, ended);
        self.dirty = true;
    }

    /// Applies the changes of the own limiter. Pass changes in the order in which they were taken.
    pub fn apply(&mut self, changes: &Changes) {
        self.own_snapshot.apply(changes);
        self.needs_all_counts = changes.needs_all_counts();
        self.dirty |= !changes.is_empty();
    }

    /// Marks this incarnation as finished: it will consume no more.
    pub fn finish(&mut self) {
        self.own_snapshot.finished = true;
        self.dirty = true;
    }

    /// Replaces the own file if anything changed; returns whether it did.
    ///
    /// # Errors
    /// Returns [`LimitStoreError`]; the previous file stays, and the next call retries.
    pub fn write(&mut self, now: u64) -> Result<bool, LimitStoreError> {
        self.own_snapshot.prune(now);
        // Measured in both directions of the clock, because other workers soon stop counting the
        // requests of a silent worker.
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

    /// Reads the files that have changed since the last poll. An unchanged file costs an open and a read of 32 bytes. A file
    /// that cannot be read or is damaged is returned once; the data read from it before stays in effect.
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

    /// Reads all files again after the clock was set back, because expired consumption may count
    /// again.
    fn recheck_all(&mut self, now: u64) {
        self.files.clear();
        for snapshot in self.inherited.values() {
            self.remote.insert(snapshot.clone(), now);
        }
    }

    /// Returns the sums over all other incarnations for at most `max` of the subjects whose sum has changed, for
    /// [`proofgate_limits::Limiter::apply_remote`].
    pub fn remote_changes(&mut self, max: usize, now: u64) -> Vec<(SubjectName, Usage)> {
        self.remote.take_changes(max, now)
    }

    /// Makes [`LimitStore::remote_changes`] return all sums again, for a limiter that has new limits.
    pub fn mark_all_changed(&mut self) {
        self.remote.mark_all_changed();
    }

    /// Returns the known consumption of all incarnations together for each tenant and each shared limit of a namespace.
    #[must_use]
    pub fn totals(&self, now: u64) -> HashMap<SubjectName, Totals> {
        let mut totals = HashMap::new();
        self.own_snapshot.add_to(&mut totals, now, true);
        self.remote.add_to(&mut totals, now);
        totals
    }

    /// Returns the known consumption of this incarnation.
    #[must_use]
    pub fn own_snapshot(&self) -> &Snapshot {
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
                // Its consumption no longer counts, and its successor has started.
                seen.expired = !incarnation.newest && self.remote.get(&origin).is_none();
                seen.problem.clone()
            }
            Ok(FileRead::Missing) => {
                // An incarnation writes its file before it serves requests, so this one never served.
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
                Some(match damage {
                    // A newer version may have written it.
                    format::UNSUPPORTED_VERSION => format!("the state file cannot be read: {damage}"),
                    _ => format!("the state file is damaged: {damage}"),
                })
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
