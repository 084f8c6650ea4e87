//! The map of credentials.

use crate::config::CredentialId;

/// A map from a tenant's credential to its subject. Its hash function is keyed with a secret,
/// because a client can choose the subject of its token.
pub(super) type KeyMap = std::collections::HashMap<(u32, CredentialId), u32>;
