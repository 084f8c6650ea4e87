//! Records: the leaves of a log, one struct per kind.
//!
//! A record is stored and hashed as compact JSON with the fields in the order of its struct, after `v` and `kind`.
//! Verifiers hash the stored bytes and never write them anew. Times are unix microseconds, sizes are bytes, durations
//! are microseconds. Strings are borrowed where they can be, so that encoding a record allocates nothing.

use crate::{Hash, LedgerError};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

mod absence;
mod analysis;
mod attribution;
mod compact;
mod id;
mod shape;
mod text;
mod tier;

pub use crate::record_size::MAX_RECORD_BYTES;
use absence::{is_false, is_one, is_zero, is_zero_u64, one};
pub use analysis::{AnalysedFeature, AnalysedResponse, AnalysedWindow, Analysis};
pub use attribution::{Attribution, EndUserId, TraceId};
use compact::FieldWriter;
pub use id::{Commitment, ConfigDigests, ConfigId, SaltId, SettingsDigest, ShredKeyId};
use shape::RecordHeader;
use text::{base64_hash, hex};
pub use tier::TierName;

/// The only version of the record format.
pub const VERSION: u8 = 1;

/// What the policy saw in one direction of an exchange; absent where no rule matched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyNote<'a> {
    /// Score of the message that decides: the first that is denied, or else the one with the highest.
    pub score: u32,
    /// What that message is, such as `tool_result`; absent where no rule of the engine matched.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Cow<'a, str>>,
    /// Where it stands in the request, such as `messages[12]`; absent of an answer, a form, and where the place has no name.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
    /// Whether a message's score reaches the threshold from which on it is flagged; absent when not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub flagged: bool,
    /// The text of a tool that is flagged as instructions; absent when none is, and of answers.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub from_tool: Option<FlaggedToolText<'a>>,
    /// What became of a call of a guarded tool in the answer; absent of requests, and when none was called.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub guarded_call: Option<GuardedCall<'a>>,
    /// Ids of the rules that matched, never what they matched.
    #[serde(borrow)]
    pub rules: Vec<Cow<'a, str>>,
    /// How many more rules matched than are named; absent when it is zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unnamed: u32,
    /// Whether matches were replaced before the text went on.
    pub redacted: bool,
    /// Whether matches stayed that would have been replaced if the text could be changed, as a form cannot; absent when not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unchanged: bool,
    /// Whether the exchange would have been denied were the policy not in dry-run mode.
    pub would_block: bool,
}

/// Texts in a request that came from tools, results or descriptions, and read like instructions: rules about these reach the
/// threshold from which on a message is flagged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlaggedToolText<'a> {
    /// What the first one is: `tool_result` or `tool_description`.
    #[serde(borrow)]
    pub scope: Cow<'a, str>,
    /// Where it stands in the request, such as `messages[12]`; absent where the place has no name.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
    /// How many there are; absent when it is one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u32,
}

/// The call of a guarded tool in the answer to a request with a [flagged text of a tool](FromTool).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardedCall<'a> {
    /// The entry of the configuration that names the tool, such as `Bash` or `mcp__github__*`.
    #[serde(borrow)]
    pub tool: Cow<'a, str>,
    /// What became of the call.
    pub verdict: GuardVerdict,
    /// By what it was approved, or can be: the first 8 bytes of the approval's SHA-256, in hex. Absent where none is asked for.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Cow<'a, str>>,
}

/// What becomes of a call of a guarded tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardVerdict {
    /// The answer was not delivered.
    Refused,
    /// The same, and an approval was asked for.
    ApprovalRequired,
    /// It was delivered: the request carried an approval.
    Approved,
    /// It was delivered: the policy is in dry-run mode.
    Observed,
}

impl<'a> PolicyNote<'a> {
    /// Rules that one names at most: they have to fit into the room that is set aside for a record.
    pub const MAX_NAMED_RULES: usize = 16;

    /// The note of the rules that matched, by their ids: it names the first of them and counts the others.
    #[must_use]
    pub fn from_rules(
        score: u32,
        mut matched: impl Iterator<Item = &'a str>,
        redacted: bool,
        would_block: bool,
    ) -> Self {
        let rules = matched.by_ref().take(Self::MAX_NAMED_RULES).map(Cow::Borrowed);
        Self {
            score,
            rules: rules.collect(),
            unnamed: u32::try_from(matched.count()).unwrap_or(u32::MAX),
            redacted,
            would_block,
            ..Self::default()
        }
    }

