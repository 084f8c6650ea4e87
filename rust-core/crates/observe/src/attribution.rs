//! The attribution of a request by its client: its session, its agent, its end user and its trace.
//!
//! The attribution is not authenticated, so no decision depends on it. It is only recorded, without
//! invalid values.

use std::borrow::Cow;
use std::ops::Range;

use proofgate_ledger::ShredKey;
use proofgate_ledger::record::{Attribution as Recorded, EndUserId, TraceId};
use proofgate_providers::ClientIds;
use proofgate_wire::Headers;

use crate::telemetry::parse_trace_id;

/// Bytes of memory that an idle connection retains for the attribution of its next request.
const RETAINED_BYTES: usize = 256;

/// The meaning of a header field. If several fields name a session, the first field of the greatest
/// variant applies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AttributionHeader {
    /// The session of older Codex versions, which did not distinguish sessions from conversations.
    LegacySession,
    Session,
    /// The session of Claude Code, in a field that is intended for gateways.
    ClaudeSession,
    Agent,
    ParentAgent,
    Trace,
}

impl AttributionHeader {
    /// Maps a field name to its meaning. The names of Claude Code are from its gateway protocol,
    /// those of Codex from its Responses client.
    fn from_name(name: &str) -> Option<Self> {
        const NAMES: [(&str, AttributionHeader); 11] = [
            ("session-id", AttributionHeader::Session),
            ("session_id", AttributionHeader::Session),
            ("thread-id", AttributionHeader::Agent),
            ("traceparent", AttributionHeader::Trace),
            ("x-session-id", AttributionHeader::Session),
            ("conversation_id", AttributionHeader::LegacySession),
            ("conversation-id", AttributionHeader::LegacySession),
            ("x-claude-code-agent-id", AttributionHeader::Agent),
            ("x-claude-code-session-id", AttributionHeader::ClaudeSession),
            ("x-codex-parent-thread-id", AttributionHeader::ParentAgent),
            ("x-claude-code-parent-agent-id", AttributionHeader::ParentAgent),
        ];
        // The length rules out most other fields.
        if !matches!(name.len(), 9..=12 | 15 | 22 | 24 | 29) {
            return None;
        }
        let mut names = NAMES.iter();
        let found = names.find(|(known, _)| name.eq_ignore_ascii_case(known));
        found.map(|(_, said)| *said)
    }
}

/// The attribution of one request. Its memory is reused by the requests of a connection.
#[derive(Default)]
pub struct Attribution {
    text: String,
    unescaped: String,
    session: Option<Range<usize>>,
    agent: Option<Range<usize>>,
    parent_agent: Option<Range<usize>>,
    end_user: Option<Range<usize>>,
    trace_id: Option<[u8; 16]>,
}

impl Attribution {
    /// Reads the head of a request, and clears the previous request.
    pub fn read_head(&mut self, headers: &Headers<'_>) {
        self.clear();
        let mut session = None;
        let mut traces = 0;
        for (name, value) in headers.iter() {
            match AttributionHeader::from_name(name) {
                None => {}
                Some(AttributionHeader::Trace) => {
                    traces += 1;
                    // If there are two values, it is unknown which of them is valid.
                    self.trace_id = parse_trace_id(value).filter(|_| traces == 1);
                }
                Some(said @ (AttributionHeader::Agent | AttributionHeader::ParentAgent)) => {
                    let known = match said {
                        AttributionHeader::Agent => &mut self.agent,
                        _ => &mut self.parent_agent,
                    };
                    if known.is_none() {
                        *known = parse_agent_id(value).map(|id| append_text(&mut self.text, id));
                    }
                }
                Some(said) => {
                    if session.is_none_or(|before| before < said)
                        && let Some(id) = parse_session_id(value)
                    {
                        session = Some(said);
                        self.session = Some(append_text(&mut self.text, id));
                    }
                }
            }
        }
        // In the main thread of a Codex session, both fields have the session's ID.
        if self.agent().is_some() && self.agent() == self.session() {
            self.agent = None;
        }
    }

    /// Reads the IDs in the body. The body sets the session only if the head did not.
    pub fn read_body(&mut self, ids: &ClientIds<'_>) {
        if ids.is_empty() {
            return;
        }
        let mut unescaped = std::mem::take(&mut self.unescaped);
        ids.with_ids(&mut unescaped, |session, end_user| {
            if self.session.is_none() {
                let session = session.and_then(|id| parse_session_id(id.as_bytes()));
                self.session = session.map(|id| append_text(&mut self.text, id));
            }
            self.end_user = end_user.map(|name| append_text(&mut self.text, name));
        });
        self.unescaped = unescaped;
    }

    /// Clears the attribution. An idle connection retains memory only for IDs of ordinary length.
    pub fn clear(&mut self) {
        for text in [&mut self.text, &mut self.unescaped] {
            text.clear();
            text.shrink_to(RETAINED_BYTES);
        }
        (self.session, self.agent, self.parent_agent) = (None, None, None);
        (self.end_user, self.trace_id) = (None, None);
    }

    fn text_at(&self, range: &Option<Range<usize>>) -> Option<&str> {
        range.as_ref().and_then(|range| self.text.get(range.clone()))
    }

    fn session(&self) -> Option<&str> {
        self.text_at(&self.session)
    }

    fn agent(&self) -> Option<&str> {
        self.text_at(&self.agent)
    }

    /// Returns the attribution to record for `tenant`, with the end user's name only if `named`;
    /// `None` if it is empty.
    pub fn record_for(
        &self,
        tenant: &str,
        shred_key: Option<&ShredKey>,
        named: bool,
    ) -> Option<Recorded<'_>> {
        let end_user = self.text_at(&self.end_user);
        let recorded = Recorded {
            session: self.session().map(Cow::Borrowed),
            end_user: end_user.map(|name| EndUserId::derive(tenant, shred_key, name)),
            end_user_name: end_user
                .filter(|_| named)
                .map(|name| Cow::Borrowed(truncate_name(name))),
            agent: self.agent().map(Cow::Borrowed),
            parent_agent: self.text_at(&self.parent_agent).map(Cow::Borrowed),
            trace_id: self.trace_id.map(TraceId),
        };
        (!recorded.is_empty()).then_some(recorded)
    }
}

/// Truncates the name of an end user to the recorded length.
fn truncate_name(name: &str) -> &str {
    let mut end = name.len().min(Recorded::MAX_NAME_LEN);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Appends a text, and returns its range.
fn append_text(text: &mut String, part: &str) -> Range<usize> {
    let start = text.len();
    text.push_str(part);
    start..text.len()
}

/// Parses an agent ID: ASCII letters, digits and punctuation that JSON does not escape. IDs of agents in a team contain an
/// `@`.
fn parse_agent_id(value: &[u8]) -> Option<&str> {
    let is_mark = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:/+=@".contains(byte);
    let is_id = (1..=Recorded::MAX_ID_LEN).contains(&value.len()) && value.iter().all(is_mark);
    // The value is ASCII, so the conversion cannot fail.
    std::str::from_utf8(value).ok().filter(|_| is_id)
}

/// Parses a session ID. An ID with an `@` is rejected, because it may be a person's address.
fn parse_session_id(value: &[u8]) -> Option<&str> {
    parse_agent_id(value).filter(|id| !id.contains('@'))
}

#[cfg(test)]
#[path = "attribution_tests.rs"]
mod tests;
