//! Disks that fail or change while they are read.

use proofgate_evidence::{ReadFile, ReadStorage};
use proofgate_wal::simulated::SimulatedDisk;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A disk of which one name is withheld from whoever reads it.
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

/// Calls that are left until something happens on a disk, and what.
type Happens<'d> = (usize, Box<dyn FnOnce() + Send + 'd>);

/// A disk on which something happens while it is read.
pub struct InterceptedStorage<'d> {
    disk: &'d SimulatedDisk,
    happens: Mutex<Option<Happens<'d>>>,
}

impl<'d> InterceptedStorage<'d> {
    /// It happens before the call of this number.
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
