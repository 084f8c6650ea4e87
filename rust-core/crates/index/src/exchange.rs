//! The row of one exchange, built from its records.

use crate::interner::TextInterner;
use proofgate_ledger::record::{Attribution, Completion, Outcome, PolicyNote};
use serde::Serialize;
use std::borrow::Cow;

/// Largest time, the end of the year 9999. Later times are set to it, because calendars do not
/// support them.
const MAX_TIME: i64 = 253_402_300_799_999_999;
const DAY_MICROS: i64 = 86_400_000_000;

/// The outcome of an exchange under the rules, in ascending order of their effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(into = "u8")]
#[repr(u8)]
pub enum Verdict {
    /// No rule matched.
    Allowed = 0,
    /// Rules matched, and nothing was changed.
    Flagged = 1,
    /// The matches were replaced.
    Redacted = 2,
    /// It would have been denied if the policy were not in dry-run mode.
    WouldBlock = 3,
    /// The answer was denied.
    Blocked = 4,
    /// The request was refused, by a rule or for another reason.
    Refused = 5,
}

impl From<Verdict> for u8 {
    fn from(verdict: Verdict) -> Self {
        verdict as Self
    }
}

impl Verdict {
    pub(crate) fn from_policy_note(note: Option<&PolicyNote<'_>>) -> Self {
        match note {
            None => Self::Allowed,
            Some(note) if note.would_block => Self::WouldBlock,
            Some(note) if note.redacted => Self::Redacted,
            Some(_) => Self::Flagged,
        }
    }

    pub(crate) fn from_completion(completion: &Completion<'_>) -> Self {
        match completion.outcome {
            Outcome::PolicyBlocked => Self::Blocked,
            _ => Self::from_policy_note(completion.policy.as_ref()),
        }
    }
}

/// A request id: the gateway's own in 16 bytes, any other as its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestId {
    /// The 32 lower-case hexadecimal digits after `req_`, decoded.
    Gateway([u8; 16]),
    /// Any other id, as its text.
    Other(String),
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        let digit = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        let own = || {
            let digits = text.strip_prefix("req_")?.as_bytes();
            let mut bytes = [0; 16];
            if digits.len() != 32 {
                return None;
            }
            for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
                *byte = digit(pair[0])? << 4 | digit(pair[1])?;
            }
            Some(bytes)
        };
        own().map_or_else(|| Self::Other(text.to_owned()), Self::Gateway)
    }
}

/// One exchange. Text and list numbers refer to the batch's day; times are unix microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When it was admitted or refused.
    pub ts: i64,
    /// Number of that record in its log.
    pub seq: i64,
    /// Its request id.
    pub id: RequestId,
    /// The tenant, a text; `None` if it is unknown.
    pub tenant: Option<u32>,
    /// Sequence number among its tenant's admitted and denied requests in this log; `None` for other refusals.
    pub tenant_seq: Option<i64>,
    /// The key's id, a text.
    pub key: Option<u32>,
    /// The name of the key in the configuration, if the record has it: a text.
    pub key_name: Option<u32>,
    /// The requested model, a text; `None` if there is none.
    pub model: Option<u32>,
    /// A list: the providers that it was sent to, in order.
    pub providers: Option<u32>,
    /// The endpoint, a text.
    pub endpoint: Option<u32>,
    /// Its outcome under the rules.
    pub verdict: Verdict,
    /// A list: the names of the rules that matched in the request or the answer.
    pub rules: Option<u32>,
    /// Size of the request's body in bytes.
    pub bytes: i64,
    /// What its client states about its session and its end user.
    pub attribution: AttributionRow,
    /// The address that its client connected from, if the record has it: a text.
    pub client_address: Option<u32>,
    /// Attempts after the first that are in this batch.
    pub attempts: Vec<Attempt>,
    /// Its end, if it is in this batch.
    pub end: Option<ExchangeEnd>,
}

/// What a client states about its session and its end user; all fields but the trace id are texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttributionRow {
    /// The session.
    pub session: Option<u32>,
    /// The end user's pseudonym, in hex.
    pub end_user: Option<u32>,
    /// The end user's name, if the record has it.
    pub end_user_name: Option<u32>,
    /// The agent that sends the request.
    pub agent: Option<u32>,
    /// The agent that started that agent.
    pub parent_agent: Option<u32>,
    /// The trace's id.
    pub trace_id: Option<[u8; 16]>,
}

