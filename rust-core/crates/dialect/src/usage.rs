/// The tokens of a response. Counts overlap only where documented.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the prompt, including cache reads and cache writes.
    pub input: u64,
    /// The part of `input` that was read from a cache.
    pub cache_read: u64,
    /// The part of `input` that was written to a cache.
    pub cache_write: u64,
    /// Tokens of the response, including reasoning.
    pub output: u64,
    /// The part of `output` that is reasoning.
    pub reasoning: u64,
}