    /// The same, about a message of this scope that stands there.
    #[must_use]
    pub fn with_message(self, scope: Option<&'a str>, message: Option<String>, flagged: bool) -> Self {
        Self {
            scope: scope.map(Cow::Borrowed),
            message: message.map(Cow::Owned),
            flagged,
            ..self
        }
    }
}

/// The first record of every log: who writes it, with what configuration, and which log came before it on the shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open<'a> {
    /// Number of the record, 0-based; equals its leaf index.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Name of the ledger, the first part of the origin.
    #[serde(borrow)]
    pub ledger: Cow<'a, str>,
    /// The shard, the second part of the origin.
    pub shard: u32,
    /// The ULID of this incarnation, the last part of the origin.
    #[serde(borrow)]
    pub incarnation: Cow<'a, str>,
    /// Version of the gateway.
    #[serde(borrow)]
    pub version: Cow<'a, str>,
    /// SHA-256 of the configuration, in hex.
    #[serde(with = "hex")]
    pub config: Hash,
    /// What of it the configuration's file says, where tenants stand in shards beside it: the name under which that is
    /// archived. Absent where it is `config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsDigest>,
    /// The ledger's key that signs this log, and no other one does: its vkey. Absent where a version before this one wrote.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
    /// What recovery found of the incarnation before this one; null for the first on a shard.
    #[serde(borrow)]
    pub predecessor: Option<Predecessor<'a>>,
}

/// The tail of the preceding log, as recovery found it: the new log's checkpoints thereby cover it.
///
/// Of a log that was still being written, size and root are those of its newest checkpoint; a [`Takeover`] follows
/// when it has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predecessor<'a> {
    /// ULID of the preceding incarnation.
    #[serde(borrow)]
    pub incarnation: Cow<'a, str>,
    /// Its number of records.
    pub size: u64,
    /// Its root at that size, base64.
    #[serde(with = "base64_hash")]
    pub root: Hash,
    /// Whether its last record is a seal.
    pub sealed: bool,
    /// Whether the same process was still writing it: size and root are then those of its newest checkpoint, and a
    /// `takeover` record tells the final ones. Absent when it was not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub running: bool,
    /// Records behind its end that were written and are gone, as far as its tree remembers them; absent when none are.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub lost: u64,
    /// ULID of the log before it, or before the one that it continues, which is named there and was not to be found when
    /// this log was opened: moved away, or removed. Absent when it was there.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Cow<'a, str>>,
}

/// Says of an admitted body that it was still coming.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingBody {
    /// Its size in bytes as its sender declared it; absent when that was not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<u64>,
}

/// What arrived of a body that was still coming when it was admitted, from its first byte on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedBody {
    /// Its size in bytes.
    pub bytes: u64,
    /// Commitment to it, base64, with the salt of the admission.
    #[serde(with = "base64_hash")]
    pub request: Hash,
    /// Whether it came to its end.
    pub whole: bool,
}

