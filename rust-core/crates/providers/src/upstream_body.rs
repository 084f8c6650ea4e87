use std::ops::Range;

/// A body as sent upstream: the client's bytes, with at most two ranges replaced.
#[derive(Debug, Clone, Copy)]
pub struct UpstreamBody<'b> {
    parts: [&'b [u8]; 5],
}

impl<'b> UpstreamBody<'b> {
    /// Creates `body` with each edit's bytes in place of its range. The ranges must not overlap.
    pub fn new(body: &'b [u8], edits: [Option<(Range<usize>, &'b [u8])>; 2]) -> Self {
        let mut parts: [&[u8]; 5] = [body, b"", b"", b"", b""];
        let [mut first, mut second] = edits;
        if let (Some((one, _)), Some((other, _))) = (&first, &second)
            && other.start < one.start
        {
            std::mem::swap(&mut first, &mut second);
        }
        let mut used = 0;
        let mut part = 0;
        for (range, replacement) in [first, second].into_iter().flatten() {
            let (start, end) = (range.start.max(used), range.end.max(used));
            let (Some(before), Some(after)) = (body.get(used..start), body.get(end..)) else {
                continue;
            };
            parts[part..part + 3].copy_from_slice(&[before, replacement, after]);
            (used, part) = (end, part + 2);
        }
        UpstreamBody { parts }
    }

    /// Returns its parts in order; some may be empty.
    pub fn parts(&self) -> [&'b [u8]; 5] {
        self.parts
    }

    /// Returns its length in bytes.
    pub fn length(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }
}
