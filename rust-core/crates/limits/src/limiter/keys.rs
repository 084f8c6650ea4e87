//! The map of credentials.

use crate::config::CredentialId;

/// Maps a tenant's credential to its subject. A client can choose the subject of its token, so the hash is keyed with a
/// secret.
pub(super) type KeyMap = std::collections::HashMap<(u32, CredentialId), u32>;
