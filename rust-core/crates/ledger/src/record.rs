//! Records: the leaves of a log, one struct per kind.
//!
//! A record is stored and hashed as compact JSON: `v` and `kind`, then the fields in the order of its struct. Verifiers
//! hash the stored bytes and never re-encode them. Times are unix microseconds, sizes are bytes, durations are
//! microseconds. Strings are borrowed where possible, so that encoding a record allocates nothing.

use crate::{Hash, LedgerError};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

mod analysis;
mod attribution;
mod compact;
mod header;
mod id;
mod serde_defaults;
mod text;
mod tier;

pub use crate::record_size::MAX_RECORD_BYTES;
pub use analysis::{AnalysedFeature, AnalysedResponse, AnalysedWindow, Analysis};
pub use attribution::{Attribution, EndUserId, TraceId};
use compact::FieldWriter;
use header::RecordHeader;
pub use id::{Commitment, ConfigDigests, ConfigId, SaltId, SettingsDigest, ShredKeyId};
use serde_defaults::{is_false, is_one, is_zero, is_zero_u64, one};
use text::{base64_hash, hex};
pub use tier::TierName;

/// The only version of the record format.
pub const VERSION: u8 = 1;

/// The policy results for one direction of an exchange; absent if no rule matched.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyNote<'a> {
    /// Score of the deciding message: the first denied message, or otherwise the message with the
    /// highest score.
    pub score: u32,
    /// Type of the deciding message, such as `tool_result`; absent if no rule of the engine
    /// matched.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Cow<'a, str>>,
    /// Position of the deciding message in the request, such as `messages[12]`; absent for a
    /// response, a form, and a position without a name.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
    /// Whether the score of a message reaches the flagging threshold; absent if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub flagged: bool,
    /// Tool text that is flagged as instructions; absent for responses, and if no tool text is
    /// flagged.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub from_tool: Option<FlaggedToolText<'a>>,
    /// Call of a guarded tool in the response, with the verdict; absent for requests, and if no
    /// guarded tool was called.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub guarded_call: Option<GuardedCall<'a>>,
    /// Ids of the rules that matched, never the matched text.
    #[serde(borrow)]
    pub rules: Vec<Cow<'a, str>>,
    /// Number of further rules that matched and are not listed; absent if zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unnamed: u32,
    /// Whether matches were replaced before the text was forwarded.
    pub redacted: bool,
    /// Whether matches were left unchanged because the text cannot be changed, as in a form; absent
    /// if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unchanged: bool,
    /// Whether a rule denies the exchange, whether the policy is enforced or in dry-run mode.
    pub would_block: bool,
}

/// Text in a request that came from a tool result or description and looks like instructions: the
/// score of its matched rules reaches the flagging threshold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlaggedToolText<'a> {
    /// Type of the first such text: `tool_result` or `tool_description`.
    #[serde(borrow)]
    pub scope: Cow<'a, str>,
    /// Position of the first such text in the request, such as `messages[12]`; absent for a position without a name.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Cow<'a, str>>,
    /// Number of such texts; absent if it is one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub count: u32,
}

/// The call of a guarded tool in the response to a request with a [flagged tool text](FlaggedToolText).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardedCall<'a> {
    /// The configuration entry that matches the tool, such as `Bash` or `mcp__github__*`.
    #[serde(borrow)]
    pub tool: Cow<'a, str>,
    /// Verdict on the call.
    pub verdict: GuardVerdict,
    /// Id of the granted or required approval: the first 8 bytes of its SHA-256, in hex. Absent if
    /// no approval is required.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Cow<'a, str>>,
}

/// The verdict on a call of a guarded tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardVerdict {
    /// The response was not delivered.
    Refused,
    /// The response was not delivered, and an approval was requested.
    ApprovalRequired,
    /// The response was delivered because the request carried an approval.
    Approved,
    /// The response was delivered because the policy is in dry-run mode.
    Observed,
}

