//! File system operations for readers, as traits, so that tests can inject faults and timing.

use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// A read-only file system.
pub trait ReadStorage: Send + Sync {
    /// Opens an existing file for reading. The call does not wait for the writer of a pipe, because
    /// anyone who can write to the volume may have created a pipe at this path.
    ///
    /// # Errors
    /// The errors of the file system; `InvalidData` for anything except a regular file, and for a
    /// link that does not lead to a regular file.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>>;

    /// Returns the names in a directory, sorted.
    ///
    /// # Errors
    /// The errors of the file system; `NotADirectory` for anything except a directory, and for a
    /// dangling link.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
}

/// An open file. It has no cursor: every read states its offset.
pub trait ReadFile: Send + Sync {
    /// Makes one positioned read; returns 0 at the end of the file.
    ///
    /// # Errors
    /// The errors of the file system.
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Returns the length in bytes.
    ///
    /// # Errors
    /// The errors of the file system.
    fn len(&self) -> io::Result<u64>;

    /// Returns the first offset at or after `from` that may have been written; `None` when the file
    /// contains only zeros from `from` to its end. If the file system cannot report this, returns
    /// `from`.
    ///
    /// # Errors
    /// The errors of the file system.
    fn next_data(&self, from: u64) -> io::Result<Option<u64>> {
        Ok(Some(from))
    }

    /// Returns whether the length is 0.
    ///
    /// # Errors
    /// The errors of the file system.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// The operating system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileStorage;

impl ReadStorage for FileStorage {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
            .open(path);
        // The flag has no effect on a regular file.
        let leads_nowhere = |error: &io::Error| error.kind() == io::ErrorKind::NotFound && path.is_symlink();
        match file {
            Ok(file) if file.metadata()?.is_file() => Ok(Arc::new(file)),
            Err(error) if !is_unopenable(&error) && !leads_nowhere(&error) => Err(error),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is not a regular file",
            )),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        let entries = std::fs::read_dir(path).map_err(|error| {
            let leads_nowhere = error.kind() == io::ErrorKind::NotFound && path.is_symlink();
            match leads_nowhere || is_unopenable(&error) {
                true => io::ErrorKind::NotADirectory.into(),
                false => error,
            }
        })?;
        for entry in entries {
            // All file names of the ledger are UTF-8.
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Returns whether an error means that nobody can open this path: links in a loop or to an
/// impossible name, a socket, or a missing device.
fn is_unopenable(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::LOOP | Errno::NAMETOOLONG | Errno::NXIO | Errno::NODEV)
    )
}

