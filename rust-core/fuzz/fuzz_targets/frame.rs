//! A segment of any bytes is read to its end, frame by frame, and nothing outside of it is.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_evidence::frame::{
    FRAME_HEADER_LEN, SEGMENT_HEADER_LEN, SegmentCrc, SegmentHeader, seal_frame,
};
use proofgate_evidence::segment_reader::{SegmentReader, Slot};
use proofgate_evidence::{ReadFile, Ulid};
use std::io;
use std::sync::Arc;

struct Bytes(Vec<u8>);

impl ReadFile for Bytes {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.0.get(from..).unwrap_or_default();
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        Ok(read)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

fuzz_target!(|input: &[u8]| {
    let _ = SegmentHeader::decode(input);
    let key = SegmentCrc::new(Ulid::nil(), 0);
    // Two whole frames, and what the input makes of the bytes around them.
    let mut bytes = vec![0; SEGMENT_HEADER_LEN];
    let mut crc = 0;
    for seq in 0..2 {
        let start = bytes.len();
        bytes.resize(start + FRAME_HEADER_LEN, 0);
        bytes.extend_from_slice(&input[..input.len() / 2]);
        let sealed = seal_frame(&mut bytes, start, key, seq, seq, crc, |_| Some([7; 16]));
        crc = sealed.expect("a tag was made");
    }
    let first = SEGMENT_HEADER_LEN + bytes[SEGMENT_HEADER_LEN..].len() / 2;
    for (at, byte) in input.iter().enumerate() {
        if let Some(changed) = bytes.get_mut(first + at) {
            *changed ^= byte;
        }
    }
    bytes.extend_from_slice(input);
    let len = bytes.len() as u64;
    let mut reader = SegmentReader::new(Arc::new(Bytes(bytes)), key, len);
    loop {
        let from = reader.offset;
        match reader.next() {
            Ok(Slot::Record(stored)) => {
                assert_eq!(reader.payload(&stored).len(), stored.len);
                assert!(reader.offset > from && reader.offset <= len);
            }
            Ok(Slot::Empty | Slot::Invalid(_)) => match reader.resync(from + 8, 0) {
                Ok(Some((at, _))) => reader.offset = at,
                _ => break,
            },
            Err(_) => break,
        }
    }
});