impl<'a> PolicyNote<'a> {
    /// Maximum number of rules that a note lists, so that they fit in the capacity reserved for a
    /// record.
    pub const MAX_NAMED_RULES: usize = 16;

    /// Creates a note from the ids of the rules that matched. The note lists the first
    /// [`Self::MAX_NAMED_RULES`] and counts the others.
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

    /// Adds the scope and position of the deciding message, and whether it is flagged.
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

/// The first record of every log. It names the log's writer, the configuration, and the preceding
/// log on the shard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Open<'a> {
    /// Number of the record, 0-based; equals its leaf index.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
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
    /// Digest of the configuration's main file, if shard files configure the tenants. The main file
    /// is archived under this digest. Absent if it equals `config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsDigest>,
    /// The ledger key that signs this log, as vkey text; no other ledger key signs it. Absent in
    /// records of earlier versions.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
    /// The preceding incarnation, as recovery found it; null for the first incarnation on a shard.
    #[serde(borrow)]
    pub predecessor: Option<Predecessor<'a>>,
}

/// The tail of the preceding log as recovery found it. The checkpoints of the new log therefore
/// cover the preceding log.
///
/// If the preceding log was still being written, size and root are from its newest checkpoint. A
/// [`Takeover`] record follows after that log has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Predecessor<'a> {
    /// ULID of the preceding incarnation.
    #[serde(borrow)]
    pub incarnation: Cow<'a, str>,
    /// Number of records of the preceding log.
    pub size: u64,
    /// Root of the preceding log at that size, base64.
    #[serde(with = "base64_hash")]
    pub root: Hash,
    /// Whether the last record of the preceding log is a seal.
    pub sealed: bool,
    /// Whether the same process was still writing the preceding log. If so, size and root are from
    /// its newest checkpoint, and a `takeover` record states the final size and root. Absent if
    /// not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub running: bool,
    /// Number of lost records after the end of the preceding log, as far as its tree shows; absent
    /// if zero.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub lost: u64,
    /// ULID of an earlier log that was not found when this log was opened, because it was moved or
    /// removed. It is the predecessor of the preceding log, or of the log that the preceding log
    /// continues. Absent if no earlier log is missing.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Cow<'a, str>>,
}

/// A mark of an admission whose request body was still arriving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingBody {
    /// Size in bytes that the sender declared; absent if none was declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared: Option<u64>,
}

/// The received part of a request body that was still arriving at admission, from the body's first
/// byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceivedBody {
    /// Size of the received part in bytes.
    pub bytes: u64,
    /// Commitment to the received bytes, base64, with the salt of the admission.
    #[serde(with = "base64_hash")]
    pub request: Hash,
    /// Whether the whole body was received.
    pub whole: bool,
}

