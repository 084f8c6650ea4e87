//! What the rules say about each message of a request, for people.

use proofgate_policy::{
    Budget, Decision, Engine, EvaluationError, Match, MessageJudgement, Profile, Scope, Scratch,
};
use proofgate_providers::{BodyText, MessageLocation};

use crate::request::{RequestInspection, RequestVerdict};

/// What the rules say about one message in which something matched.
#[derive(Debug)]
pub struct MessageVerdict {
    /// Where it stands.
    pub location: MessageLocation,
    /// What it is.
    pub scope: Scope,
    /// Its score.
    pub score: u32,
    /// What is decided of it, as an enforced policy carries it out.
    pub decision: Option<Decision>,
    /// Whether it is a text of a tool that is flagged as instructions.
    pub is_tool_flag: bool,
    /// What matched and ends in it, with offsets in the text of the request.
    pub matches: Vec<Match>,
}

/// Judges a request as [`inspect_request`](crate::inspect_request) does without a budget, and says what became of each message
/// in which something matched.
///
/// # Errors
/// [`EvaluationError`] when there is no result.
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
