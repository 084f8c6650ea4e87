//! Known capabilities of models, as reported in model lists.

use crate::constraints::{Constraint, ModelMatcher, constraints_for_model, effort_levels};

/// The capabilities of a model; `None` means unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether it accepts images.
    pub vision: Option<bool>,
    /// Whether it supports tool calls.
    pub tools: Option<bool>,
    /// Whether its responses can be constrained by a schema.
    pub structured_outputs: Option<bool>,
    /// Whether it reasons before it responds.
    pub reasoning: Option<bool>,
    /// Whether it supports effort levels.
    pub effort: Option<bool>,
}

/// The effort levels that model lists report, the lowest first.
pub const EFFORTS: [&str; 6] = ["minimal", "low", "medium", "high", "xhigh", "max"];

/// Capabilities of some models.
#[derive(Debug, Clone, Copy)]
pub struct CapabilityRow {
    /// The models.
    pub models: ModelMatcher,
    /// Whether they accept images.
    pub vision: Option<bool>,
    /// Whether they support tool calls.
    pub tools: Option<bool>,
    /// Whether their responses can be constrained by a schema.
    pub structured_outputs: Option<bool>,
    /// The documentation of the values; every row with a value has a source.
    pub source: &'static str,
}

const fn row(models: ModelMatcher, abilities: [Option<bool>; 3], source: &'static str) -> CapabilityRow {
    let [vision, tools, structured_outputs] = abilities;
    CapabilityRow {
        models,
        vision,
        tools,
        structured_outputs,
        source,
    }
}

const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);
const UNKNOWN: [Option<bool>; 3] = [None; 3];

const OPENAI_SOURCE: &str =
    "developers.openai.com, Models (modalities and features of each model), Structured outputs";
const ANTHROPIC_SOURCE: &str =
    "platform.claude.com, Models overview; Vision; Structured outputs: supported models";
const GOOGLE_SOURCE: &str = "ai.google.dev, Gemini models (capabilities of each model)";

/// All known capabilities. If two rows match a model, the first one applies.
pub const CAPABILITY_ROWS: &[CapabilityRow] = &[
    // Variants for other purposes, each with its own capabilities.
    row(
        ModelMatcher::Variants(
            "gpt-",
            &["audio", "realtime", "search", "transcribe", "tts", "image"],
        ),
        UNKNOWN,
        "",
    ),
    row(ModelMatcher::Containing(&["chatgpt-4o"]), UNKNOWN, ""),
    row(ModelMatcher::Variants("o", &["deep", "preview"]), UNKNOWN, ""),
    row(ModelMatcher::Containing(&["o1-mini"]), UNKNOWN, ""),
    row(
        ModelMatcher::Variants(
            "gemini-",
            &["image", "tts", "live", "native", "audio", "embedding", "computer"],
        ),
        UNKNOWN,
        "",
    ),
    row(
        ModelMatcher::Containing(&["gpt-4o-2024-05-13"]),
        [YES, YES, NO],
        OPENAI_SOURCE,
    ),
    row(
        ModelMatcher::Containing(&["gpt-4o", "gpt-4.1"]),
        [YES; 3],
        OPENAI_SOURCE,
    ),
    row(
        ModelMatcher::VersionRange("gpt-", (5, 0), (6, 0)),
        [YES; 3],
        OPENAI_SOURCE,
    ),
    row(
        ModelMatcher::Containing(&["o3-mini"]),
        [NO, YES, YES],
        OPENAI_SOURCE,
    ),
    row(
        ModelMatcher::VersionRange("o", (1, 0), (5, 0)),
        [YES; 3],
        OPENAI_SOURCE,
    ),
    row(
        ModelMatcher::Containing(&[
            "claude-opus-4-5",
            "claude-opus-4-6",
            "claude-opus-4-7",
            "claude-sonnet-4-5",
            "claude-sonnet-4-6",
            "claude-haiku-4-5",
        ]),
        [YES; 3],
        ANTHROPIC_SOURCE,
    ),
    row(
        ModelMatcher::Containing(&["claude-opus-4-1", "claude-opus-4-8"]),
        [YES, YES, None],
        ANTHROPIC_SOURCE,
    ),
    row(
        ModelMatcher::Containing(&[
            "claude-opus-4-0",
            "claude-opus-4-20250514",
            "claude-opus-4@20250514",
            "claude-sonnet-4-0",
            "claude-sonnet-4-20250514",
            "claude-sonnet-4@20250514",
            "claude-3-7-sonnet",
            "claude-3-5-sonnet",
            "claude-3-opus",
            "claude-3-sonnet",
            "claude-3-haiku",
        ]),
        [YES, YES, NO],
        ANTHROPIC_SOURCE,
    ),
    row(
        ModelMatcher::VersionRange("gemini-", (2, 5), (4, 0)),
        [YES; 3],
        GOOGLE_SOURCE,
    ),
];

