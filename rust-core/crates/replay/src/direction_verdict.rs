//! A verdict, either recorded or replayed.

use proofgate_ledger::record::{FlaggedToolText, GuardVerdict, Outcome, PolicyNote};
use serde::Serialize;

/// The decision on one direction of an exchange, from mild to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Allowed: nothing matched.
    Allow,
    /// Reported.
    Flag,
    /// Reported, and would be denied if the policy were not in dry-run mode.
    WouldBlock,
    /// Parts of the text are replaced.
    Redact,
    /// Denied.
    Block,
    /// Refused before any rule is evaluated, because it cannot be read.
    Refuse,
}

/// Tool texts that are flagged as instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlaggedToolTexts {
    /// Scope of the first flagged text.
    pub scope: String,
    /// Location of the first flagged text in its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Number of flagged texts.
    pub count: u32,
}

impl FlaggedToolTexts {
    fn from_record(from: &FlaggedToolText<'_>) -> Self {
        Self {
            scope: from.scope.as_ref().to_owned(),
            message: from.message.as_deref().map(str::to_owned),
            count: from.count,
        }
    }
}

/// A call of a guarded tool in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuardedToolCall {
    /// The configuration entry that names the tool.
    pub tool: String,
    /// The verdict on the call.
    pub verdict: GuardVerdict,
}

/// A verdict and its reasons.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DirectionVerdict {
    /// The decision.
    pub verdict: VerdictKind,
    /// Score of the deciding message.
    pub score: u32,
    /// Scope of that message; absent when no rule matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Location of that message in its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether the score of a message reaches the flagging threshold.
    #[serde(skip_serializing_if = "is_false")]
    pub flagged: bool,
    /// The tool texts that are flagged as instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_tool: Option<FlaggedToolTexts>,
    /// The verdict on a call of a guarded tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guarded_call: Option<GuardedToolCall>,
    /// Ids of the rules that matched.
    pub rules: Vec<String>,
    /// Number of further rules that matched but are not named in the record.
    #[serde(skip_serializing_if = "is_zero")]
    pub unnamed: u32,
    /// Why it is refused or denied, when not by a rule: a stable machine code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls this function")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls this function")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl DirectionVerdict {
    /// Creates the verdict of a direction that was not denied.
    pub(crate) fn passed(note: Option<&PolicyNote<'_>>) -> Self {
        Self::from_note(note, None)
    }

    /// Creates the verdict of a direction that was denied.
    pub(crate) fn denied(note: Option<&PolicyNote<'_>>) -> Self {
        Self::from_note(note, Some(VerdictKind::Block))
    }

    /// Creates the verdict of an answer, by the outcome of its exchange.
    pub(crate) fn for_response(note: Option<&PolicyNote<'_>>, outcome: Outcome) -> Self {
        match outcome {
            Outcome::PolicyBlocked => Self::denied(note),
            _ => Self::passed(note),
        }
    }

    /// Creates a verdict that no rule decided.
    pub(crate) fn undecided(verdict: VerdictKind, code: &'static str) -> Self {
        Self {
            code: Some(code),
            ..Self::from_note(None, Some(verdict))
        }
    }

    fn from_note(note: Option<&PolicyNote<'_>>, verdict: Option<VerdictKind>) -> Self {
        let guarded_call = note.and_then(|note| note.guarded_call.as_ref());
        let is_approved = guarded_call.is_some_and(|call| call.verdict == GuardVerdict::Approved);
        let found = match note {
            None => VerdictKind::Allow,
            Some(note) if is_approved && note.rules.is_empty() => VerdictKind::Allow,
            Some(note) if note.redacted => VerdictKind::Redact,
            Some(note) if note.would_block => VerdictKind::WouldBlock,
            Some(_) => VerdictKind::Flag,
        };
        let rules = note.into_iter().flat_map(|note| &note.rules);
        Self {
            verdict: verdict.unwrap_or(found),
            score: note.map_or(0, |note| note.score),
            scope: note.and_then(|note| note.scope.as_deref()).map(str::to_owned),
            message: note.and_then(|note| note.message.as_deref()).map(str::to_owned),
            flagged: note.is_some_and(|note| note.flagged),
            from_tool: note
                .and_then(|note| note.from_tool.as_ref())
                .map(FlaggedToolTexts::from_record),
            guarded_call: guarded_call.map(|call| GuardedToolCall {
                tool: call.tool.as_ref().to_owned(),
                verdict: call.verdict,
            }),
            rules: rules.map(|rule| rule.as_ref().to_owned()).collect(),
            unnamed: note.map_or(0, |note| note.unnamed),
            code: None,
        }
    }

    /// Returns whether it makes the same decision for the same reasons, regardless of their scores.
    pub(crate) fn same_decision(&self, other: &Self) -> bool {
        let decided = |side: &Self| (side.verdict, side.unnamed, side.code);
        decided(self) == decided(other) && self.rules == other.rules
    }

    /// Returns whether `other` contains all names in this verdict, and this score is not higher.
    pub(crate) fn is_subset_of(&self, other: &Self) -> bool {
        self.score <= other.score && self.names_subset_of(other)
    }

    /// Returns whether `other` contains all names in this verdict.
    pub(crate) fn names_subset_of(&self, other: &Self) -> bool {
        let named = |rule: &String| other.rules.contains(rule);
        other.unnamed > 0 || (self.unnamed == 0 && self.rules.iter().all(named))
    }

    /// Returns whether an external policy, whose name contains a slash, contributed to the verdict.
    pub(crate) fn has_external_policies(&self) -> bool {
        self.rules.iter().any(|rule| rule.contains('/'))
    }

    /// Returns whether a record contains this verdict of the rules, and in addition only findings
    /// of external policies.
    pub(crate) fn matches_apart_from_external_policies(&self, recorded: &Self) -> bool {
        if !recorded.has_external_policies() && recorded.unnamed == 0 {
            return self == recorded;
        }
        let own = recorded.rules.iter().filter(|rule| !rule.contains('/'));
        own.eq(&self.rules)
            && self.unnamed <= recorded.unnamed
            && self.score <= recorded.score
            && self.verdict <= recorded.verdict
    }

    /// Returns whether it was denied for a call of a guarded tool.
    pub(crate) fn is_guarded_call_denial(&self) -> bool {
        self.verdict == VerdictKind::Block && self.guarded_call.is_some()
    }

    /// Returns whether it records that the rules reached no verdict.
    pub(crate) fn has_no_verdict(&self) -> bool {
        self.rules.is_empty() && self.verdict == VerdictKind::WouldBlock
    }
}
