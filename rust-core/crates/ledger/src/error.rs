//! Errors in a tree, a proof, a note or a record.

/// The reason why a proof, note, key or record was refused. No variant contains key material.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// `Mmr::from_peaks`: the number of peaks differs from the number of one bits of the size.
    #[error("a range of size {size} has {} peaks, not {peaks}", size.count_ones())]
    PeakCount {
        /// Claimed number of leaves.
        size: u64,
        /// Number of peaks.
        peaks: usize,
    },
    /// A leaf index is not below the tree size.
    #[error("leaf {index} is outside a tree of size {size}")]
    IndexOutOfRange {
        /// Requested leaf index, 0-based.
        index: u64,
        /// Leaves in the tree.
        size: u64,
    },
    /// A consistency proof from or to an empty tree. The proof proves nothing, so the caller must
    /// decide.
    #[error("consistency with an empty tree proves nothing")]
    EmptyTree,
    /// The old size of a consistency proof exceeds the new size.
    #[error("the old tree has {old} leaves, which is more than the {new} leaves of the new tree")]
    SizesReversed {
        /// Leaves of the tree claimed to be older.
        old: u64,
        /// Leaves of the tree claimed to be newer.
        new: u64,
    },
    /// A proof has more or fewer hashes than index and size require.
    #[error("the proof has the wrong number of hashes for this index and size")]
    ProofLength,
    /// A proof is well formed but leads to another root.
    #[error("the proof leads to another root")]
    RootMismatch,
    /// A node needed for a proof is not stored.
    #[error("tree node {position} is not stored")]
    MissingNode {
        /// Flat post-order position.
        position: u64,
    },
    /// A key text is not in the Go note form, or its key id does not match.
    #[error("invalid key text: {0}")]
    KeyMalformed(&'static str),
    /// A key is not valid for the requested origin, which is neither its name nor below it.
    #[error("the key {key:?} is not valid for the origin {origin:?}")]
    OriginNotBelowKey {
        /// Name of the ledger key.
        key: String,
        /// Requested origin.
        origin: String,
    },
    /// A note is not a C2SP signed note, or exceeds the limits on size or number of signatures.
    #[error("invalid signed note: {0}")]
    NoteMalformed(&'static str),
    /// A note carries no signature by the expected key.
    #[error("the note is not signed by {0:?}")]
    NoteUnsigned(String),
    /// A note has a signature by the expected key that does not verify.
    #[error("the signature of {0:?} does not verify")]
    BadSignature(String),
    /// A note is signed by a key whose validity had ended before the subject of the note started.
    #[error("the key {0} was no longer valid: another key has succeeded it")]
    KeySuperseded(String),
    /// A signer in another process returned no valid signature. The call can be retried.
    #[error("the signer failed: {0}")]
    SignerFailed(String),
    /// Statements of key succession that contradict each other.
    #[error("key successions: {0}")]
    ConflictingSuccessions(&'static str),
    /// A note's text is not a C2SP checkpoint.
    #[error("invalid checkpoint: {0}")]
    CheckpointMalformed(&'static str),
    /// A tenant's shred key file is malformed.
    #[error("shred keys: {0}")]
    ShredKeysMalformed(&'static str),
    /// A note's text is not a valid tombstone, erasure, hold statement, key destruction or key succession.
    #[error("invalid statement: {0}")]
    StatementMalformed(&'static str),
    /// A request to a witness is not a C2SP tlog-witness request.
    #[error("invalid add-checkpoint request: {0}")]
    RequestMalformed(&'static str),
    /// A text is not a C2SP trust policy.
    #[error("trust policy, line {line}: {reason}")]
    PolicyMalformed {
        /// The line number, from 1; the last line's number if something is missing.
        line: usize,
        /// The fault in that line.
        reason: String,
    },
    /// A proof file is not a C2SP tlog-proof.
    #[error("invalid tlog-proof: {0}")]
    ProofMalformed(&'static str),
    /// A proof contains no salt, so the commitment in its record cannot be opened.
    #[error("the proof contains no salt: the salt was erased or omitted")]
    NoSalt,
    /// The record has no commitment to a body.
    #[error("the record commits to no body")]
    NoCommitment,
    /// A body is not the one to which the record commits.
    #[error("the commitment to the {0} does not open to this body")]
    CommitmentMismatch(&'static str),
    /// A record's encoding exceeds `record::MAX_RECORD_BYTES` bytes.
    #[error(
        "a record of {bytes} bytes exceeds the limit of {} bytes",
        crate::record_size::MAX_RECORD_BYTES
    )]
    RecordTooLarge {
        /// Encoded size in bytes.
        bytes: usize,
    },
    /// A record is not one JSON object of the expected shape; the message contains the position.
    #[error("record: {0}")]
    RecordMalformed(String),
    /// A record's kind is not a valid name, or a record of an unknown kind was to be encoded.
    #[error("unknown record kind {0:?}")]
    InvalidRecordKind(String),
}

impl LedgerError {
    /// Code for data that is not signed by the expected key. It is unknown whether such data was
    /// changed.
    pub const WRONG_KEY: &'static str = "another_key";

    /// Returns the stable machine code of the error.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoteUnsigned(_) | Self::OriginNotBelowKey { .. } => Self::WRONG_KEY,
            _ => "ledger_refused",
        }
    }
}
