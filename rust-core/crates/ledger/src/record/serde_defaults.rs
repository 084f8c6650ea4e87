//! Values that a record omits, and the defaults that a reader uses instead.

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls this function")]
pub(super) fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls this function")]
pub(super) fn is_one(count: &u32) -> bool {
    *count == 1
}

pub(super) fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls this function")]
pub(super) fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls this function")]
pub(super) fn is_zero_u64(count: &u64) -> bool {
    *count == 0
}
