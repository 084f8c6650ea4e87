//! A row of the table: which models it is about, and what they do not take.

/// One thing that a model does not take as others do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub enum Constraint {
    /// The limit of an answer is `max_completion_tokens`; reasoning models refuse `max_tokens`.
    MaxCompletionTokens,
    /// In chat completions it takes functions only with a `reasoning_effort` of `none`.
    ToolsWithoutEffort,
    /// It reasons where a request names no `reasoning_effort`, too.
    ReasonsByDefault,
    /// It exists at OpenAI's `/v1/responses` and not in chat completions.
    ResponsesOnly,
    /// It takes these levels of effort only, the lowest first.
    EffortLevels(&'static [&'static str]),
    /// It has no effort: how much it thinks is a number of tokens.
    ThinkingBudget,
    /// It neither thinks nor has an effort.
    NoThinking,
    /// It refuses a function call of the turn at hand that lacks its thought signature.
    SignedCalls,
    /// It takes a `temperature` or a `top_p`, and not both.
    OneOfTemperatureAndTopP,
    /// It takes no sampling but the default one.
    DefaultSampling,
    /// It does not stop at texts.
    NoStop,
    /// It takes no `frequency_penalty` and no `presence_penalty`.
    NoPenalties,
}

/// The models of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelMatcher {
    /// Those whose name has one of these parts, no digit behind it.
    Containing(&'static [&'static str]),
    /// Those whose name begins with a series and a version of at least this one (major, minor).
    SinceVersion(&'static str, (u32, u32)),
    /// Those with a version of at least the first and below the second, except chat models, which do not reason.
    VersionRange(&'static str, (u32, u32), (u32, u32)),
    /// Those whose name begins with a series and a version, and has one of these words behind it, between hyphens.
    Variants(&'static str, &'static [&'static str]),
}

/// A fact about some models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConstraintRow {
    /// Which models.
    pub models: ModelMatcher,
    /// What they do not take.
    pub constraint: Constraint,
    /// Where that is written or was seen.
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

/// The version in a name such as `openai/gpt-5.4-mini` or `ft:gpt-4o:org`, if it is of this series.
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
