//! Thread priorities: traffic first, evidence next, Python last.

/// Gives the calling thread the lowest priority: it is left what nobody else wants.
pub fn set_lowest_priority() {
    let _ = rustix::process::nice(19);
}

/// Lowers the calling thread's priority; on Linux niceness belongs to the thread.
///
/// A refusal is no reason to stop: the thread then competes as an equal.
pub fn lower_priority() {
    let _ = rustix::process::nice(5);
}
