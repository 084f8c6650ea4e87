//! A stream of server-sent events is split into the same events however it is cut into reads, and the events
//! together are the stream; a relay that only looks for their ends sees as many, and reads the same usage. The first two bytes of the input are the size limit and the seed of the reads.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proofgate_providers::{
    Dialect, EventBoundaries, EventReader, EventTooLarge, StreamEvent, Usage, UsageReader,
};
use std::cell::RefCell;

/// What a reader says, written down so that two can be compared without allocation.
#[derive(Default, PartialEq, Eq, Debug)]
struct Told {
    raw: Vec<u8>,
    data: Vec<u8>,
    /// For each event: where its raw bytes and its data end, whether it has data, and whether it has unknown fields.
    events: Vec<(usize, usize, bool, bool)>,
    too_large: bool,
}

impl Told {
    fn add(&mut self, event: &StreamEvent<'_>) {
        let data = event.data.unwrap_or_default();
        for offset in [0, data.len() / 2, data.len()] {
            assert!(event.raw_offset(offset) <= event.raw.len());
        }
        self.raw.extend_from_slice(event.raw);
        self.data.extend_from_slice(data);
        self.events.push((
            self.raw.len(),
            self.data.len(),
            event.data.is_some(),
            event.has_unknown_fields,
        ));
    }
}

fn tell(stream: &[u8], limit: usize, told: &mut Told, mut next_read: impl FnMut() -> usize) {
    let mut reader = EventReader::new(limit);
    told.raw.clear();
    told.data.clear();
    told.events.clear();
    let mut run = || -> Result<(), EventTooLarge> {
        let mut at = 0;
        while at < stream.len() {
            let end = (at + next_read()).min(stream.len());
            reader.push(&stream[at..end]);
            at = end;
            while let Some(event) = reader.next_event()? {
                told.add(&event);
            }
        }
        if let Some(event) = reader.finish()? {
            told.add(&event);
        }
        assert!(reader.finish()?.is_none());
        Ok(())
    };
    told.too_large = run().is_err();
}

/// How many events end in the stream, and the usage that it tells.
fn relay(dialect: Dialect, stream: &[u8], mut next_read: impl FnMut() -> usize) -> (usize, Option<Usage>) {
    let (mut ends, mut usage) = (EventBoundaries::default(), UsageReader::new(dialect));
    let (mut at, mut count) = (0, 0);
    while at < stream.len() {
        let end = (at + next_read()).min(stream.len());
        let mut piece = &stream[at..end];
        usage.push(piece);
        at = end;
        while let Some(length) = ends.next_boundary(piece) {
            piece = &piece[length..];
            count += 1;
        }
    }
    (count, usage.usage())
}

thread_local! {
    static TOLD: RefCell<(Told, Told)> = RefCell::default();
}

fuzz_target!(|input: &[u8]| {
    let Some((&[limit, seed], stream)) = input.split_first_chunk() else {
        return;
    };
    let limit = 1 + usize::from(limit) * 4;
    TOLD.with_borrow_mut(|(whole, parts)| {
        tell(stream, limit, whole, || stream.len());
        assert!(stream.starts_with(&whole.raw) && (whole.too_large || whole.raw.len() == stream.len()));
        tell(stream, limit, parts, || 1);
        assert_eq!(parts, whole, "byte by byte");
        let mut state = u32::from(seed) | 1 << 8;
        tell(stream, limit, parts, || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            1 + (state >> 24) as usize % 24
        });
        assert_eq!(parts, whole, "random reads");
        for dialect in [
            Dialect::Chat,
            Dialect::Responses,
            Dialect::Images,
            Dialect::Speech,
            Dialect::Messages,
            Dialect::Gemini,
        ] {
            let relayed = relay(dialect, stream, || stream.len());
            assert_eq!(relay(dialect, stream, || 1), relayed, "byte by byte");
            assert_eq!(
                relay(dialect, stream, || 1 + usize::from(seed)),
                relayed,
                "equal reads"
            );
        }
    });
});
