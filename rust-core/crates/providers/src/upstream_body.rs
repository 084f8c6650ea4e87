use std::ops::Range;

/// A body as it goes upstream: the client's bytes, with at most two places where others stand.
#[derive(Debug, Clone, Copy)]
pub struct UpstreamBody<'b> {
    parts: [&'b [u8]; 5],
}

impl<'b> UpstreamBody<'b> {
    /// `body`, in which each edit's bytes take the place of its range. The ranges do not overlap.
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

    /// What it consists of, in order; some may be empty.
    pub fn parts(&self) -> [&'b [u8]; 5] {
        self.parts
    }

    /// Bytes of it.
    pub fn length(&self) -> usize {
        self.parts.iter().map(|part| part.len()).sum()
    }
}
