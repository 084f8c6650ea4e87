//! What `fsck` checks, and by which keys.

use crate::ShredKeys;
use proofgate_ledger::VerifyingKey;

/// Whose signatures are checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct FsckKeys<'k> {
    /// The ledger's key.
    pub ledger: Option<&'k VerifyingKey>,
    /// The key of whoever may remove logs.
    pub retention: Option<&'k VerifyingKey>,
    /// The keys of tenants, for salts that need one.
    pub shred: Option<&'k ShredKeys>,
}

impl<'k> From<Option<&'k VerifyingKey>> for FsckKeys<'k> {
    fn from(ledger: Option<&'k VerifyingKey>) -> Self {
        Self {
            ledger,
            ..Self::default()
        }
    }
}

/// What is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Ledger,
    /// A copy that leaves out what a mirror does.
    Mirror,
    /// One log of a ledger that is to be mirrored.
    SingleLog,
}
