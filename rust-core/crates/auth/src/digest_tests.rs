use super::digests_equal;

#[test]
fn digests_are_the_same_only_if_every_bit_is() {
    let digest: [u8; 32] = std::array::from_fn(|index| index as u8 * 7);
    assert!(digests_equal(&digest, &digest.clone()));
    for bit in 0..256 {
        let mut other = digest;
        other[bit / 8] ^= 1 << (bit % 8);
        assert!(!digests_equal(&digest, &other), "bit {bit}");
    }
}