/// A request that was admitted. The record is written before any byte of the request is sent
/// upstream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Admission<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
    pub ts: u64,
    /// Request id, as returned to the client.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Tenant.
    #[serde(borrow)]
    pub tenant: Cow<'a, str>,
    /// Sequence number of this request among its tenant's admitted and denied requests in this log, from 1. It has no
    /// gaps, so a missing record is detectable.
    pub tenant_seq: u64,
    /// First 8 hex digits of the API key's hash; for a token, the first 32 hex digits of its subject's hash.
    #[serde(borrow)]
    pub key: Cow<'a, str>,
    /// Name of the API key in the configuration; absent for a key without a name, and for a token.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key_name: Option<Cow<'a, str>>,
    /// Requested model.
    #[serde(borrow)]
    pub model: Cow<'a, str>,
    /// Selected provider.
    #[serde(borrow)]
    pub provider: Cow<'a, str>,
    /// Model name that is sent upstream.
    #[serde(borrow)]
    pub upstream_model: Cow<'a, str>,
    /// Endpoint, such as `/v1/chat/completions`.
    #[serde(borrow)]
    pub endpoint: Cow<'a, str>,
    /// Whether the response streams.
    pub stream: bool,
    /// Mark of a body that was still arriving; absent for a complete body. If present, size and
    /// commitment cover the part that had arrived, and the completion has the size and commitment
    /// of everything received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coming: Option<PendingBody>,
    /// Size of the request body in bytes.
    pub bytes: u64,
    /// Commitment to the request body, base64.
    #[serde(with = "base64_hash")]
    pub request: Hash,
    /// Id of the salt for the commitments in this record and in the completion; absent in records
    /// that do not name the salt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salt: Option<SaltId>,
    /// The shred key from which the salt is derived, together with the stored half; absent if the
    /// salt itself is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shred_key: Option<ShredKeyId>,
    /// Tokens reserved in the tenant's limits; null if the tenant has no such limits.
    pub reserved: Option<u64>,
    /// Nanodollars reserved in the tenant's budgets; absent if the request counts in no budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved_nanodollars: Option<u64>,
    /// The plan whose limits the tenants of the namespace share; absent if the request does not
    /// count in shared limits.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub shared_plan: Option<Cow<'a, str>>,
    /// Policy results for the request.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyNote<'a>>,
    /// Names of the fields that were dropped because the provider's API has no equivalent; absent if there were none.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<Cow<'a, str>>,
    /// Number of further dropped fields that are not listed; absent if zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_unnamed: u32,
    /// The client's statements about its session and its end user; absent if it states nothing.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution<'a>>,
    /// Address from which the client connected, in RFC 5952 form; absent unless configured.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub client_address: Option<Cow<'a, str>>,
    /// The configuration in force.
    pub config: ConfigId,
}

/// The possibility that a provider has acted on an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SendOutcome {
    /// The provider has not acted: the request was not sent completely.
    No,
    /// The provider may have acted: the request was sent completely, but no response was received.
    Maybe,
    /// The provider responded, so the outcome is known.
    Answered,
}

/// A further attempt to send an admitted request after the previous attempt failed. The record is
/// written before any byte of the attempt is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
    pub ts: u64,
    /// Request id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Number of the admission record, in the same log unless `incarnation` names another.
    pub admission: u64,
    /// ULID of the incarnation that admitted the exchange; absent if it is this incarnation.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Cow<'a, str>>,
    /// Number of the attempt. The admission is attempt 1, so the first `attempt` record has 2.
    pub attempt: u32,
    /// Provider selected for this attempt.
    #[serde(borrow)]
    pub provider: Cow<'a, str>,
    /// Model name that is sent to that provider.
    #[serde(borrow)]
    pub upstream_model: Cow<'a, str>,
    /// Stable machine code of the previous attempt's failure.
    #[serde(borrow)]
    pub failure: Cow<'a, str>,
    /// Response status of the previous attempt, if there was one.
    pub failed_status: Option<u16>,
    /// Whether the provider of the previous attempt may have acted on that attempt.
    pub failed_sent: SendOutcome,
    /// Names of the fields that were dropped because the provider's API has no equivalent; absent if there were none.
    #[serde(borrow, default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<Cow<'a, str>>,
    /// Number of further dropped fields that are not listed; absent if zero.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_unnamed: u32,
    /// The configuration in force when the exchange was admitted.
    pub config: ConfigId,
}

/// The outcome of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The whole response was relayed.
    Complete,
    /// The upstream failed or closed the connection early.
    UpstreamError,
    /// The upstream timed out.
    UpstreamTimeout,
    /// The client disconnected.
    ClientDisconnect,
    /// The ledger stopped, so the rest of the response was withheld.
    LedgerStopped,
    /// The worker was drained before the end.
    Drained,
    /// The policy denied the response.
    PolicyBlocked,
    /// The gateway failed while serving the exchange.
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

    /// Returns the outcome's name in a record.
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

