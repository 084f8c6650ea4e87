//! The scope of an `fsck` run, and the keys that it uses.

use crate::ShredKeys;
use proofgate_ledger::VerifyingKey;

/// The keys for checking signatures and salts, each optional.
#[derive(Clone, Copy, Debug, Default)]
pub struct FsckKeys<'k> {
    /// The ledger's key.
    pub ledger: Option<&'k VerifyingKey>,
    /// The key of the retention job, which may remove logs.
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

/// The scope of an `fsck` run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Ledger,
    /// A mirror, which has no salts, trees and running logs.
    Mirror,
    /// A single log of a ledger, before it is mirrored.
    SingleLog,
}
