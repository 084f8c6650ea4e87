//! Size limit of a log's leaves.

/// Largest encoded record in bytes: tlog-tiles entries carry a 16-bit length.
pub const MAX_RECORD_BYTES: usize = 65_535;
