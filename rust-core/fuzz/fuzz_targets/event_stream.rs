//! A stream of Amazon's frames is split into the same frames however it is cut into reads. The first two bytes of the input are
//! the size limit, whose lowest bit says whether checksums are made right first, and the seed of the reads. What is written
//! of a frame is one event, whatever it carries.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_providers::event_stream::{Frame, FrameError, FrameReader};
use proofgate_providers::{Dialect, FrameDecoder};
use std::cell::RefCell;

/// What a reader says, written down so that two can be compared.
#[derive(Default, PartialEq, Eq, Debug)]
struct Told {
    texts: Vec<u8>,
    /// Where the texts of each frame end.
    frames: Vec<usize>,
    end: Option<FrameError>,
}

impl Told {
    fn add(&mut self, frame: &Frame<'_>) {
        let headers = [
            frame.message_type,
            frame.event_type,
            frame.exception_type,
            frame.error_code,
            frame.error_message,
            frame.content_type,
        ];
        for header in headers {
            self.texts.push(u8::from(header.is_some()));
            self.texts
                .extend_from_slice(header.unwrap_or_default().as_bytes());
        }
        self.texts.extend_from_slice(frame.payload);
        self.frames.push(self.texts.len());
    }
}

fn tell(stream: &[u8], limit: usize, told: &mut Told, mut next_read: impl FnMut() -> usize) {
    let mut reader = FrameReader::new(limit);
    told.texts.clear();
    told.frames.clear();
    let mut run = || -> Result<(), FrameError> {
        let mut at = 0;
        while at < stream.len() {
            let end = (at + next_read()).min(stream.len());
            reader.push(&stream[at..end]);
            at = end;
            while let Some(frame) = reader.next_frame()? {
                assert!(frame.payload.len() <= limit);
                told.add(&frame);
            }
        }
        reader.finish()
    };
    told.end = run().err();
}

/// Reads the frames as events, of three lines each.
fn read_events(dialect: Dialect, stream: &[u8], limit: usize) {
    let mut frames = FrameDecoder::new(dialect, limit);
    frames.push(stream);
    let mut event = Vec::new();
    while let Ok(true) = frames.next_event(&mut event) {
        let ends = event.iter().filter(|byte| matches!(byte, b'\n' | b'\r'));
        assert_eq!(ends.count(), 3);
        event.clear();
    }
}

/// Another CRC-32 than the reader's: bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 * (crc & 1))
        })
    })
}

/// Makes the checksums right of all frames whose lengths may be: no mutation would ever find them.
fn check(mut stream: &mut [u8]) {
    while let Some((prelude, _)) = stream.split_first_chunk::<8>() {
        let length = u32::from_be_bytes([prelude[0], prelude[1], prelude[2], prelude[3]]) as usize;
        let checksum = crc32(prelude).to_be_bytes();
        let Some(place) = stream.get_mut(8..12) else {
            return;
        };
        place.copy_from_slice(&checksum);
        if length < 16 || length > stream.len() {
            return;
        }
        let (frame, rest) = stream.split_at_mut(length);
        let (checked, checksum) = frame.split_at_mut(length - 4);
        checksum.copy_from_slice(&crc32(checked).to_be_bytes());
        stream = rest;
    }
}

thread_local! {
    static TOLD: RefCell<(Vec<u8>, Told, Told)> = RefCell::default();
}

fuzz_target!(|input: &[u8]| {
    let Some((&[limit, seed], stream)) = input.split_first_chunk() else {
        return;
    };
    TOLD.with_borrow_mut(|(checked, whole, parts)| {
        checked.clear();
        checked.extend_from_slice(stream);
        if limit & 1 == 1 {
            check(checked);
        }
        let limit = usize::from(limit) * 4;
        read_events(Dialect::Converse, checked, limit);
        read_events(Dialect::Invoke, checked, limit);
        tell(checked, limit, whole, || stream.len());
        tell(checked, limit, parts, || 1);
        assert_eq!(parts, whole, "byte by byte");
        let mut state = u32::from(seed) | 1 << 8;
        tell(checked, limit, parts, || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            1 + (state >> 24) as usize % 24
        });
        assert_eq!(parts, whole, "random reads");
    });
});
