//! Whom a request is for, as its client says: its session, its agent, its end user and its trace.
//!
//! Nothing authenticates any of it, so nothing depends on it: it is recorded, and what cannot be is left out.

use std::borrow::Cow;
use std::ops::Range;

use proofgate_ledger::ShredKey;
use proofgate_ledger::record::{Attribution as Recorded, EndUserId, TraceId};
use proofgate_providers::ClientIds;
use proofgate_wire::Headers;

use crate::telemetry::parse_trace_id;

/// Bytes of memory that a connection keeps for the texts of its next request.
const RETAINED_BYTES: usize = 256;

/// What a header field says. Of several for the same the greatest is taken, and of these the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum AttributionHeader {
    /// Of Codex before it had sessions apart from conversations.
    LegacySession,
    Session,
    /// Claude Code's, which it has made for gateways.
    ClaudeSession,
    Agent,
    ParentAgent,
    Trace,
}

impl AttributionHeader {
    /// By the name of a field: Claude Code's are those of its gateway protocol, Codex's those of its client for Responses.
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
        // Of most fields the length says that they are none of these.
        if !matches!(name.len(), 9..=12 | 15 | 22 | 24 | 29) {
            return None;
        }
        let mut names = NAMES.iter();
        let found = names.find(|(known, _)| name.eq_ignore_ascii_case(known));
        found.map(|(_, said)| *said)
    }
}

/// What one request says. Its memory serves the requests of a connection one after the other.
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
    /// Takes what the head of a request says, and forgets the request before.
    pub fn read_head(&mut self, headers: &Headers<'_>) {
        self.clear();
        let mut session = None;
        let mut traces = 0;
        for (name, value) in headers.iter() {
            match AttributionHeader::from_name(name) {
                None => {}
                Some(AttributionHeader::Trace) => {
                    traces += 1;
                    // Of two nobody knows which one holds.
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
        // The main thread of a session of Codex has the session's id.
        if self.agent().is_some() && self.agent() == self.session() {
            self.agent = None;
        }
    }

    /// Takes what the body says besides: of the session only where the head says nothing.
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

    /// Forgets what a request says. An idle connection keeps memory for ordinary ids alone.
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

    /// What is recorded of it for `tenant`, the end user's name only if it is `named`; `None` where it says nothing.
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

/// As much of the name of an end user as is recorded.
fn truncate_name(name: &str) -> &str {
    let mut end = name.len().min(Recorded::MAX_NAME_LEN);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    &name[..end]
}

/// Appends a text, and says where it stands.
fn append_text(text: &mut String, part: &str) -> Range<usize> {
    let start = text.len();
    text.push_str(part);
    start..text.len()
}

/// An agent's id: letters, digits and marks of ASCII, without those that JSON escapes. Agents of a team have an `@` in theirs.
fn parse_agent_id(value: &[u8]) -> Option<&str> {
    let is_mark = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~:/+=@".contains(byte);
    let is_id = (1..=Recorded::MAX_ID_LEN).contains(&value.len()) && value.iter().all(is_mark);
    // It is ASCII.
    std::str::from_utf8(value).ok().filter(|_| is_id)
}

/// A session's id. What has the form of an address may be a person's, and is none.
fn parse_session_id(value: &[u8]) -> Option<&str> {
    parse_agent_id(value).filter(|id| !id.contains('@'))
}

#[cfg(test)]
#[path = "attribution_tests.rs"]
mod tests;
