//! Files of the auditor's state, and the format of an entry bundle.

use crate::{AuditorError, StateStorage};

/// Name of the file with the note that is published to readers.
pub const CHECKPOINT_FILE: &str = "checkpoint";
/// Bytes of the length prefix of an entry in a bundle.
pub(crate) const LENGTH_PREFIX_LEN: usize = 2;

/// Returns the bytes of the first `width` entries of a bundle; `None` when the bundle holds fewer
/// entries.
pub(crate) fn first_entries(bundle: &[u8], width: u64) -> Option<&[u8]> {
    let mut at = 0usize;
    for _ in 0..width {
        let length = bundle.get(at..at + LENGTH_PREFIX_LEN)?;
        at += LENGTH_PREFIX_LEN + usize::from(u16::from_be_bytes([length[0], length[1]]));
    }
    bundle.get(..at)
}

pub(crate) fn read(state: &dyn StateStorage, name: &str) -> Result<Option<Vec<u8>>, AuditorError> {
    state.read(name).map_err(AuditorError::state("read", name))
}

pub(crate) fn write(state: &dyn StateStorage, name: &str, bytes: &[u8]) -> Result<(), AuditorError> {
    state
        .write(name, bytes)
        .map_err(AuditorError::state("write", name))
}
