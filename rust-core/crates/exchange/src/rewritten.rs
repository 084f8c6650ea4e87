//! Bodies that take the place of what a client sent.

use std::ops::Range;

use proofgate_base::memory::Buffer;

/// A body after redaction.
pub struct Rewritten {
    pub body: Buffer,
    /// Where the model's name stands in it.
    pub model: Range<usize>,
}

/// A request for one provider.
pub(crate) struct Stripped {
    pub(crate) rewritten: Rewritten,
    /// The names of what was left out.
    pub names: Vec<&'static str>,
}
