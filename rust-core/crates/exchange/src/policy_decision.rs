//! The outcome of rules and policies for a request, and their note in its record.

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
use crate::rewritten_body::RewrittenBody;

/// A request that may continue.
#[derive(Default)]
pub struct AllowedRequest<'c> {
    /// The findings; `None` if no rule matched.
    pub note: Option<PolicyNote<'c>>,
    /// The body to send instead of the client's body; `None` if nothing was redacted.
    pub(crate) rewritten: Option<RewrittenBody>,
    /// The masks of rules and policies whose originals are restored in the response.
    pub(crate) masks: Option<Box<Masks>>,
    /// Number of redactions of each rule. `mask_counts` is the number of masked texts.
    pub redaction_counts: ReplacementCounts,
    pub mask_counts: ReplacementCounts,
    /// The tool texts that rules flag as instructions.
    pub(crate) tool_flags: Vec<ToolFlag>,
}

impl AllowedRequest<'_> {
    /// Writes header lines that report the replacements by rules, and the tool texts that rules
    /// flag as instructions.
    pub fn write_headers(&self, engine: &Engine, mode: Mode, extra: &mut Vec<u8>) {
        if mode == Mode::Enforce && !self.tool_flags.is_empty() {
            // The flags consist of words of the API, so they are valid in a header line.
            let flagged = flagged_header(&self.tool_flags);
            let _ = encode::write_header(extra, "x-proofgate-flagged", flagged.as_bytes());
        }
        write_counts(extra, "x-proofgate-redacted", &self.redaction_counts, engine);
        write_counts(extra, "x-proofgate-masked", &self.mask_counts, engine);
    }
}

/// Writes a header line with the number of replacements of each rule; nothing if there are none.
pub(crate) fn write_counts(extra: &mut Vec<u8>, name: &str, counts: &ReplacementCounts, engine: &Engine) {
    if !counts.is_empty() {
        // Rule ids are valid in a header line.
        let _ = encode::write_header(extra, name, counts.display(engine).to_string().as_bytes());
    }
}

/// A request that is denied.
pub struct DeniedRequest<'c> {
    pub rejection: Rejection,
    pub note: Option<PolicyNote<'c>>,
}

/// Returns the policy's setting for attachments.
pub(crate) fn attachment_policy(catalog: &Catalog) -> providers::AttachmentPolicy {
    match catalog.settings.engine.config().attachments {
        Attachments::ScanText => providers::AttachmentPolicy::ScanText,
        Attachments::Skip => providers::AttachmentPolicy::Skip,
    }
}

/// Maximum number of rules, and of dropped fields, that a record names.
pub(crate) const MAX_NAMED: usize = PolicyNote::MAX_NAMED_RULES;

/// Returns the record's note of a judgement.
pub fn policy_note<'c>(
    engine: &'c Engine,
    judgement: &Judgement,
    place: Option<MessageLocation>,
    redacted: bool,
) -> PolicyNote<'c> {
    let matched = judgement
        .matched_rules()
        .map(|rule| engine.rule(rule).id.as_str());
    let note = PolicyNote::from_rules(judgement.score(), matched, redacted, judgement.would_block());
    let scope = judgement.worst().map(|worst| worst.scope.as_str());
    let place = place
        .filter(|place| !place.field.is_empty())
        .map(|place| place.to_string());
    note.with_message(scope, place, judgement.is_flagged())
}

/// Adds a rule to a note. If the note has no room for its name, only counts the rule.
pub fn add_rule<'c>(note: &mut PolicyNote<'c>, rule: Cow<'c, str>) {
    match note.rules.len() < MAX_NAMED {
        true => note.rules.push(rule),
        false => note.unnamed = note.unnamed.saturating_add(1),
    }
}

/// Converts a note to an owned one, for a record that may outlive the note's configuration.
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
