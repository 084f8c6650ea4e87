//! What the rules say about each message of a request, for people.

use proofgate_policy::{Budget, Decision, Engine, Fault, Match, MessageJudgement, Profile, Scope, Scratch};
use proofgate_providers::{BodyText, MessagePlace};

use crate::request::{RequestInspection, RequestVerdict};

/// What the rules say about one message in which something matched.
#[derive(Debug)]
pub struct MessageVerdict {
    /// Where it stands.
    pub place: MessagePlace,
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
/// [`Fault`] when there is no result.
pub fn explain_request(
    engine: &Engine,
    profile: &Profile,
    text: &BodyText,
    scratch: &mut Scratch,
) -> Result<(RequestVerdict, Vec<MessageVerdict>), Fault> {
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
            judged.note(profile, scope, found.rule);
        }
        judged.count(engine, profile, scope, &matches);
        MessageVerdict {
            place: text.place_of(message).unwrap_or(MessagePlace::UNNAMED),
            scope,
            score: judged.score(),
            decision: judged.if_enforced(profile),
            is_tool_flag: verdict.tool_flags.iter().any(|flag| flag.message == message),
            matches,
        }
    });
    let explained = explained.collect();
    Ok((verdict, explained))
}