/// The tokens and tool calls of an exchange, as the provider counted them. The detailed token
/// counts are included in the totals, and are absent if zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Tokens of the response.
    pub completion_tokens: u64,
    /// Prompt tokens read from a cache.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub cached_prompt_tokens: u64,
    /// Prompt tokens written to a cache; disjoint from `cached_prompt_tokens`.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub cache_write_tokens: u64,
    /// Tokens written to a cache that keeps them longer than five minutes; part of `cache_write_tokens`.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub cache_write_1h_tokens: u64,
    /// Audio tokens of the prompt.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub audio_prompt_tokens: u64,
    /// Reasoning tokens of the response.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub reasoning_tokens: u64,
    /// Audio tokens of the response.
    #[serde(default, skip_serializing_if = "is_zero_u64")]
    pub audio_completion_tokens: u64,
    /// Web searches that the provider ran. Absent if there were none, or none were reported.
    #[serde(default, skip_serializing_if = "is_none_or_zero")]
    pub web_search_requests: Option<u64>,
    /// Web pages that the provider fetched. Absent if there were none, or none were reported.
    #[serde(default, skip_serializing_if = "is_none_or_zero")]
    pub web_fetch_requests: Option<u64>,
    /// Whether the response ended before the provider reported final usage: `completion_tokens` is then the last
    /// reported count. Absent if usage is final.
    #[serde(default, skip_serializing_if = "is_false")]
    pub partial: bool,
    /// Service tier named in the response. Absent if it is the standard tier, or not named.
    #[serde(default, skip_serializing_if = "is_standard")]
    pub service_tier: Option<TierName>,
}

/// Returns whether the count is zero or was not reported.
fn is_none_or_zero(count: &Option<u64>) -> bool {
    count.is_none_or(|count| count == 0)
}

/// Returns whether a service tier is the standard one or absent.
fn is_standard(tier: &Option<TierName>) -> bool {
    tier.is_none_or(|tier| tier.as_str() == "standard")
}

/// The outcome of storing a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PayloadOutcome {
    /// The body is stored.
    Stored,
    /// The body exceeds the size limit for stored bodies.
    TooLarge,
    /// The body was streamed through the gateway without being buffered, because it is a form with
    /// files that was still arriving at admission.
    Streamed,
    /// There was no space for the body, in memory or on the volume.
    NoRoom,
    /// The body could not be written, or was not written in time.
    Failed,
    /// The exchange ended before the whole body could be passed on for storing.
    Interrupted,
    /// The body of a denied request is queued for storing; the result is not recorded.
    Queued,
}

impl PayloadOutcome {
    /// Returns the outcome's name in a record.
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

/// The outcomes of storing the bodies of an exchange, if the tenant stores bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payloads {
    /// The request body.
    pub request: PayloadOutcome,
    /// The response body.
    pub response: PayloadOutcome,
}

/// The end of an admitted exchange. The record is written before the last byte of the response is
/// sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
    pub ts: u64,
    /// Request id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Number of the admission record, in the same log unless `incarnation` names another.
    pub admission: u64,
    /// ULID of the incarnation that admitted the exchange; absent if it is this incarnation.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Cow<'a, str>>,
    /// Status sent to the client.
    pub status: u16,
    /// Status received from the upstream in the last attempt, if any.
    pub upstream_status: Option<u16>,
    /// Number of attempts; absent if zero or one.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub attempts: u32,
    /// Outcome of the exchange.
    pub outcome: Outcome,
    /// The received part of a request body that was still arriving at admission; absent for other
    /// bodies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<ReceivedBody>,
    /// Size of the response body in bytes.
    pub bytes: u64,
    /// Commitment to the response body, base64, with the salt of the admission.
    #[serde(with = "base64_hash")]
    pub response: Hash,
    /// Outcomes of storing the bodies; absent if the tenant does not store bodies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payloads: Option<Payloads>,
    /// Usage, if the provider reported it.
    pub usage: Option<Usage>,
    /// Tokens charged to the tenant's limits instead of the reserved tokens; null if the reserved
    /// tokens are charged.
    pub charged: Option<u64>,
    /// Cost at the price in force at the admission; absent if price or usage is unknown. If money
    /// was reserved and `charged` is not null, this cost is charged instead of the reservation, and
    /// an absent cost charges nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_nanodollars: Option<u64>,
    /// Time from admission to this record, in microseconds.
    pub duration_us: u64,
    /// Policy results for the response.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyNote<'a>>,
    /// The configuration in force when the exchange was admitted.
    pub config: ConfigId,
}

