//! The results of the rules for each message of a request, for human readers.

use proofgate_policy::{
    Budget, Decision, Engine, EvaluationError, Match, MessageJudgement, Profile, Scope, Scratch,
};
use proofgate_providers::{BodyText, MessageLocation};

use crate::request::{RequestInspection, RequestVerdict};

/// The result for one message with a match.
#[derive(Debug)]
pub struct MessageVerdict {
    /// The location of the message in the request.
    pub location: MessageLocation,
    /// The scope of the message.
    pub scope: Scope,
    /// The score of the message.
    pub score: u32,
    /// The decision for it under an enforced policy.
    pub decision: Option<Decision>,
    /// Whether it is a text of a tool that is flagged as instructions.
    pub is_tool_flag: bool,
    /// The matches that end in it, with offsets in the text of the request.
    pub matches: Vec<Match>,
}

/// Judges a request like [`inspect_request`](crate::inspect_request), without a budget, and returns the result for each
/// message with a match.
///
/// # Errors
/// [`EvaluationError`] if there is no result.
pub fn explain_request(
    engine: &Engine,
    profile: &Profile,
    text: &BodyText,
    scratch: &mut Scratch,
) -> Result<(RequestVerdict, Vec<MessageVerdict>), EvaluationError> {
    let mut inspection = RequestInspection::new(Budget::unlimited());
    let verdict = loop {
        let step = inspection.step(engine, profile, text, std::time::Duration::MAX, scratch)?;
        if let Some(verdict) = step {
            break verdict;
        }
    };
    let explained = inspection.messages().map(|(message, scope, matches)| {
        let mut judged = MessageJudgement::default();
        for found in &matches {
            judged.record(profile, scope, found.rule);
        }
        judged.count(engine, profile, scope, &matches);
        MessageVerdict {
            location: text.message_location(message).unwrap_or(MessageLocation::UNKNOWN),
            scope,
            score: judged.score(),
            decision: judged.enforced_decision(profile),
            is_tool_flag: verdict.tool_flags.iter().any(|flag| flag.message == message),
            matches,
        }
    });
    let explained = explained.collect();
    Ok((verdict, explained))
}
