//! What an entry is found by.

use crate::tags::Tag;

/// The run that was scanned, and under which conditions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RunKey {
    /// The hash of the tenant, the scope and the rules.
    pub(crate) conditions: Tag,
    /// The hash of the text.
    pub(crate) text: Tag,
}

impl RunKey {
    /// Where the search for it begins.
    pub(crate) fn home(&self) -> usize {
        home(&self.text) ^ home(&self.conditions)
    }
}

/// Where the search for a tag begins; tags are as good as random.
pub(super) fn home(tag: &Tag) -> usize {
    usize::from_le_bytes(std::array::from_fn(|byte| tag[byte]))
}