/// A request that was refused. If a rule, an external policy or the guarded-tool check denied it, the record has the
/// same details as an admission.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rejection<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
    pub ts: u64,
    /// Request id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// Tenant, if known.
    pub tenant: Option<Cow<'a, str>>,
    /// Same as in an admission, because denied and admitted requests share one numbering; absent if
    /// the request was refused but not denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_seq: Option<u64>,
    /// Same as in an admission; absent if the request was not denied.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Cow<'a, str>>,
    /// Same as `key` of an admission; present if the request had passed the limits and counts in
    /// them as a request.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Cow<'a, str>>,
    /// Same as in an admission; present in every refusal whose key is known.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub key_name: Option<Cow<'a, str>>,
    /// Same as in an admission; present if the request counts in the shared limits.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub shared_plan: Option<Cow<'a, str>>,
    /// Status sent to the client.
    pub status: u16,
    /// Stable machine code of the refusal.
    #[serde(borrow)]
    pub code: Cow<'a, str>,
    /// Requested model; absent if the request was not denied.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Cow<'a, str>>,
    /// Endpoint, if known.
    pub endpoint: Option<Cow<'a, str>>,
    /// Bytes of the request that were received.
    pub bytes: u64,
    /// Commitment to these bytes; absent if the request was not denied, or if shred keys are
    /// mandatory and the tenant has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Commitment>,
    /// Id of the commitment's salt; absent without a commitment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub salt: Option<SaltId>,
    /// Same as in an admission.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shred_key: Option<ShredKeyId>,
    /// Outcome of storing the body at the time of the record; absent if the body is not to be
    /// stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<PayloadOutcome>,
    /// Policy results for the request, if it was checked.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyNote<'a>>,
    /// Same as in an admission; also absent if the request was not denied.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution<'a>>,
    /// Same as in an admission; also present if the request was not denied.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub client_address: Option<Cow<'a, str>>,
    /// The configuration in force.
    pub config: ConfigId,
}

/// The end of an exchange that an earlier incarnation admitted and never completed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abort<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
    pub ts: u64,
    /// Request id.
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    /// ULID of the incarnation that admitted the exchange.
    #[serde(borrow)]
    pub incarnation: Cow<'a, str>,
    /// Number of the admission record in that incarnation's log.
    pub admission: u64,
    /// The configuration in force when this record was made.
    pub config: ConfigId,
}

/// A statement that records are missing, with their number and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
    pub ts: u64,
    /// Time at which the first missing record would have been written, in unix microseconds.
    pub first_ts: u64,
    /// Time at which the last missing record would have been written, in unix microseconds.
    pub last_ts: u64,
    /// Number of missing records.
    pub count: u64,
    /// Reason why the records are missing.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// Code of the missing refusals; `others` if they are not distinguished.
    #[serde(borrow)]
    pub code: Cow<'a, str>,
    /// Tenant of the missing refusals, if known.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<Cow<'a, str>>,
    /// The configuration in force.
    pub config: ConfigId,
}

/// A change of the configuration, in force from this record on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Config<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
    pub ts: u64,
    /// Reason of the change.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// SHA-256 of the configuration, in hex.
    #[serde(with = "hex")]
    pub config: Hash,
    /// Digest of the configuration's main file, if shard files configure the tenants. The main file
    /// is archived under this digest. Absent if it equals `config`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<SettingsDigest>,
    /// The configuration that was in force before.
    pub previous: ConfigId,
}

