//! The key of an entry.

use crate::tags::Tag;

/// Identifies a scanned run and the conditions of its scan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunKey {
    /// The hash of the tenant, the scope and the rules.
    pub(crate) conditions: Tag,
    /// The hash of the text.
    pub(crate) text: Tag,
}

impl RunKey {
    /// Returns the slot where the search for it begins.
    pub(crate) fn home_slot(&self) -> usize {
        home_slot(&self.text) ^ home_slot(&self.conditions)
    }
}

/// Returns the slot where the search for a tag begins; tags are effectively random.
pub(super) fn home_slot(tag: &Tag) -> usize {
    usize::from_le_bytes(std::array::from_fn(|byte| tag[byte]))
}
