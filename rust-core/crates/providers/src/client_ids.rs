//! The session and the end user that a request body names.

use proofgate_json::Str;
use serde::Deserialize;

/// Maximum length of a value, in bytes as written; longer values are ignored.
const MAX_ID_BYTES: usize = 1024;

/// A field that names a session or an end user. If several fields name the same thing, the last
/// variant in this order wins: it is the most specific to this purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum IdField {
    /// `prompt_cache_key`: the cache to use (OpenAI). Codex sends its session in this field.
    CacheKey,
    /// `session_id` in `metadata`, or in the `client_metadata` of Codex.
    MetadataSession,
    /// `conversation` of Responses.
    Conversation,
    /// `user_id` in `metadata` (Anthropic).
    MetadataUser,
    /// `user` (OpenAI; deprecated).
    User,
    /// `safety_identifier` (OpenAI).
    SafetyIdentifier,
}

/// An object of a body whose members name sessions and end users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdObject {
    Metadata,
    Conversation,
}

impl IdObject {
    /// Returns the id field for the member `name`, if it is one.
    pub(crate) fn member_field(self, name: &str) -> Option<IdField> {
        match (self, name) {
            (Self::Metadata, "user_id") => Some(IdField::MetadataUser),
            (Self::Metadata, "session_id") => Some(IdField::MetadataSession),
            (Self::Conversation, "id") => Some(IdField::Conversation),
            _ => None,
        }
    }
}

/// The session and the end user named in a body, as written in the body. They are not
/// authenticated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientIds<'b> {
    session: Option<(IdField, Str<'b>)>,
    end_user: Option<(IdField, Str<'b>)>,
}

impl<'b> ClientIds<'b> {
    /// Records the value of a field.
    pub(crate) fn note(&mut self, field: IdField, value: Str<'b>) {
        let is_of_session = field <= IdField::Conversation;
        let known = if is_of_session {
            &mut self.session
        } else {
            &mut self.end_user
        };
        let is_usable = (1..=MAX_ID_BYTES).contains(&value.raw().len());
        if is_usable && known.is_none_or(|(before, _)| before <= field) {
            *known = Some((field, value));
        }
    }

    /// Whether neither the session nor the end user is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.session.is_none() && self.end_user.is_none()
    }

    /// Passes the session and the end user to `take`. `buffer` is used for unescaping.
    pub fn with_ids(&self, buffer: &mut String, take: impl FnOnce(Option<&str>, Option<&str>)) {
        let mut of_session = String::new();
        let session = self
            .session
            .map(|(field, value)| (field, value.decode(&mut of_session)));
        let Some((field, value)) = self.end_user else {
            return take(session.map(|(_, session)| session), None);
        };
        let end_user = value.decode(buffer);
        let UserId {
            user,
            session: packed,
        } = match field {
            IdField::MetadataUser => UserId::parse(end_user),
            _ => UserId {
                user: Some(end_user),
                session: None,
            },
        };
        let named = session.filter(|(field, _)| packed.is_none() || *field > IdField::CacheKey);
        take(named.map(|(_, session)| session).or(packed), user);
    }
}

/// The content of `metadata.user_id`.
#[derive(Debug, PartialEq, Eq)]
struct UserId<'t> {
    user: Option<&'t str>,
    session: Option<&'t str>,
}

/// The format that Claude Code uses since version 2.1.78.
#[derive(Deserialize)]
struct PackedUserId<'t> {
    #[serde(default)]
    account_uuid: &'t str,
    #[serde(default)]
    device_id: &'t str,
    #[serde(default)]
    session_id: &'t str,
}

impl<'t> UserId<'t> {
    /// Parses Claude Code's formats: the user is the account, or else the device. The value of
    /// another client is the user.
    fn parse(text: &'t str) -> Self {
        let some = |text: &'t str| (!text.is_empty()).then_some(text);
        if text.starts_with('{')
            && let Ok(packed) = serde_json::from_str::<PackedUserId<'t>>(text)
        {
            return UserId {
                user: some(packed.account_uuid).or(some(packed.device_id)),
                session: some(packed.session_id),
            };
        }
        // `user_<device>_account_<account>_session_<session>`; the account is empty for API keys.
        let before = || {
            let (device, rest) = text.strip_prefix("user_")?.split_once("_account_")?;
            let (account, session) = rest.split_once("_session_")?;
            Some(UserId {
                user: some(account).or(some(device)),
                session: some(session),
            })
        };
        before().unwrap_or(UserId {
            user: some(text),
            session: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(user: &'static str, session: &'static str) -> UserId<'static> {
        let some = |text: &'static str| (!text.is_empty()).then_some(text);
        UserId {
            user: some(user),
            session: some(session),
        }
    }

    #[test]
    fn what_claude_code_packs_into_a_user_id_is_taken_apart() {
        for (text, unpacked) in [
            (
                r#"{"device_id":"d0","account_uuid":"a1","session_id":"s2"}"#,
                of("a1", "s2"),
            ),
            (
                r#"{"device_id":"d0","account_uuid":"","session_id":"s2","parent_session_id":"p"}"#,
                of("d0", "s2"),
            ),
            (r#"{"session_id":"s2"}"#, of("", "s2")),
            ("user_d0_account_a1_session_s2", of("a1", "s2")),
            ("user_d0_account__session_s2", of("d0", "s2")),
        ] {
            assert_eq!(UserId::parse(text), unpacked, "{text}");
        }
    }

    #[test]
    fn any_other_user_id_is_the_users() {
        for text in [
            "alice",
            "user_7",
            "{",
            r#"{"device_id":7}"#,
            "user_a_account_b",
            "{\"a",
        ] {
            assert_eq!(UserId::parse(text), of(text, ""), "{text}");
        }
    }
}
