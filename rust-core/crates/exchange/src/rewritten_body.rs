//! Bodies that replace the client's body.

use std::ops::Range;

use proofgate_base::memory::Buffer;

/// A body after redaction.
pub struct RewrittenBody {
    pub body: Buffer,
    /// Range of the model's name in `body`.
    pub model_range: Range<usize>,
}

/// A request without the fields that its provider must not get.
pub(crate) struct StrippedRequest {
    pub(crate) rewritten: RewrittenBody,
    /// Names of the dropped fields.
    pub dropped_fields: Vec<&'static str>,
}