/// The final size and root of a preceding log that was still being written when this log was
/// opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Takeover<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
    pub ts: u64,
    /// ULID of the preceding incarnation.
    #[serde(borrow)]
    pub incarnation: Cow<'a, str>,
    /// Number of records of the preceding log, including its seal.
    pub size: u64,
    /// Root of the preceding log at that size, base64.
    #[serde(with = "base64_hash")]
    pub root: Hash,
    /// The configuration in force.
    pub config: ConfigId,
}

/// The last record of a log that was closed on purpose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seal<'a> {
    /// Number of the record.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
    pub ts: u64,
    /// Reason why the log ends.
    #[serde(borrow)]
    pub reason: Cow<'a, str>,
    /// Number of records before this one.
    pub records: u64,
    /// ULID of the incarnation that continues the log; absent if none does.
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub successor: Option<Cow<'a, str>>,
    /// The configuration in force.
    pub config: ConfigId,
}

/// A record of a kind that this version does not know, written by a later version. It is a leaf
/// like any other record.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct UnknownRecord<'a> {
    /// Name of the kind: at most 32 lower-case letters, digits and `_`.
    #[serde(borrow)]
    pub kind: Cow<'a, str>,
    /// Number of the record.
    pub seq: u64,
    /// Time of the record, in unix microseconds.
    pub ts: u64,
}

/// A record of any kind.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant has the fields of its struct")]
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
    Unknown(UnknownRecord<'a>),
}

macro_rules! kinds {
    ($($kind:ident = $name:literal),* $(,)?) => {
        $(
            impl $kind<'_> {
                /// Appends the record's JSON to `out`; on error `out` is unchanged.
                ///
                /// # Errors
                /// [`LedgerError::RecordTooLarge`] above [`MAX_RECORD_BYTES`] bytes.
                pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), LedgerError> {
                    encode($name, self, out)
                }
            }
        )*

        impl Record<'_> {
            /// Returns the name of the kind, as in the `kind` field.
            #[must_use]
            pub fn kind(&self) -> &str {
                match self { $(Self::$kind(_) => $name,)* Self::Unknown(record) => &record.kind }
            }

            /// Returns the number of the record, 0-based.
            #[must_use]
            pub fn seq(&self) -> u64 {
                match self { $(Self::$kind(record) => record.seq,)* Self::Unknown(record) => record.seq }
            }

            /// Returns the time of the record, in unix microseconds.
            #[must_use]
            pub fn ts(&self) -> u64 {
                match self { $(Self::$kind(record) => record.ts,)* Self::Unknown(record) => record.ts }
            }

            /// Appends the record's JSON to `out`; on error `out` is unchanged.
            ///
            /// # Errors
            /// [`LedgerError::RecordTooLarge`] above [`MAX_RECORD_BYTES`] bytes; [`LedgerError::InvalidRecordKind`] for
            /// a record of an unknown kind, because its fields are not known.
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
    /// Returns the request id, for the kinds that have one.
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

/// Returns whether a name is a valid kind, possibly of a later version.
fn is_valid_kind(name: &str) -> bool {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_';
    (1..=32).contains(&name.len()) && name.bytes().all(plain)
}

/// Parses one record. Unknown fields and kinds are accepted, so that an older version can read the
/// records of a newer version.
///
/// # Errors
/// [`LedgerError::RecordTooLarge`]; [`LedgerError::InvalidRecordKind`] for a record without a valid
/// kind; [`LedgerError::RecordMalformed`] for text that is not exactly one JSON object with the
/// kind's fields, for another version, and for a repeated key at any depth.
pub fn parse(bytes: &[u8]) -> Result<Record<'_>, LedgerError> {
    if bytes.len() > MAX_RECORD_BYTES {
        return Err(LedgerError::RecordTooLarge { bytes: bytes.len() });
    }
    let shape: RecordHeader<'_> = serde_json::from_slice(bytes).map_err(malformed)?;
    if shape.version != VERSION {
        return Err(LedgerError::RecordMalformed(format!(
            "format version {} is not supported: this program reads version {VERSION}",
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