/// A request that was let through; written before any byte of it goes upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Request id, as the client was told.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Tenant.
    #[serde(borrow)]
    pub tenant: Cow<'a, str>,
    /// Which one of its tenant's admitted and denied requests in this log it is, from 1: none is missing between two that are
    /// there.
    pub tenant_seq: u64,
    /// First 8 hex digits of the API key's hash; of a token, the first 32 of its subject's.
    #[serde(borrow)]
    pub key: Cow<'a, str>,
    /// What the configuration calls the API key; absent of a key without a name, and of a token.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key_name: Option<Cow<'a, str>>,
    /// Model asked for.
    #[serde(borrow)]
    pub model: Cow<'a, str>,
    /// Provider chosen.
    #[serde(borrow)]
    pub provider: Cow<'a, str>,
    /// Model name sent upstream.
    #[serde(borrow)]
    pub upstream_model: Cow<'a, str>,
    /// Endpoint, such as `/v1/chat/completions`.
    #[serde(borrow)]
    pub endpoint: Cow<'a, str>,
    /// Whether the response streams.
    pub stream: bool,
    /// Whether its body was still coming: size and commitment are then those of what had arrived, and the completion has
    /// those of all. Absent for a whole body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coming: Option<PendingBody>,
    /// Size of the request body in bytes.
    pub bytes: u64,
    /// Commitment to the request body, base64.
    #[serde(with = "base64_hash")]
    pub request: Hash,
    /// Its salt, which also the completion's commitment has; absent in records that do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salt: Option<SaltId>,
    /// The key that the salt is made with from the half that is stored; absent where the salt itself is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shred_key: Option<ShredKeyId>,
    /// Tokens set aside for it in its tenant's limits; null when the tenant has none.
    pub reserved: Option<u64>,
    /// Nanodollars set aside for it in its tenant's budgets; absent when it counts in none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_nanodollars: Option<u64>,
    /// The plan whose limits the tenants of its namespace share, where it counts in those as well; absent when it does not.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub shared_plan: Option<Cow<'a, str>>,
    /// What the policy saw in the request.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyNote<'a>>,
    /// Names of the fields that were left out because its provider's API has none for them; absent when none were.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<Cow<'a, str>>,
    /// How many more were left out than are named; absent when it is zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_unnamed: u32,
    /// What its client says of its session and its end user; absent when it says nothing.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution<'a>>,
    /// The address that its client connected from, as RFC 5952 writes it; absent unless the configuration wants it.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub client_address: Option<Cow<'a, str>>,
    /// The configuration in force.
    pub config: ConfigId,
}

/// Whether a provider can have acted on what it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendOutcome {
    /// It cannot: not all of the request left.
    No,
    /// It can: all of it left, and nothing was answered.
    Maybe,
    /// It answered, and so said what became of it.
    Answered,
}

/// An admitted request that is sent once more, because the attempt before failed; written before any byte of it goes there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Request id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Number of the admission record, in the same log unless `incarnation` names another.
    pub admission: u64,
    /// ULID of the incarnation that admitted it; absent when that is this one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Cow<'a, str>>,
    /// Which attempt this is: 2 for the first after the one that the admission names.
    pub attempt: u32,
    /// Provider chosen now.
    #[serde(borrow)]
    pub provider: Cow<'a, str>,
    /// Model name sent there.
    #[serde(borrow)]
    pub upstream_model: Cow<'a, str>,
    /// Stable machine code of what became of the attempt before.
    #[serde(borrow)]
    pub failure: Cow<'a, str>,
    /// Status that the attempt before was answered with, if it was.
    pub failed_status: Option<u16>,
    /// Whether the provider of the attempt before can have acted on it.
    pub failed_sent: SendOutcome,
    /// Names of the fields that were left out because its provider's API has none for them; absent when none were.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<Cow<'a, str>>,
    /// How many more were left out than are named; absent when it is zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_unnamed: u32,
    /// The configuration in force when the exchange was admitted.
    pub config: ConfigId,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole response was relayed.
    Complete,
    /// The upstream failed or broke off.
    UpstreamError,
    /// The upstream was too slow.
    UpstreamTimeout,
    /// The client went away.
    ClientDisconnect,
    /// The ledger stopped, so the rest of the response was withheld.
    LedgerStopped,
    /// The worker was drained before the end.
    Drained,
    /// The policy denied the response.
    PolicyBlocked,
    /// The gateway failed while serving it.
    InternalError,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 8] = [
        Self::Complete,
        Self::UpstreamError,
        Self::UpstreamTimeout,
        Self::ClientDisconnect,
        Self::LedgerStopped,
        Self::Drained,
        Self::PolicyBlocked,
        Self::InternalError,
    ];

    /// The outcome's name in a record.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::UpstreamError => "upstream_error",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::ClientDisconnect => "client_disconnect",
            Self::LedgerStopped => "ledger_stopped",
            Self::Drained => "drained",
            Self::PolicyBlocked => "policy_blocked",
            Self::InternalError => "internal_error",
        }
    }
}