impl AttributionRow {
    pub(crate) fn from_attribution(said: &Attribution<'_>, names: &mut TextInterner) -> Self {
        let mut text = |id: &Option<Cow<'_, str>>| id.as_deref().map(|id| names.intern_text(id));
        Self {
            session: text(&said.session),
            agent: text(&said.agent),
            parent_agent: text(&said.parent_agent),
            end_user_name: text(&said.end_user_name),
            end_user: said.end_user.map(|id| names.intern_text(&id.to_string())),
            trace_id: said.trace_id.map(|id| id.0),
        }
    }
}

/// A further attempt of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Number of the record.
    pub seq: i64,
    /// Number of the attempt, from 2.
    pub number: u32,
    /// The provider's name, as a text.
    pub provider: u32,
}

/// The end of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeEnd {
    /// Number of the record.
    pub seq: i64,
    /// Status that was sent to the client; `None` when it is unknown.
    pub status: Option<u16>,
    /// The outcome, `aborted`, or the code of a refusal: a text.
    pub outcome: u32,
    /// Number of prompt tokens, if the provider reported it.
    pub prompt_tokens: Option<i64>,
    /// Number of completion tokens, if the provider reported it.
    pub completion_tokens: Option<i64>,
    /// Cost in nanodollars, if it is known.
    pub cost: Option<i64>,
    /// Size of the answer's body in bytes.
    pub bytes: Option<i64>,
    /// Microseconds from admission to end.
    pub duration: Option<i64>,
}

/// A record about an exchange that was admitted before the batch, or in another log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LateRecord {
    /// The log that admitted it; `None` when it is the same log.
    pub incarnation: Option<String>,
    /// Number of the admission in that log.
    pub admission: i64,
    /// Request id.
    pub id: String,
    /// Number of this record.
    pub seq: i64,
    /// The content of this record.
    #[serde(flatten)]
    pub kind: LateKind,
}

/// The content of a late record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(
    missing_docs,
    reason = "the fields of `Attempt` and `End`, with texts instead of numbers"
)]
pub enum LateKind {
    Attempt {
        number: u32,
        provider: String,
    },
    End {
        status: Option<u16>,
        outcome: String,
        prompt_tokens: Option<i64>,
        completion_tokens: Option<i64>,
        cost: Option<i64>,
        bytes: Option<i64>,
        duration: Option<i64>,
        verdict: Verdict,
        rules: Vec<String>,
    },
}

/// Converts a record number for an index; a number above the largest possible one is set to that.
pub(crate) fn to_index_number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts the time of a record.
pub(crate) fn to_index_time(micros: u64) -> i64 {
    to_index_number(micros).min(MAX_TIME)
}

/// Returns the number of days between 1970-01-01 (UTC) and a time.
pub(crate) fn day_number(ts: i64) -> i64 {
    ts.div_euclid(DAY_MICROS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proofgate_ledger::record::{EndUserId, TraceId};

    #[test]
    fn what_a_client_says_of_itself_stands_in_texts_and_its_trace_in_bytes() {
        let mut names = TextInterner::default();
        let said = Attribution {
            session: Some("s1".into()),
            end_user: Some(EndUserId([0x1d; 16])),
            end_user_name: Some("alice".into()),
            agent: Some("a2".into()),
            parent_agent: Some("s1".into()),
            trace_id: Some(TraceId([7; 16])),
        };
        let row = AttributionRow::from_attribution(&said, &mut names);
        let text = |number: Option<u32>| names.texts()[number.unwrap_or(u32::MAX) as usize].clone();
        assert_eq!(
            (text(row.session), text(row.agent)),
            ("s1".to_owned(), "a2".to_owned())
        );
        assert_eq!(row.parent_agent, row.session);
        assert_eq!(text(row.end_user), "1d".repeat(16));
        assert_eq!(text(row.end_user_name), "alice");
        assert_eq!(row.trace_id, Some([7; 16]));
        assert_eq!(
            AttributionRow::from_attribution(&Attribution::default(), &mut names),
            AttributionRow::default()
        );
    }
}
