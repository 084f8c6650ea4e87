/// Tokens that an answer cost, in parts that do not overlap with one another except where it says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Tokens of the prompt, those read from and written to a cache included.
    pub input: u64,
    /// Of these, read from a cache.
    pub cache_read: u64,
    /// Of these, written to a cache.
    pub cache_write: u64,
    /// Tokens of the answer, reasoning included.
    pub output: u64,
    /// Of these, reasoning.
    pub reasoning: u64,
}
