//! Records, Merkle Mountain Range, checkpoints, proofs, verification.