/// Returns the known capabilities of a model, by its name at the provider.
#[must_use]
pub fn capabilities(model: &str) -> Capabilities {
    let row = CAPABILITY_ROWS.iter().find(|row| row.models.matches(model));
    let measure = constraints_for_model(model).find(|constraint| {
        matches!(
            constraint,
            Constraint::NoThinking | Constraint::ThinkingBudget | Constraint::EffortLevels(_)
        )
    });
    Capabilities {
        vision: row.and_then(|row| row.vision),
        tools: row.and_then(|row| row.tools),
        structured_outputs: row.and_then(|row| row.structured_outputs),
        reasoning: measure.map(|measure| measure != Constraint::NoThinking),
        effort: measure.map(|measure| matches!(measure, Constraint::EffortLevels(_))),
    }
}

impl Capabilities {
    /// Returns the capabilities of a model whose requests may go to either of two models.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        Capabilities {
            vision: both_support(self.vision, other.vision),
            tools: both_support(self.tools, other.tools),
            structured_outputs: both_support(self.structured_outputs, other.structured_outputs),
            reasoning: both_support(self.reasoning, other.reasoning),
            effort: both_support(self.effort, other.effort),
        }
    }
}

/// Returns whether both support it; if one model does not, the result is `false` even if the other
/// is unknown.
fn both_support(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// Returns the effort levels that all these models accept, the lowest first; `None` if the levels
/// of any model are unknown.
#[must_use]
pub fn common_efforts<'m>(models: impl IntoIterator<Item = &'m str>) -> Option<Vec<&'static str>> {
    let mut common = EFFORTS.to_vec();
    for model in models {
        let known = effort_levels(model)?;
        common.retain(|level| known.contains(level));
    }
    Some(common)
}

#[cfg(test)]
mod tests {
    use super::{CAPABILITY_ROWS, Capabilities, capabilities, common_efforts};

    #[test]
    fn every_row_that_says_something_names_its_source() {
        for row in CAPABILITY_ROWS {
            let says = [row.vision, row.tools, row.structured_outputs]
                .iter()
                .any(Option::is_some);
            assert_eq!(says, row.source.len() > 10);
        }
    }

    #[test]
    fn what_is_not_known_of_a_model_is_not_said() {
        for model in [
            "llama-4-70b",
            "my-gpt-5",
            "gpt-4o-audio-preview",
            "gemini-2.5-flash-image",
            "",
        ] {
            let known = capabilities(model);
            assert_eq!(
                (known.vision, known.tools, known.structured_outputs),
                (None, None, None),
                "{model}"
            );
        }
        assert_eq!(capabilities("claude-opus-9"), Capabilities::default());
    }

    #[test]
    fn what_is_known_of_models_of_each_house_is_said() {
        for (model, vision, structured, reasoning, effort) in [
            ("gpt-5.4-mini", Some(true), Some(true), Some(true), Some(true)),
            ("gpt-4o", Some(true), Some(true), Some(false), Some(false)),
            ("o3-mini", Some(false), Some(true), Some(true), Some(true)),
            (
                "us.anthropic.claude-opus-4-5-20251101-v1:0",
                Some(true),
                Some(true),
                Some(true),
                Some(true),
            ),
            (
                "claude-haiku-4-5-20251001",
                Some(true),
                Some(true),
                Some(true),
                Some(false),
            ),
            (
                "claude-3-haiku-20240307",
                Some(true),
                Some(false),
                Some(false),
                Some(false),
            ),
            (
                "gemini-3-pro-preview",
                Some(true),
                Some(true),
                Some(true),
                Some(true),
            ),
        ] {
            let known = capabilities(model);
            assert_eq!(known.tools, Some(true), "{model}");
            assert_eq!(
                (
                    known.vision,
                    known.structured_outputs,
                    known.reasoning,
                    known.effort
                ),
                (vision, structured, reasoning, effort),
                "{model}"
            );
        }
    }

    #[test]
    fn of_two_models_holds_what_holds_of_both() {
        let (gpt, unknown) = (capabilities("gpt-5.1"), Capabilities::default());
        assert_eq!(gpt.intersect(unknown), unknown);
        assert_eq!(gpt.intersect(capabilities("o3-mini")).vision, Some(false));
        assert_eq!(capabilities("o3-mini").intersect(unknown).vision, Some(false));
        assert_eq!(gpt.intersect(gpt), gpt);
        assert_eq!(
            common_efforts(["gpt-5.4", "gpt-5"]),
            Some(vec!["low", "medium", "high"])
        );
        assert_eq!(common_efforts(["gpt-5.4", "llama"]), None);
    }
}
