//! What rules and policies have made of a request, and what its record says of that.

use std::borrow::Cow;

use proofgate_base::rejection::Rejection;
use proofgate_inspect::{ReplacementCounts, ToolFlag};
use proofgate_ledger::record::{FlaggedToolText, GuardedCall, PolicyNote};
use proofgate_policy::{Attachments, Engine, Judgement, Mode};
use proofgate_providers::{self as providers, MessageLocation};
use proofgate_upstream::catalog::Catalog;
use proofgate_wire::encode;

use crate::guarded_tools::flagged_header;
use crate::hooks::Masks;
use crate::rewritten::RewrittenBody;

/// A request that may go on.
#[derive(Default)]
pub struct JudgedRequest<'c> {
    /// What was seen in it; `None` when no rule matched.
    pub note: Option<PolicyNote<'c>>,
    /// The body to send in the place of the client's, when something was redacted.
    pub(crate) rewritten: Option<RewrittenBody>,
    /// What rules and policies have masked, and is put back in the answer.
    pub(crate) masks: Option<Box<Masks>>,
    /// How often rules have redacted something, and masked it.
    pub redacted: ReplacementCounts,
    pub masked: ReplacementCounts,
    /// Texts of tools that are flagged as instructions.
    pub(crate) tool_flags: Vec<ToolFlag>,
}

impl JudgedRequest<'_> {
    /// Says in header lines what rules have replaced, and which texts of tools they flag as instructions.
    pub fn write_headers(&self, engine: &Engine, mode: Mode, extra: &mut Vec<u8>) {
        if mode == Mode::Enforce && !self.tool_flags.is_empty() {
            // Words of the API.
            let flagged = flagged_header(&self.tool_flags);
            let _ = encode::write_header(extra, "x-proofgate-flagged", flagged.as_bytes());
        }
        write_counts(extra, "x-proofgate-redacted", &self.redacted, engine);
        write_counts(extra, "x-proofgate-masked", &self.masked, engine);
    }
}

/// Says in a header line how often each rule has replaced something; nothing if none has.
pub(crate) fn write_counts(extra: &mut Vec<u8>, name: &str, counts: &ReplacementCounts, engine: &Engine) {
    if !counts.is_empty() {
        // Ids of rules are tokens.
        let _ = encode::write_header(extra, name, counts.display(engine).to_string().as_bytes());
    }
}

/// A request that may not.
pub struct DeniedRequest<'c> {
    pub rejection: Rejection,
    pub note: Option<PolicyNote<'c>>,
}

/// What the policy wants to see of attachments.
pub(crate) fn attachment_policy(catalog: &Catalog) -> providers::AttachmentPolicy {
    match catalog.settings.engine.config().attachments {
        Attachments::ScanText => providers::AttachmentPolicy::ScanText,
        Attachments::Skip => providers::AttachmentPolicy::Skip,
    }
}

/// Rules, and fields that were left out, that a record names at most.
pub(crate) const MAX_NAMED: usize = PolicyNote::MAX_NAMED_RULES;

/// What a record says of a judgement.
pub fn policy_note<'c>(
    engine: &'c Engine,
    judgement: &Judgement,
    place: Option<MessageLocation>,
    redacted: bool,
) -> PolicyNote<'c> {
    let matched = judgement.matched().map(|rule| engine.rule(rule).id.as_str());
    let note = PolicyNote::from_rules(judgement.score(), matched, redacted, judgement.would_block());
    let scope = judgement.worst().map(|worst| worst.scope.as_str());
    let place = place
        .filter(|place| !place.field.is_empty())
        .map(|place| place.to_string());
    note.with_message(scope, place, judgement.is_flagged())
}

/// Names one more rule in a record, or counts it where that has no room.
pub fn add_rule<'c>(note: &mut PolicyNote<'c>, rule: Cow<'c, str>) {
    match note.rules.len() < MAX_NAMED {
        true => note.rules.push(rule),
        false => note.unnamed = note.unnamed.saturating_add(1),
    }
}

/// The same, for a record that is made after its configuration may be gone.
pub(crate) fn into_owned_note(note: PolicyNote<'_>) -> PolicyNote<'static> {
    let owned = |word: Cow<'_, str>| Cow::Owned(word.into_owned());
    PolicyNote {
        score: note.score,
        scope: note.scope.map(owned),
        message: note.message.map(owned),
        flagged: note.flagged,
        from_tool: note.from_tool.map(|from| FlaggedToolText {
            scope: owned(from.scope),
            message: from.message.map(owned),
            count: from.count,
        }),
        guarded_call: note.guarded_call.map(|call| GuardedCall {
            tool: owned(call.tool),
            verdict: call.verdict,
            approval: call.approval.map(owned),
        }),
        rules: note.rules.into_iter().map(owned).collect(),
        unnamed: note.unnamed,
        redacted: note.redacted,
        unchanged: note.unchanged,
        would_block: note.would_block,
    }
}
