//! Types to produce and verify a gateway's evidence: records and their leaf hashes, the Merkle
//! Mountain Range over these hashes, signed checkpoints, witness cosignatures, proofs, and the
//! statements that the retention job signs about removed logs, destroyed salts, destroyed keys and
//! holds.
//!
//! The range hashes and bags its peaks exactly as RFC 6962 does, so its root *is* the RFC 6962 tree head and its proofs
//! *are* RFC 9162 proofs. Checkpoints are C2SP signed notes and proofs are C2SP `.tlog-proof` files, so third-party
//! tools can verify them offline.
//!
//! This crate does no I/O: the WAL crate reads and writes the bytes.
#![forbid(unsafe_code)]

mod add_checkpoint;
mod checkpoint;
pub mod commitment;
mod committed_request;
mod cosignature;
mod cosignature_key;
mod erasure;
mod error;
mod export_note;
mod hold_statement;
mod key;
mod key_destruction;
mod key_line;
mod key_succession;
mod key_text;
mod note;
mod pluralize;
mod proof;
pub mod record;
mod record_size;
mod shred_key;
mod signed_checkpoint;
mod signer;
mod statement;
mod tlog_proof;
mod tombstone;
mod tree;
mod trust_policy;

pub use add_checkpoint::{AddCheckpoint, MAX_ADD_CHECKPOINT_BYTES};
pub use checkpoint::Checkpoint;
pub use committed_request::CommittedRequest;
pub use cosignature::Cosignature;
pub use cosignature_key::CosignatureKey;
pub use erasure::{Erasure, ErasureScope};
pub use error::LedgerError;
pub use hold_statement::{HoldChange, HoldStatement};
pub use key::{CosigningKey, LineageKey, PrivateKey, PublicKey, SigningKey, VerifyingKey};
pub use key_destruction::KeyDestruction;
pub use key_line::MAX_KEYS;
pub use key_succession::KeySuccession;
pub use note::{MAX_NOTE_BYTES, MAX_SIGNATURES, strip_other_signatures};
pub use pluralize::pluralize;
pub use proof::{
    NodeReader, consistency_proof, inclusion_proof, tree_root, verify_consistency, verify_inclusion,
};
pub use record::ShredKeyId;
pub use shred_key::{MAX_SHRED_KEYS, ShredKey};
pub use signed_checkpoint::SignedCheckpoint;
pub use signer::{SignError, Signer};
pub use statement::{Justification, MAX_REASON_BYTES, MAX_STATEMENT_BYTES};
pub use tlog_proof::{MAX_TLOG_PROOF_BYTES, TlogProof};
pub use tombstone::Tombstone;
pub use tree::{Hash, Mmr, leaf_hash, leaf_position, node_count, node_hash, node_position};
pub use trust_policy::{MAX_POLICY_BYTES, PolicyWitness, TrustPolicy};