/// Tokens, and calls of tools, as the provider counted them. What it counts apart of the tokens is part of the totals, and
/// absent when it is zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
    /// Of the prompt, those read from a cache.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub cached_prompt_tokens: u64,
    /// Of the prompt, those written to a cache; none of them is one that was read from it.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub cache_write_tokens: u64,
    /// Of those written to a cache, those that it keeps for longer than five minutes.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub cache_write_1h_tokens: u64,
    /// Of the prompt, those of audio.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub audio_prompt_tokens: u64,
    /// Of the answer, those of reasoning.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub reasoning_tokens: u64,
    /// Of the answer, those of audio.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub audio_completion_tokens: u64,
    /// Searches of the web that the provider has run. Absent when there were none, or nothing is told of them.
    #[serde(default, skip_serializing_if = "is_none_or_zero")]
    pub web_search_requests: Option<u64>,
    /// Pages that the provider has fetched. Absent when there were none, or nothing is told of them.
    #[serde(default, skip_serializing_if = "is_none_or_zero")]
    pub web_fetch_requests: Option<u64>,
    /// Whether the answer ended before its provider had counted it: `completion_tokens` is what it said until then. Absent
    /// when it was counted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub partial: bool,
    /// The tier of service that the answer names. Absent when that is the standard one, or none.
    #[serde(default, skip_serializing_if = "is_standard")]
    pub service_tier: Option<TierName>,
}

/// Whether nothing was counted.
fn is_none_or_zero(count: &Option<u64>) -> bool {
    count.is_none_or(|count| count == 0)
}

/// Whether a tier of service costs as much as none.
fn is_standard(tier: &Option<TierName>) -> bool {
    tier.is_none_or(|tier| tier.as_str() == "standard")
}

/// What became of a body that was to be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadOutcome {
    /// It is stored.
    Stored,
    /// It is longer than what is stored of a body.
    TooLarge,
    /// It went through the gateway without being held: a form with files that was still coming when it was admitted.
    Streamed,
    /// There was no room for it, in memory or on the volume.
    NoRoom,
    /// It could not be written, or not in time.
    Failed,
    /// The exchange ended before it was all there and could be handed over.
    Interrupted,
    /// It was to be stored for a denied request, and whether it was is not recorded.
    Queued,
}

impl PayloadOutcome {
    /// Its name in records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::TooLarge => "too_large",
            Self::Streamed => "streamed",
            Self::NoRoom => "no_room",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
            Self::Queued => "queued",
        }
    }
}

/// What became of the bodies of an exchange whose tenant wants them stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payloads {
    /// What the client sent.
    pub request: PayloadOutcome,
    /// What it was answered.
    pub response: PayloadOutcome,
}

/// The end of an admitted exchange; written before the last byte of the response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Request id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Number of the admission record, in the same log unless `incarnation` names another.
    pub admission: u64,
    /// ULID of the incarnation that admitted it; absent when that is this one.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Cow<'a, str>>,
    /// Status sent to the client.
    pub status: u16,
    /// Status received from the upstream, if any came; of several attempts, from the last one.
    pub upstream_status: Option<u16>,
    /// How often it was sent; absent when that was not more than once.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub attempts: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// What arrived of the request's body, if that was still coming when it was admitted; absent if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<ReceivedBody>,
    /// Size of the response body in bytes.
    pub bytes: u64,
    /// Commitment to the response body, base64, with the salt of the admission.
    #[serde(with = "base64_hash")]
    pub response: Hash,
    /// What is stored of the bodies; absent where that is not asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payloads: Option<Payloads>,
    /// Tokens, where the provider told them.
    pub usage: Option<Usage>,
    /// Tokens charged to its tenant's limits in place of those reserved; null when the reservation stands.
    pub charged: Option<u64>,
    /// What it costs at the price that held when it was admitted; absent when no price or no usage is known. Where money
    /// was set aside and `charged` is not null, this takes its place; nothing does when it is absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nanodollars: Option<u64>,
    /// From admission to here, in microseconds.
    pub duration_us: u64,
    /// What the policy saw in the response.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyNote<'a>>,
    /// The configuration in force when the exchange was admitted.
    pub config: ConfigId,
}

