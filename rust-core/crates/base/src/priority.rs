//! Thread priorities: traffic first, evidence next, Python last.

/// Sets the lowest priority for the calling thread: it runs only when no other thread needs the
/// processor.
pub fn set_lowest_priority() {
    let _ = rustix::process::nice(19);
}

/// Lowers the calling thread's priority; on Linux niceness is per thread.
///
/// If that is refused, the thread continues at normal priority.
pub fn lower_priority() {
    let _ = rustix::process::nice(5);
}
