//! Segments, batched writes, recovery and fsck of one incarnation's log.