impl ReadFile for File {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        // No file is this long, so return the end of the file. The system call would fail, and the
        // offset may come from untrusted data.
        if i64::try_from(offset.saturating_add(into.len() as u64)).is_err() {
            return Ok(0);
        }
        loop {
            match FileExt::read_at(self, into, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn next_data(&self, from: u64) -> io::Result<Option<u64>> {
        match rustix::fs::seek(self, SeekFrom::Data(from)) {
            Ok(at) => Ok(Some(at.max(from))),
            Err(Errno::NXIO) => Ok(None),
            // The file system does not support the query.
            Err(_) => Ok(Some(from)),
        }
    }
}

/// Reads until `into` is full or the file ends; returns the number of bytes read.
///
/// # Errors
/// The errors of the file system.
pub fn read_full(file: &dyn ReadFile, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut done = 0;
    while done < into.len() {
        match file.read_at(&mut into[done..], offset + done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EvidenceError;
    use crate::frame::SegmentCrc;
    use crate::segment_reader::SegmentReader;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc;
    use std::time::Duration;
    use ulid::Ulid;

    #[test]
    fn behind_a_hole_the_first_byte_that_was_written_is_found_and_behind_the_last_none() {
        const AT: u64 = (32 << 20) + 5;
        let folder = tempfile::tempdir().unwrap();
        let file = File::create_new(folder.path().join("segment")).unwrap();
        file.write_all_at(&[1], 0).unwrap();
        file.write_all_at(&[1], AT).unwrap();
        file.set_len(2 * AT).unwrap();
        let file: Arc<dyn ReadFile> = Arc::new(File::open(folder.path().join("segment")).unwrap());
        assert!(
            file.next_data(1)
                .unwrap()
                .is_some_and(|at| (1..=AT).contains(&at))
        );
        assert_eq!(file.next_data(2 * AT).unwrap(), None);
        let key = SegmentCrc::new(Ulid::nil(), 0);
        let mut reader = SegmentReader::new(Arc::clone(&file), key, 2 * AT);
        assert_eq!(reader.first_nonzero(0).unwrap(), Some(0));
        assert_eq!(reader.first_nonzero(1).unwrap(), Some(AT));
        assert_eq!(reader.first_nonzero(AT + 1).unwrap(), None);
        assert_eq!(reader.resync(8, 0).unwrap(), None);
    }

    #[test]
    fn what_is_no_regular_file_is_refused_and_no_writer_of_a_pipe_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("tree");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let regular = folder.path().join("checkpoint");
        std::fs::write(&regular, "note").unwrap();
        let (told, asked) = mpsc::channel();
        let paths = [pipe, folder.path().to_owned()];
        std::thread::spawn(move || {
            for path in paths {
                let refused = FileStorage.open(&path).err().map(|error| error.kind());
                told.send(refused).unwrap();
            }
        });
        for _ in 0..2 {
            let refused = asked.recv_timeout(Duration::from_secs(10));
            assert_eq!(refused, Ok(Some(io::ErrorKind::InvalidData)));
        }
        let mut read = [0; 4];
        let file = FileStorage.open(&regular).unwrap();
        assert_eq!(read_full(&*file, &mut read, 0).unwrap(), 4);
        assert_eq!(&read, b"note");
    }

    #[test]
    fn links_that_lead_nowhere_and_sockets_are_no_files_and_no_directories() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        symlink(path("loop"), path("loop")).unwrap();
        symlink("x".repeat(300), path("long")).unwrap();
        symlink(path("nothing"), path("dangling")).unwrap();
        let _socket = UnixListener::bind(path("socket")).unwrap();
        for name in ["loop", "long", "socket", "dangling"] {
            let refused = FileStorage.open(&path(name)).err().map(|error| error.kind());
            assert_eq!(refused, Some(io::ErrorKind::InvalidData), "{name}");
        }
        for name in ["loop", "long", "socket", "dangling"] {
            let refused = FileStorage.list(&path(name)).err().map(|error| error.kind());
            assert_eq!(refused, Some(io::ErrorKind::NotADirectory), "{name}");
        }
        let missing = FileStorage.list(&path("nothing")).err().map(|error| error.kind());
        assert_eq!(missing, Some(io::ErrorKind::NotFound));
        let missing = FileStorage.open(&path("nothing")).err().map(|error| error.kind());
        assert_eq!(missing, Some(io::ErrorKind::NotFound));
    }

    #[test]
    fn what_whoever_writes_the_volume_can_bring_about_is_told_from_a_storage_that_fails() {
        let io = |call, source| EvidenceError::io(call, Path::new("erasures"))(source).is_damaged();
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("erasures");
        symlink("/proc/self/mem", &link).unwrap();
        let file = FileStorage.open(&link).unwrap();
        let unreadable = read_full(&*file, &mut [0; 8], 0).unwrap_err();
        assert!(io("read", unreadable));
        assert!(io("open", io::ErrorKind::PermissionDenied.into()));
        assert!(!io("sync", Errno::IO.into()));
        assert!(!io("write", io::ErrorKind::StorageFull.into()));
        assert!(!io("read", io::Error::other("the machine dies")));
    }

    #[test]
    fn beyond_what_any_file_can_be_there_is_nothing_to_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("payload-index");
        std::fs::write(&path, "index").unwrap();
        let file = FileStorage.open(&path).unwrap();
        let last = i64::MAX.cast_unsigned();
        for offset in [5, last - 4, last - 3, last, last + 1, u64::MAX] {
            assert_eq!(read_full(&*file, &mut [0; 4], offset).unwrap(), 0, "at {offset}");
        }
    }
}
