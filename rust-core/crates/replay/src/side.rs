//! A verdict, as a record tells it or as rules come to it.

use proofgate_ledger::record::{FlaggedToolText, GuardVerdict, Outcome, PolicyNote};
use serde::Serialize;

/// What is decided of one direction of an exchange, from mild to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// Nothing matched.
    Allow,
    /// It is reported.
    Flag,
    /// It is reported, and would be denied were the policy not in dry-run mode.
    WouldBlock,
    /// Parts of the text are replaced.
    Redact,
    /// It is denied.
    Block,
    /// It cannot be read, and is refused before any rule looks at it.
    Refuse,
}

/// Texts of tools that are flagged as instructions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FlaggedToolTexts {
    /// What the first one is.
    pub scope: String,
    /// Where it stands in its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// How many there are.
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
    /// The entry of the configuration that names the tool.
    pub tool: String,
    /// What became of it.
    pub verdict: GuardVerdict,
}

/// A verdict and what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DirectionVerdict {
    /// What is decided.
    pub verdict: VerdictKind,
    /// Score of the message that decides.
    pub score: u32,
    /// What that message is; absent where no rule matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Where it stands in its request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Whether a message's score reaches the threshold from which on it is flagged.
    #[serde(skip_serializing_if = "is_false")]
    pub flagged: bool,
    /// The texts of tools that are flagged as instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_tool: Option<FlaggedToolTexts>,
    /// What became of a call of a guarded tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guarded_call: Option<GuardedToolCall>,
    /// Ids of the rules that matched.
    pub rules: Vec<String>,
    /// How many more matched than a record names.
    #[serde(skip_serializing_if = "is_zero")]
    pub unnamed: u32,
    /// Why it is refused or denied where no rule does that: a stable machine code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'static str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde calls")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl DirectionVerdict {
    /// Of something that went on.
    pub(crate) fn passed(note: Option<&PolicyNote<'_>>) -> Self {
        Self::from_note(note, None)
    }

    /// Of something that was denied.
    pub(crate) fn denied(note: Option<&PolicyNote<'_>>) -> Self {
        Self::from_note(note, Some(VerdictKind::Block))
    }

    /// Of an answer, by how its exchange ended.
    pub(crate) fn for_response(note: Option<&PolicyNote<'_>>, outcome: Outcome) -> Self {
        match outcome {
            Outcome::PolicyBlocked => Self::denied(note),
            _ => Self::passed(note),
        }
    }

    /// Of something that no rule decides about.
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

    /// Whether it decides the same for the same reasons, whatever each reason counts.
    pub(crate) fn same_decision(&self, other: &Self) -> bool {
        let decided = |side: &Self| (side.verdict, side.unnamed, side.code);
        decided(self) == decided(other) && self.rules == other.rules
    }

    /// Whether everything that this one names is named there, too, and it has no higher score.
    pub(crate) fn is_subset_of(&self, other: &Self) -> bool {
        self.score <= other.score && self.names_subset_of(other)
    }

    /// Whether everything that this one names is named there, too.
    pub(crate) fn names_subset_of(&self, other: &Self) -> bool {
        let named = |rule: &String| other.rules.contains(rule);
        other.unnamed > 0 || (self.unnamed == 0 && self.rules.iter().all(named))
    }

    /// Whether a policy outside of the engine has its part in it: those are named with a slash.
    pub(crate) fn has_external_policies(&self) -> bool {
        self.rules.iter().any(|rule| rule.contains('/'))
    }

    /// Whether a record says this of the rules, and besides only what others have found behind them.
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

    /// Whether it was denied for a call of a guarded tool.
    pub(crate) fn is_guarded_call_denial(&self) -> bool {
        self.verdict == VerdictKind::Block && self.guarded_call.is_some()
    }

    /// Whether it tells of rules that came to no verdict.
    pub(crate) fn has_no_verdict(&self) -> bool {
        self.rules.is_empty() && self.verdict == VerdictKind::WouldBlock
    }
}
