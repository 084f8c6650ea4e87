//! Finds the bytes in a 64-byte block that end a run of plain characters.

/// Number of bytes examined together.
pub(crate) const BLOCK_SIZE: usize = 64;

/// Returns one bit for each byte that is a quote, a backslash or a control character, with the first byte in the
/// lowest bit.
#[inline]
pub(crate) fn special_bits(block: &[u8; BLOCK_SIZE]) -> u64 {
    bitmask(block, |byte| (byte == b'"') | (byte == b'\\') | (byte < 0x20))
}

/// Returns one bit for each backslash, with the first byte in the lowest bit.
#[inline]
pub(crate) fn backslash_bits(block: &[u8; BLOCK_SIZE]) -> u64 {
    bitmask(block, |byte| byte == b'\\')
}

/// Returns one bit for each matching byte. The compiler vectorizes the comparisons. The vector
/// instruction that would collect all bits in one step is unsafe to call.
#[inline]
fn bitmask(block: &[u8; BLOCK_SIZE], is_found: impl Fn(u8) -> bool) -> u64 {
    let found = block.map(|byte| u8::from(is_found(byte)));
    let (words, _) = found.as_chunks::<8>();
    (words.iter().rev()).fold(0, |bits, word| bits << 8 | gather_bits(u64::from_le_bytes(*word)))
}

/// Collects the lowest bits of eight bytes that are 0 or 1, with the first byte in the lowest bit. Each power of two
/// moves one of them to the highest byte, and no two products collide.
#[inline]
fn gather_bits(word: u64) -> u64 {
    word.wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{BLOCK_SIZE, backslash_bits, special_bits};

    fn one_by_one(block: &[u8; BLOCK_SIZE], is_one: impl Fn(u8) -> bool) -> u64 {
        (block.iter().rev()).fold(0, |bits, &byte| bits << 1 | u64::from(is_one(byte)))
    }

    fn is_special(byte: u8) -> bool {
        byte == b'"' || byte == b'\\' || byte < 0x20
    }

    #[test]
    fn each_byte_is_known_in_each_place() {
        for byte in 0..=255 {
            for place in 0..BLOCK_SIZE {
                for filling in [b'x', b'"', 0x80, 0xff] {
                    let mut block = [filling; BLOCK_SIZE];
                    block[place] = byte;
                    let (special, backslash) = (
                        one_by_one(&block, is_special),
                        one_by_one(&block, |byte| byte == b'\\'),
                    );
                    assert_eq!(special_bits(&block), special, "{byte} at {place}");
                    assert_eq!(backslash_bits(&block), backslash, "{byte} at {place}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn any_block_has_the_bits_of_its_bytes(block in prop::array::uniform32(any::<[u8; 2]>())) {
            let mut bytes = [0; BLOCK_SIZE];
            bytes.copy_from_slice(block.as_flattened());
            prop_assert_eq!(special_bits(&bytes), one_by_one(&bytes, is_special));
            prop_assert_eq!(backslash_bits(&bytes), one_by_one(&bytes, |byte| byte == b'\\'));
        }
    }
}
