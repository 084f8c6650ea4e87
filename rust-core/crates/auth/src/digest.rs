use subtle::{Choice, ConstantTimeEq};

/// Compares two digests in constant time, eight bytes at a time: the general constant-time
/// comparison of slices takes longer than computing the digest.
pub(crate) fn digests_equal(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let (one, other) = (one.as_chunks().0, other.as_chunks().0);
    one.iter()
        .zip(other)
        .fold(Choice::from(1), |same, (one, other)| {
            same & u64::from_ne_bytes(*one).ct_eq(&u64::from_ne_bytes(*other))
        })
        .into()
}

#[cfg(test)]
#[path = "digest_tests.rs"]
mod tests;
