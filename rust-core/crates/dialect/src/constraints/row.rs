//! The rows of the table: the models of a row, and the constraint on them.

/// A constraint of a model, compared with other models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Constraint {
    /// The token limit of a response is `max_completion_tokens`; reasoning models refuse `max_tokens`.
    MaxCompletionTokens,
    /// Chat completions accept functions only with a `reasoning_effort` of `none`.
    ToolsWithoutEffort,
    /// The model also reasons when a request has no `reasoning_effort`.
    ReasonsByDefault,
    /// The model is available at OpenAI's `/v1/responses`, but not in chat completions.
    ResponsesOnly,
    /// The model accepts only these effort levels, the lowest first.
    EffortLevels(&'static [&'static str]),
    /// The model has no effort levels; thinking is set as a number of tokens.
    ThinkingBudget,
    /// The model has neither thinking nor effort.
    NoThinking,
    /// The model refuses a function call of the current turn without its thought signature.
    SignedCalls,
    /// The model accepts either a `temperature` or a `top_p`, but not both.
    OneOfTemperatureAndTopP,
    /// The model accepts only default sampling.
    DefaultSampling,
    /// The model has no stop sequences.
    NoStop,
    /// The model accepts neither `frequency_penalty` nor `presence_penalty`.
    NoPenalties,
}

/// The models of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelMatcher {
    /// Models whose name contains one of these parts, not followed by a digit.
    Containing(&'static [&'static str]),
    /// Models whose name begins with a series and a version of at least this one (major, minor).
    SinceVersion(&'static str, (u32, u32)),
    /// Models with a version from the first (inclusive) to the second (exclusive), except chat
    /// models, which do not reason.
    VersionRange(&'static str, (u32, u32), (u32, u32)),
    /// Models whose name begins with a series and a version, followed by one of these words between hyphens.
    Variants(&'static str, &'static [&'static str]),
}

/// A fact about some models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConstraintRow {
    /// The models.
    pub models: ModelMatcher,
    /// The constraint.
    pub constraint: Constraint,
    /// The place where the fact is documented or was observed.
    pub source: &'static str,
}

impl ModelMatcher {
    pub fn matches(self, model: &str) -> bool {
        match self {
            ModelMatcher::Containing(parts) => parts.iter().any(|part| contains_part(model, part)),
            ModelMatcher::SinceVersion(series, least) => {
                version(model, series).is_some_and(|version| version >= least)
            }
            ModelMatcher::VersionRange(series, least, end) => {
                let is_between = |version: (u32, u32)| version >= least && version < end;
                !model.contains("-chat") && version(model, series).is_some_and(is_between)
            }
            ModelMatcher::Variants(series, words) => {
                let mut own = model.split(['-', ':', '/']);
                version(model, series).is_some() && own.any(|word| words.contains(&word))
            }
        }
    }
}

fn contains_part(model: &str, part: &str) -> bool {
    let ends_there = |at: usize| {
        let behind = model.get(at + part.len()..).and_then(|rest| rest.chars().next());
        // A series (`gemini-2`) continues with a point or a hyphen.
        !behind.is_some_and(|char| char.is_ascii_digit())
    };
    model.match_indices(part).any(|(at, _)| ends_there(at))
}

/// Returns the version in a name such as `openai/gpt-5.4-mini` or `ft:gpt-4o:org`, if it is of this series.
fn version(model: &str, series: &str) -> Option<(u32, u32)> {
    let name = model.rsplit('/').next().unwrap_or(model);
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let rest = name.strip_prefix(series)?;
    let (major, rest) = parse_number(rest)?;
    let minor = rest
        .strip_prefix('.')
        .and_then(parse_number)
        .map_or(0, |(minor, _)| minor);
    Some((major, minor))
}

fn parse_number(text: &str) -> Option<(u32, &str)> {
    let end = text
        .find(|char: char| !char.is_ascii_digit())
        .unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}
