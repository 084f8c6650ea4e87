//! Manipulations of a ledger by someone who can write to the volume but holds no key.

use crate::{CONFIGURATION_DIGEST, Worker, log_dir, ulid};
use proofgate_evidence::configurations;
use proofgate_evidence::frame::{
    FRAME_HEADER_LEN, FRAME_TAG_LEN, SEGMENT_HEADER_LEN, SegmentCrc, SegmentHeader, frame_len, seal_frame,
};
use proofgate_wal::simulated::SimulatedDisk;
use proofgate_wal::{ReadStorage, Storage, Ulid};
use std::path::Path;

/// Replaces the archived configuration of the workers by `content`.
pub fn replace_archived_config(disk: &SimulatedDisk, content: &[u8]) {
    let path = configurations::archive_path(Path::new("/"), &CONFIGURATION_DIGEST);
    let _ = disk.create_dir(path.parent().unwrap());
    let _ = disk.remove(&path);
    let file = disk.create(&path).unwrap();
    assert_eq!(file.write_at(content, 0).unwrap(), content.len());
}

/// Replaces `old` by `new` in the last record of a first segment that contains it, and corrects the
/// record's checksum. Anyone who can write to the volume can do this.
pub fn edit_last_record(segment: &mut [u8], incarnation: Ulid, old: &[u8], new: &[u8]) {
    let at = segment
        .windows(old.len())
        .rposition(|bytes| bytes == old)
        .unwrap();
    segment[at..at + new.len()].copy_from_slice(new);
    let mut start = SEGMENT_HEADER_LEN;
    loop {
        let len = u32::from_le_bytes(segment[start..start + 4].try_into().unwrap()) as usize;
        let end = start + frame_len(len) as usize;
        if end > at {
            let seq = &segment[start + 8..start + 16];
            let mut bound = incarnation.to_bytes().to_vec();
            bound.extend_from_slice(&0u64.to_le_bytes());
            bound.extend_from_slice(seq);
            bound.extend_from_slice(&segment[start + FRAME_HEADER_LEN..end - 8]);
            let crc = crc32c::crc32c(&bound).to_le_bytes();
            return segment[end - 8..end - 4].copy_from_slice(&crc);
        }
        start = end;
    }
}

/// Replaces the records of a worker, which are all in one segment, by these records with valid
/// numbers and checksums. Anyone who can write to the volume can do this.
pub fn forge_records(disk: &SimulatedDisk, worker: &Worker, records: &[Vec<u8>]) {
    disk.corrupt(&log_dir(worker).join("00000000000000000000.seg"), |segment| {
        let key = SegmentCrc::new(ulid(worker), 0);
        let mut crc = SegmentHeader::decode(segment).unwrap().crc();
        let mut forged = segment[..SEGMENT_HEADER_LEN].to_vec();
        for (seq, record) in (0..).zip(records) {
            let start = forged.len();
            forged.resize(start + FRAME_HEADER_LEN, 0);
            forged.extend_from_slice(record);
            let sealed = seal_frame(&mut forged, start, key, seq, 0, crc, |_| Some([0; FRAME_TAG_LEN]));
            crc = sealed.unwrap();
        }
        *segment = forged;
    });
}

/// Returns a worker's records with ids replaced: each pair holds the old id and the new id.
pub fn records_with_renamed_ids(worker: &Worker, ids: &[(&str, &str)]) -> Vec<Vec<u8>> {
    let quoted = |id: &str| format!("\"{id}\"");
    let rename = |record: &Vec<u8>| {
        let text = String::from_utf8(record.clone()).unwrap();
        let found = ids.iter().find(|(old, _)| text.contains(&quoted(old)));
        found
            .map_or(text.clone(), |(old, new)| {
                text.replace(&quoted(old), &quoted(new))
            })
            .into_bytes()
    };
    worker.durability_model.appended.iter().map(rename).collect()
}

/// Replaces the checkpoint of a worker by an older one, the note with this index.
pub fn restore_old_checkpoint(disk: &SimulatedDisk, worker: &Worker, note: usize) {
    let note = worker.durability_model.notes[note].clone().into_bytes();
    disk.corrupt(&log_dir(worker).join("checkpoint"), |bytes| *bytes = note);
}

/// Removes the files of a worker for which `gone` returns true, and the directory if it is then
/// empty.
pub fn remove_files(disk: &SimulatedDisk, worker: &Worker, gone: impl Fn(&str) -> bool) {
    let names = disk.list(&log_dir(worker)).unwrap();
    for name in names.iter().filter(|name| gone(name)) {
        disk.remove(&log_dir(worker).join(name)).unwrap();
    }
    if names.iter().all(|name| gone(name)) {
        disk.remove_dir(&log_dir(worker));
    }
}

/// Changes a byte in the middle of a worker's only segment.
pub fn flip_byte(disk: &SimulatedDisk, worker: &Worker) {
    disk.corrupt(&log_dir(worker).join("00000000000000000000.seg"), |bytes| {
        let written = bytes.iter().rposition(|byte| *byte != 0).unwrap_or_default();
        bytes[written / 2] ^= 1;
    });
}
