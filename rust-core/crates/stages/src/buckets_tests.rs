use proptest::prelude::*;

use super::{COUNT, bound_microseconds, index};

#[test]
fn the_bounds_rise_from_one_microsecond_to_more_than_ten_seconds() {
    let bounds: Vec<u64> = (0..COUNT - 1)
        .map(|index| bound_microseconds(index).unwrap())
        .collect();
    assert_eq!(bounds[..9], [1, 2, 3, 4, 6, 8, 12, 16, 24]);
    assert_eq!(*bounds.last().unwrap(), 12_582_912);
    assert!(bounds.windows(2).all(|pair| pair[0] < pair[1]));
    assert_eq!(bound_microseconds(COUNT - 1), None);
}

#[test]
fn a_bound_belongs_to_its_own_bucket_and_the_next_nanosecond_to_the_next() {
    for bucket in 0..COUNT - 1 {
        let bound = bound_microseconds(bucket).unwrap() * 1000;
        assert_eq!(index(bound), bucket, "{bound} ns");
        assert_eq!(index(bound + 1), bucket + 1, "{} ns", bound + 1);
    }
    assert_eq!(index(0), 0);
    assert_eq!(index(u64::MAX), COUNT - 1);
}

proptest! {
    #[test]
    fn every_duration_lies_between_the_bounds_of_its_bucket(shift in 0..64_u32, value in any::<u64>()) {
        let nanoseconds = value >> shift;
        let bucket = index(nanoseconds);
        let bound = |bucket| bound_microseconds(bucket).map_or(u64::MAX, |bound| bound * 1000);
        prop_assert!(nanoseconds <= bound(bucket));
        prop_assert!(bucket == 0 || nanoseconds > bound(bucket - 1));
    }
}
