//! Finding a credential.

use crate::config::CredentialId;

/// From a tenant's credential to its subject. Who a token is about can be chosen by whoever gets the token, so the map's
/// hash has a secret.
pub(super) type KeyMap = std::collections::HashMap<(u32, CredentialId), u32>;
