//! The files of stored bodies, which whoever writes the volume may have made: each body is where its frame says, inside the
//! file, or refused; and what overwrites those of an exchange changes no other byte. The first two bytes of the input are the
//! number of that exchange, whose lowest bit says whether headers are made right first, and the length of the index.
#![no_main]

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use libfuzzer_sys::fuzz_target;
use proofgate_evidence::EvidenceError;
use proofgate_evidence::payloads::{
    ENTRY_LEN, FrameLocation, HEADER_LEN, PAYLOAD_INDEX_FILE, PAYLOADS_FILE, PayloadField, PayloadFiles,
    PayloadHeader,
};
use proofgate_payloads::{is_punched, punch};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{Storage, write_full};

const DIR: &str = "/log";

fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

fn disk(index: &[u8], frames: &[u8]) -> io::Result<SimulatedDisk> {
    let disk = SimulatedDisk::new();
    disk.create_dir(Path::new(DIR))?;
    for (name, bytes) in [(PAYLOADS_FILE, frames), (PAYLOAD_INDEX_FILE, index)] {
        write_full(&*disk.create(&path(name))?, bytes, 0)?;
    }
    Ok(disk)
}

/// Makes headers of what stands where the index leads: no mutation would ever find their checksums.
fn make_headers(index: &[u8], frames: &mut [u8]) {
    for entry in index.as_chunks::<8>().0 {
        let offset = usize::try_from(u64::from_le_bytes(*entry).wrapping_sub(1)).ok();
        let rest = offset.and_then(|offset| frames.get_mut(offset..));
        let Some(raw) = rest.and_then(|rest| rest.first_chunk_mut::<HEADER_LEN>()) else {
            continue;
        };
        let header = PayloadHeader {
            seq: u64::from(raw[8]),
            field: PayloadField::ALL[usize::from(raw[16] & 1)],
            sealed_len: u32::from_le_bytes([raw[20], raw[21], raw[22], raw[23]]),
        };
        *raw = header.encode();
    }
}

fn sealed(placed: FrameLocation) -> Range<usize> {
    let begin = placed.offset as usize + HEADER_LEN;
    begin..begin + placed.sealed_len as usize
}

/// Where a body of an exchange is, after all that is said of it was compared with the files.
fn look(files: &PayloadFiles, frames: &[u8], seq: u64, field: PayloadField) -> Option<FrameLocation> {
    let placed = match files.locate(seq, field) {
        Ok(placed) => placed?,
        Err(EvidenceError::Corruption { .. }) => return None,
        Err(other) => panic!("{other}"),
    };
    let bytes = placed.sealed_len;
    let header = &frames[placed.offset as usize..][..HEADER_LEN];
    assert_eq!(
        header,
        PayloadHeader {
            seq,
            field,
            sealed_len: bytes
        }
        .encode()
    );
    assert_eq!(
        files.read_sealed(placed).ok().as_deref(),
        frames.get(sealed(placed))
    );
    Some(placed)
}

fuzz_target!(|input: &[u8]| {
    let Some((&[how, length], rest)) = input.split_first_chunk() else {
        return;
    };
    let (index, frames) = rest.split_at(usize::from(length).min(rest.len()));
    let (erased, mut frames) = (u64::from(how >> 1), frames.to_vec());
    if how & 1 == 1 {
        make_headers(index, &mut frames);
    }
    let disk = disk(index, &frames).expect("a disk without faults");
    let dir = Path::new(DIR);
    let files = PayloadFiles::open(&disk, dir).ok().flatten().expect("both files");
    let entries = files.entry_count().expect("a disk without faults");
    let mut allowed = Vec::new();
    for seq in (0..=entries).chain([erased, u64::MAX / 16, u64::MAX]) {
        for field in PayloadField::ALL {
            let placed = look(&files, &frames, seq, field);
            assert!(placed.is_none() || seq < entries);
            allowed.extend(placed.filter(|_| seq == erased).map(sealed));
        }
    }
    punch(&disk, dir, &[erased]).expect("a disk without faults");
    assert!(matches!(is_punched(&disk, dir, &[erased]), Ok(true)));
    let left = disk.read(&path(PAYLOADS_FILE)).expect("it is there");
    assert_eq!(left.len(), frames.len());
    for (at, (left, before)) in left.iter().zip(&frames).enumerate() {
        let is_its = || allowed.iter().any(|range| range.contains(&at));
        assert!(left == before || (*left == 0 && is_its()));
    }
    // A forged frame may stand in another, and is gone with that.
    let first = allowed.into_iter().next().unwrap_or_default();
    assert!(left[first].iter().all(|byte| *byte == 0));
    let mut index = index.to_vec();
    let entry = index.iter_mut().skip(erased as usize * ENTRY_LEN).take(ENTRY_LEN);
    entry.for_each(|byte| *byte = 0);
    assert_eq!(disk.read(&path(PAYLOAD_INDEX_FILE)), Some(index));
});
