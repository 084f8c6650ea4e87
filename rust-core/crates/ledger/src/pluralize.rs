//! Counts in messages: "1 record", "2 records".

use std::fmt::Display;

/// Formats a count with a singular noun: `pluralize(2, "entry")` is "2 entries".
///
/// Supports only nouns whose plural ends in "s" or, instead of "y", in "ies".
#[must_use]
pub fn pluralize<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    if count == N::from(1) {
        return format!("{count} {noun}");
    }
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{count} {stem}ies"),
        _ => format!("{count} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::pluralize;

    #[test]
    fn one_has_the_singular_and_every_other_count_the_plural() {
        let told: Vec<_> = [0_u64, 1, 2].map(|count| pluralize(count, "record")).into();
        assert_eq!(told, ["0 records", "1 record", "2 records"]);
    }

    #[test]
    fn a_y_becomes_ies_only_after_a_consonant() {
        assert_eq!(pluralize(2_u64, "entry"), "2 entries");
        assert_eq!(pluralize(2_u64, "body"), "2 bodies");
        assert_eq!(pluralize(2_usize, "key"), "2 keys");
        assert_eq!(pluralize(0_u32, "day"), "0 days");
    }
}
