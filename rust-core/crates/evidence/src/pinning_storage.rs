//! Files whose content is pinned by digest at the first read, so that a copy has exactly the
//! verified bytes.
//!
//! A file on a volume can change between two reads. Each file is hashed in chunks when it is
//! opened, and a later read of a changed chunk is an error. After the last record of a segment
//! there may be space that its writer allocated and did not use. When this space is released, the
//! file becomes shorter. The end of a segment is therefore defined as the position after its last
//! nonzero byte.

use crate::segment::{MAX_SEGMENT_BYTES, SegmentName};
use crate::{ReadFile, ReadStorage, read_full};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of bytes that are read and compared together.
const CHUNK_LEN: u64 = 256 << 10;
/// Alignment of frames in bytes: frames end at multiples of it.
const ALIGNMENT: u64 = 8;

/// A pinned file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of pinned bytes, from the start of the file.
    pub len: u64,
    /// SHA-256 of the pinned bytes.
    pub sha256: [u8; 32],
}

/// A storage that pins the files that it reads.
pub(crate) struct PinningStorage<'s> {
    inner: &'s dyn ReadStorage,
    read_files: Mutex<BTreeMap<PathBuf, Arc<Content>>>,
}

struct Content {
    len: u64,
    sha256: [u8; 32],
    chunks: Vec<[u8; 32]>,
}

/// An open file, with the chunk that was read last.
struct OpenFile {
    inner: Arc<dyn ReadFile>,
    content: Arc<Content>,
    last_chunk: Mutex<(u64, Vec<u8>)>,
}

impl<'s> PinningStorage<'s> {
    pub(crate) fn new(below: &'s dyn ReadStorage) -> Self {
        Self {
            inner: below,
            read_files: Mutex::default(),
        }
    }

    /// Returns every file that was opened, by path, without empty files and without segments that
    /// hold only zeros.
    pub(crate) fn files(self) -> Vec<PinnedFile> {
        let seen = self
            .read_files
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner);
        let files = seen.into_iter().filter(|(_, content)| content.len > 0);
        files
            .map(|(path, content)| PinnedFile {
                path,
                len: content.len,
                sha256: content.sha256,
            })
            .collect()
    }

    fn content(&self, path: &Path, file: &dyn ReadFile) -> io::Result<Arc<Content>> {
        let known = |seen: &BTreeMap<PathBuf, Arc<Content>>| seen.get(path).map(Arc::clone);
        let lock = || self.read_files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(content) = known(&lock()) {
            return Ok(content);
        }
        let content = Arc::new(Content::read(file, pinned_len(path, file)?)?);
        Ok(Arc::clone(lock().entry(path.to_owned()).or_insert(content)))
    }
}

impl ReadStorage for PinningStorage<'_> {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let below = self.inner.open(path)?;
        let content = self.content(path, &*below)?;
        Ok(Arc::new(OpenFile {
            inner: below,
            content,
            last_chunk: Mutex::new((u64::MAX, Vec::new())),
        }))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.inner.list(path)
    }
}

impl ReadFile for OpenFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        if offset >= self.content.len || into.is_empty() {
            return Ok(0);
        }
        let number = offset / CHUNK_LEN;
        let mut last = self.last_chunk.lock().unwrap_or_else(PoisonError::into_inner);
        if last.0 != number {
            let bytes = read_chunk(&*self.inner, number, self.content.len)?;
            let known = usize::try_from(number)
                .ok()
                .and_then(|at| self.content.chunks.get(at));
            if known != Some(&Sha256::digest(&bytes).into()) {
                return Err(changed_error());
            }
            *last = (number, bytes);
        }
        let found = last.1.get((offset % CHUNK_LEN) as usize..).unwrap_or_default();
        let read = found.len().min(into.len());
        into[..read].copy_from_slice(&found[..read]);
        Ok(read)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.len)
    }
}

impl Content {
    fn read(file: &dyn ReadFile, len: u64) -> io::Result<Self> {
        let mut whole = Sha256::new();
        let mut chunks = Vec::new();
        for number in 0..len.div_ceil(CHUNK_LEN) {
            let bytes = read_chunk(file, number, len)?;
            whole.update(&bytes);
            chunks.push(Sha256::digest(&bytes).into());
        }
        Ok(Self {
            len,
            sha256: whole.finalize().into(),
            chunks,
        })
    }
}

/// Reads one chunk of a file of length `len`.
fn read_chunk(file: &dyn ReadFile, number: u64, len: u64) -> io::Result<Vec<u8>> {
    let start = number * CHUNK_LEN;
    let mut bytes = vec![0; len.saturating_sub(start).min(CHUNK_LEN) as usize];
    match read_full(file, &mut bytes, start)? == bytes.len() {
        true => Ok(bytes),
        false => Err(changed_error()),
    }
}

/// Returns the number of bytes of a file that are pinned.
fn pinned_len(path: &Path, file: &dyn ReadFile) -> io::Result<u64> {
    let len = file.len()?;
    // No file of a log is longer.
    if len > MAX_SEGMENT_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the file is longer than a segment can be",
        ));
    }
    let name = path.file_name().and_then(|name| name.to_str());
    if name.and_then(SegmentName::parse).is_none() {
        return Ok(len);
    }
    for number in (0..len.div_ceil(CHUNK_LEN)).rev() {
        let start = number * CHUNK_LEN;
        if file
            .next_data(start)?
            .is_none_or(|data| data >= start + CHUNK_LEN)
        {
            continue;
        }
        let bytes = read_chunk(file, number, len)?;
        if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
            let end = number * CHUNK_LEN + last as u64 + 1;
            return Ok(end.next_multiple_of(ALIGNMENT).min(len));
        }
    }
    Ok(0)
}

