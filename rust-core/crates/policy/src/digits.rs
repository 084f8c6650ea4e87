//! Where in a text there are digits enough.

/// Where a stretch of `longest` bytes can begin that holds at least `least` digits: disjoint ranges, ascending.
pub(crate) fn dense(digits: &[u32], least: usize, longest: usize, mut found: impl FnMut(usize, usize)) {
    let mut open: Option<(usize, usize)> = None;
    let lasts = digits.get(least.saturating_sub(1)..).unwrap_or_default();
    for (first, last) in digits.iter().zip(lasts) {
        let (first, last) = (*first as usize, *last as usize);
        if last - first >= longest {
            continue;
        }
        let low = (last + 1).saturating_sub(longest);
        match &mut open {
            Some((_, high)) if low <= *high + 1 => *high = first,
            _ => {
                if let Some((low, high)) = open.replace((low, first)) {
                    found(low, high);
                }
            }
        }
    }
    if let Some((low, high)) = open {
        found(low, high);
    }
}

/// Bytes in which digits are looked for together.
const CHUNK: usize = 64;

pub(crate) fn count(bytes: &[u8]) -> usize {
    let digits = |chunk: &[u8]| {
        chunk.iter().fold(0_u8, |count, byte| {
            count.wrapping_add(u8::from(byte.is_ascii_digit()))
        })
    };
    bytes.chunks(128).map(|chunk| usize::from(digits(chunk))).sum()
}

/// Replaces the content of `places` by the places of the digits.
pub(crate) fn fill(places: &mut Vec<u32>, bytes: &[u8]) {
    places.clear();
    for (number, chunk) in bytes.chunks(CHUNK).enumerate() {
        if count(chunk) == 0 {
            continue;
        }
        let known = places.len();
        places.resize(known + chunk.len(), 0);
        let mut next = known;
        // Without a branch: whether a byte is a digit is not to be foreseen.
        for (place, byte) in (number * CHUNK..).zip(chunk) {
            places[next] = place as u32;
            next += usize::from(byte.is_ascii_digit());
        }
        places.truncate(next);
    }
}