/// A request that was refused. If a rule, an external policy or the check of guarded tools denied it, the record says as much
/// as an admission does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Request id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Tenant, when it was known.
    pub tenant: Option<Cow<'a, str>>,
    /// As in an admission, whose numbers denied requests share; absent when the request was refused for another reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_seq: Option<u64>,
    /// As in an admission; absent when the request was not denied.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
    /// As `key` of an admission, when the request had passed the limits and counts there as a request.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Cow<'a, str>>,
    /// As in an admission, of every refusal whose key is known.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key_name: Option<Cow<'a, str>>,
    /// As in an admission, when the request counts there.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub shared_plan: Option<Cow<'a, str>>,
    /// Status sent.
    pub status: u16,
    /// Stable machine code of the refusal.
    #[serde(borrow)]
    pub code: Cow<'a, str>,
    /// Model asked for; absent when the request was not denied.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Cow<'a, str>>,
    /// Endpoint, when it was known.
    pub endpoint: Option<Cow<'a, str>>,
    /// Bytes of the request that were read.
    pub bytes: u64,
    /// Commitment to these bytes; absent when the request was not denied, or its tenant has no shred key where tenants have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Commitment>,
    /// Its salt; absent without a commitment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salt: Option<SaltId>,
    /// As in an admission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shred_key: Option<ShredKeyId>,
    /// What was known of the body when the record was made; absent where it is not to be stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<PayloadOutcome>,
    /// What the policy saw in the request, when it was looked at.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyNote<'a>>,
    /// As in an admission; absent also when the request was not denied.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution<'a>>,
    /// As in an admission, of every refusal.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub client_address: Option<Cow<'a, str>>,
    /// The configuration in force.
    pub config: ConfigId,
}

/// Closes an exchange that an earlier incarnation admitted and never completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abort<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Request id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// ULID of the incarnation that admitted it.
    #[serde(borrow)]
    pub incarnation: Cow<'a, str>,
    /// Number of the admission record in that incarnation's log.
    pub admission: u64,
    /// The configuration in force now.
    pub config: ConfigId,
}

/// Says that records are missing, how many and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// When the first missing record would have been written.
    pub first_ts: u64,
    /// When the last missing record would have been written.
    pub last_ts: u64,
    /// How many are missing.
    pub count: u64,
    /// Why.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// The code of the refusals that are missing; `others` for what is not told apart.
    #[serde(borrow)]
    pub code: Cow<'a, str>,
    /// Whose they are, when that was known.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Cow<'a, str>>,
    /// The configuration in force.
    pub config: ConfigId,
}

/// Another configuration is in force from here on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Why it changed.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// SHA-256 of the configuration, in hex.
    #[serde(with = "hex")]
    pub config: Hash,
    /// What of it the configuration's file says, where tenants stand in shards beside it: the name under which that is
    /// archived. Absent where it is `config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsDigest>,
    /// The configuration that was in force before.
    pub previous: ConfigId,
}

/// The final size and root of the preceding log, when that was still being written as this one was opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takeover<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// ULID of the preceding incarnation.
    #[serde(borrow)]
    pub incarnation: Cow<'a, str>,
    /// Its number of records, its seal included.
    pub size: u64,
    /// Its root at that size, base64.
    #[serde(with = "base64_hash")]
    pub root: Hash,
    /// The configuration in force.
    pub config: ConfigId,
}

/// The last record of a log that was ended on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
    /// Why the log ends.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// Records before this one.
    pub records: u64,
    /// ULID of the incarnation that goes on in its place; absent when none does.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<Cow<'a, str>>,
    /// The configuration in force.
    pub config: ConfigId,
}

/// A record of a kind that this version does not know: a later one wrote it. It is a leaf like any other.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Unknown<'a> {
    /// Name of the kind: lower-case letters, digits and `_`, at most 32.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// Number of the record.
    pub seq: u64,
    /// Unix microseconds.
    pub ts: u64,
}

