//! Disks that fail or change while they are read.

use proofgate_evidence::{ReadFile, ReadStorage};
use proofgate_wal::simulated::SimulatedDisk;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A disk with one path that readers are not permitted to open.
pub struct DeniedPathStorage<'d>(pub &'d SimulatedDisk, pub PathBuf);

impl ReadStorage for DeniedPathStorage<'_> {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        match path == self.1 {
            true => Err(io::ErrorKind::PermissionDenied.into()),
            false => self.0.open(path),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.0.list(path)
    }
}

/// The number of calls before an action on a disk, and the action.
type Happens<'d> = (usize, Box<dyn FnOnce() + Send + 'd>);

/// A disk on which an action runs while it is read.
pub struct InterceptedStorage<'d> {
    disk: &'d SimulatedDisk,
    happens: Mutex<Option<Happens<'d>>>,
}

impl<'d> InterceptedStorage<'d> {
    /// Creates a disk on which the action `what` runs before call number `call` (0-based).
    pub fn with_action_at(disk: &'d SimulatedDisk, call: usize, what: impl FnOnce() + Send + 'd) -> Self {
        let happens = Mutex::new(Some((call, Box::new(what) as Box<_>)));
        Self { disk, happens }
    }

    pub fn has_run(&self) -> bool {
        self.happens.lock().unwrap().is_none()
    }

    fn tick(&self) {
        let mut happens = self.happens.lock().unwrap();
        match happens.take() {
            Some((0, what)) => what(),
            Some((left, what)) => *happens = Some((left - 1, what)),
            None => {}
        }
    }
}

impl ReadStorage for InterceptedStorage<'_> {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.tick();
        self.disk.open(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.tick();
        self.disk.list(path)
    }
}