fn changed_error() -> io::Error {
    io::Error::other("the file changed while it was read")
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_LEN, PinningStorage};
    use crate::{ReadFile, ReadStorage, read_full};
    use sha2::{Digest, Sha256};
    use std::io;
    use std::path::Path;
    use std::sync::{Arc, Mutex};

    /// A single file that another process may write.
    #[derive(Clone, Default)]
    struct Volume(Arc<Mutex<Vec<u8>>>);

    impl ReadStorage for Volume {
        fn open(&self, _: &Path) -> io::Result<Arc<dyn ReadFile>> {
            Ok(Arc::new(self.clone()))
        }

        fn list(&self, _: &Path) -> io::Result<Vec<String>> {
            Ok(Vec::new())
        }
    }

    impl ReadFile for Volume {
        fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
            let bytes = self.0.lock().unwrap();
            let found = bytes.get(offset as usize..).unwrap_or_default();
            let read = found.len().min(into.len());
            into[..read].copy_from_slice(&found[..read]);
            Ok(read)
        }

        fn len(&self) -> io::Result<u64> {
            Ok(self.0.lock().unwrap().len() as u64)
        }
    }

    fn volume(len: usize, zeros: usize) -> Volume {
        let mut bytes: Vec<u8> = (0..len).map(|at| (at % 251 + 1) as u8).collect();
        bytes.resize(len + zeros, 0);
        Volume(Arc::new(Mutex::new(bytes)))
    }

    const SEGMENT: &str = "/log/00000000000000000000.seg";

    #[test]
    fn a_file_is_read_as_it_is_and_known_by_its_digest() {
        for len in [
            1,
            8,
            CHUNK_LEN as usize - 1,
            CHUNK_LEN as usize,
            2 * CHUNK_LEN as usize + 5,
        ] {
            let volume = volume(len, 0);
            let pinned = PinningStorage::new(&volume);
            let file = pinned.open(Path::new("/log/checkpoint")).unwrap();
            let mut bytes = vec![0; len + 7];
            assert_eq!(read_full(&*file, &mut bytes, 0).unwrap(), len);
            let stored = volume.0.lock().unwrap().clone();
            assert_eq!(bytes[..len], stored);
            let known: [u8; 32] = Sha256::digest(&stored).into();
            let files = pinned.files();
            assert_eq!((files[0].len, files[0].sha256), (len as u64, known));
        }
    }

    #[test]
    fn room_that_was_prepared_and_not_used_is_not_part_of_a_segment() {
        for (len, zeros, meant) in [(16, 0, 16), (13, 3, 16), (13, CHUNK_LEN as usize, 16), (0, 99, 0)] {
            let volume = volume(len, zeros);
            let pinned = PinningStorage::new(&volume);
            assert_eq!(pinned.open(Path::new(SEGMENT)).unwrap().len().unwrap(), meant);
            let files = pinned.files();
            assert_eq!(files.first().map_or(0, |file| file.len), meant);
        }
    }

    /// A file whose stated length is larger than the length of any real file.
    struct Endless;

    impl ReadStorage for Endless {
        fn open(&self, _: &Path) -> io::Result<Arc<dyn ReadFile>> {
            Ok(Arc::new(Self))
        }

        fn list(&self, _: &Path) -> io::Result<Vec<String>> {
            Ok(Vec::new())
        }
    }

    impl ReadFile for Endless {
        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Err(io::Error::other("nothing of it is read"))
        }

        fn len(&self) -> io::Result<u64> {
            Ok(1 << 50)
        }
    }

    #[test]
    fn a_file_that_is_longer_than_any_of_a_log_is_refused_unread() {
        for path in [SEGMENT, "/log/checkpoint"] {
            let refused = PinningStorage::new(&Endless).open(Path::new(path)).err();
            assert_eq!(
                refused.map(|error| error.kind()),
                Some(io::ErrorKind::InvalidData)
            );
        }
    }

    #[test]
    fn what_changes_behind_the_first_look_is_an_error_and_never_read_otherwise() {
        let volume = volume(2 * CHUNK_LEN as usize, 0);
        let pinned = PinningStorage::new(&volume);
        let file = pinned.open(Path::new(SEGMENT)).unwrap();
        volume.0.lock().unwrap()[CHUNK_LEN as usize + 1] ^= 1;
        let mut byte = [0];
        file.read_at(&mut byte, 0).unwrap();
        assert!(file.read_at(&mut byte, CHUNK_LEN).is_err());
        assert!(
            pinned
                .open(Path::new(SEGMENT))
                .unwrap()
                .read_at(&mut byte, CHUNK_LEN)
                .is_err()
        );
        volume.0.lock().unwrap().truncate(5);
        assert!(
            pinned
                .open(Path::new(SEGMENT))
                .unwrap()
                .read_at(&mut byte, 0)
                .is_err()
        );
    }
}