/// A record of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is its struct")]
pub enum Record<'a> {
    Open(Open<'a>),
    Admission(Admission<'a>),
    Attempt(Attempt<'a>),
    Completion(Completion<'a>),
    Rejection(Rejection<'a>),
    Abort(Abort<'a>),
    Gap(Gap<'a>),
    Config(Config<'a>),
    Takeover(Takeover<'a>),
    Analysis(Analysis<'a>),
    Seal(Seal<'a>),
    Unknown(Unknown<'a>),
}

macro_rules! kinds {
    ($($kind:ident = $name:literal),* $(,)?) => {
        $(
            impl $kind<'_> {
                /// Appends the record's JSON to `out`; on error `out` is as it was.
                ///
                /// # Errors
                /// [`LedgerError::RecordTooLarge`] above [`MAX_RECORD_BYTES`] bytes.
                pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), LedgerError> {
                    encode($name, self, out)
                }
            }
        )*

        impl Record<'_> {
            /// Name of the kind, as in the `kind` field.
            #[must_use]
            pub fn kind(&self) -> &str {
                match self { $(Self::$kind(_) => $name,)* Self::Unknown(record) => &record.kind }
            }

            /// Number of the record, 0-based.
            #[must_use]
            pub fn seq(&self) -> u64 {
                match self { $(Self::$kind(record) => record.seq,)* Self::Unknown(record) => record.seq }
            }

            /// When it was made, in unix microseconds.
            #[must_use]
            pub fn ts(&self) -> u64 {
                match self { $(Self::$kind(record) => record.ts,)* Self::Unknown(record) => record.ts }
            }

            /// Appends the record's JSON to `out`; on error `out` is as it was.
            ///
            /// # Errors
            /// [`LedgerError::RecordTooLarge`] above [`MAX_RECORD_BYTES`] bytes; [`LedgerError::InvalidRecordKind`] for one of an unknown
            /// kind, whose fields are not known either.
            pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), LedgerError> {
                match self {
                    $(Self::$kind(record) => record.encode_into(out),)*
                    Self::Unknown(record) => Err(LedgerError::InvalidRecordKind(record.kind.as_ref().to_owned())),
                }
            }
        }

        fn parse_kind<'a>(kind: &str, bytes: &'a [u8]) -> Result<Record<'a>, LedgerError> {
            match kind {
                $($name => serde_json::from_slice(bytes).map(Record::$kind).map_err(malformed),)*
                _ if is_valid_kind(kind) => serde_json::from_slice(bytes).map(Record::Unknown).map_err(malformed),
                _ => Err(LedgerError::InvalidRecordKind(kind.chars().take(64).collect())),
            }
        }
    };
}

kinds!(
    Open = "open",
    Admission = "admission",
    Attempt = "attempt",
    Completion = "completion",
    Rejection = "rejection",
    Abort = "aborted",
    Gap = "gap",
    Config = "config",
    Takeover = "takeover",
    Analysis = "analysis",
    Seal = "seal",
);

impl Record<'_> {
    /// The request id, of the kinds that have one.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Admission(record) => Some(&record.id),
            Self::Attempt(record) => Some(&record.id),
            Self::Completion(record) => Some(&record.id),
            Self::Rejection(record) => Some(&record.id),
            Self::Abort(record) => Some(&record.id),
            Self::Open(_) | Self::Gap(_) | Self::Config(_) | Self::Takeover(_) | Self::Seal(_) => None,
            Self::Analysis(_) | Self::Unknown(_) => None,
        }
    }
}

/// Whether a later version could name a kind so.
fn is_valid_kind(name: &str) -> bool {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
    (1..=32).contains(&name.len()) && name.bytes().all(plain)
}

/// Reads one record. Fields and kinds that this version does not know are tolerated, so that an older version can read
/// what a newer one wrote.
///
/// # Errors
/// [`LedgerError::RecordTooLarge`], [`LedgerError::InvalidRecordKind`] for a text that names no kind, or [`LedgerError::RecordMalformed`] on anything that
/// is not exactly one JSON object with the kind's fields, on another version, and on a repeated key anywhere in it.
pub fn parse(bytes: &[u8]) -> Result<Record<'_>, LedgerError> {
    if bytes.len() > MAX_RECORD_BYTES {
        return Err(LedgerError::RecordTooLarge { bytes: bytes.len() });
    }
    let shape: RecordHeader<'_> = serde_json::from_slice(bytes).map_err(malformed)?;
    if shape.version != VERSION {
        return Err(LedgerError::RecordMalformed(format!(
            "version {} is not {VERSION}",
            shape.version
        )));
    }
    parse_kind(&shape.kind, bytes)
}

fn encode<T: Serialize>(kind: &'static str, body: &T, out: &mut Vec<u8>) -> Result<(), LedgerError> {
    let start = out.len();
    let written = FieldWriter::start(out, VERSION, kind)
        .and_then(|fields| body.serialize(fields))
        .map_err(malformed);
    let bytes = out.len() - start;
    let checked = match written {
        Ok(()) if bytes > MAX_RECORD_BYTES => Err(LedgerError::RecordTooLarge { bytes }),
        other => other,
    };
    if checked.is_err() {
        out.truncate(start);
    }
    checked
}

fn malformed(error: serde_json::Error) -> LedgerError {
    LedgerError::RecordMalformed(error.to_string())
}
