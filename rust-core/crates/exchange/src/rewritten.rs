//! Bodies that take the place of what a client sent.

use std::ops::Range;

use proofgate_base::memory::Buffer;

/// A body after redaction.
pub struct RewrittenBody {
    pub body: Buffer,
    /// Where the model's name stands in it.
    pub model_range: Range<usize>,
}

/// A request for one provider.
pub(crate) struct StrippedRequest {
    pub(crate) rewritten: RewrittenBody,
    /// The names of what was left out.
    pub dropped_fields: Vec<&'static str>,
}
