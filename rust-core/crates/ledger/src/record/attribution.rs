//! Client-provided attribution of an exchange: its session, agent and end user.

use super::text::hex;
use crate::ShredKey;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::borrow::Cow;

const END_USER_DOMAIN: &[u8] = b"proofgate/v1/end-user\0";

/// A pseudonym of an end user, in hex: it does not reveal who the user is.
///
/// A record exists as long as its log, so it must not contain a person's name. With a shred key,
/// only someone with the key can test a guess of the name; after the key is destroyed, no one can.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndUserId(#[serde(with = "hex")] pub [u8; 16]);

impl EndUserId {
    /// Derives the pseudonym of the `name` that a client of `tenant` states: the first 16 bytes of
    /// `HMAC-SHA256(shred key, "proofgate/v1/end-user" ‖ 0x00 ‖ name)`; without a shred key, the
    /// first 16 bytes of `SHA-256("proofgate/v1/end-user" ‖ 0x00 ‖ tenant ‖ 0x00 ‖ name)`. See
    /// `docs/reference/ledger-format.md`, section 5.
    #[must_use]
    pub fn derive(tenant: &str, shred_key: Option<&ShredKey>, name: &str) -> Self {
        let digest = match shred_key {
            Some(key) => key.derive(END_USER_DOMAIN, name.as_bytes()),
            None => Sha256::new_with_prefix(END_USER_DOMAIN)
                .chain_update(tenant)
                .chain_update([0])
                .chain_update(name)
                .finalize()
                .into(),
        };
        let mut id = [0; 16];
        id.copy_from_slice(&digest[..16]);
        Self(id)
    }
}

impl std::fmt::Display for EndUserId {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

/// A W3C Trace Context trace id, in hex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceId(#[serde(with = "hex")] pub [u8; 16]);

/// The session, end user and agent for which a client made the exchange, as stated by the client
/// and not authenticated. Parts that the client does not state are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribution<'a> {
    /// The session or conversation: an opaque id that the client chose.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Cow<'a, str>>,
    /// The end user, as a pseudonym.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_user: Option<EndUserId>,
    /// The end user's name as the client states it, truncated to [`Attribution::MAX_NAME_LEN`];
    /// absent unless configured. The name can be deleted only together with its log.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub end_user_name: Option<Cow<'a, str>>,
    /// The agent of the session that makes the request, if it is not the main agent.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Cow<'a, str>>,
    /// The agent that started `agent`.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub parent_agent: Option<Cow<'a, str>>,
    /// Trace id of the client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<TraceId>,
}

impl Attribution<'_> {
    /// Longest id of a session or an agent, in bytes. A longer id is omitted, because a truncated
    /// id could name another session or agent.
    pub const MAX_ID_LEN: usize = 128;

    /// Longest name of an end user, in bytes of UTF-8. A longer name is truncated; the pseudonym is derived from the
    /// whole name.
    pub const MAX_NAME_LEN: usize = 128;

    /// Returns whether nothing is stated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Attribution::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_that_others_must_reach_hold() {
        // Computed with Python's hashlib and hmac.
        let key = ShredKey::new(std::array::from_fn(|at| u8::try_from(at).unwrap()));
        let of = |key| EndUserId::derive("acme", key, "alice@example.com").to_string();
        assert_eq!(of(None), "a7019471b6977193ea1bb172a4b40fae");
        assert_eq!(of(Some(&key)), "8b81cecf98f9e90470da84234f51ccca");
    }

    #[test]
    fn tenants_and_keys_have_pseudonyms_of_their_own() {
        let (one, other) = (ShredKey::new([1; 32]), ShredKey::new([2; 32]));
        let of = |tenant, key| EndUserId::derive(tenant, key, "alice");
        assert_ne!(of("acme", None), of("globex", None));
        assert_ne!(of("acme", Some(&one)), of("acme", Some(&other)));
        assert_ne!(of("acme", Some(&one)), of("acme", None));
        assert_eq!(of("acme", Some(&one)), of("acme", Some(&one)));
    }
}
