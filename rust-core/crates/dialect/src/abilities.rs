//! What models can do, as far as that is known: what lists of models say of them.

use crate::constraints::{Constraint, Models, levels, of};

/// What a model can do; `None` is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Whether it looks at pictures.
    pub vision: Option<bool>,
    /// Whether it calls tools.
    pub tools: Option<bool>,
    /// Whether its answers keep to a schema.
    pub structured_outputs: Option<bool>,
    /// Whether it reasons before it answers.
    pub reasoning: Option<bool>,
    /// Whether it can be asked for a level of effort.
    pub effort: Option<bool>,
}

/// The levels of effort that lists name, the lowest first.
pub const EFFORTS: [&str; 6] = ["minimal", "low", "medium", "high", "xhigh", "max"];

/// What some models can do.
#[derive(Debug, Clone, Copy)]
pub struct AbilityRow {
    /// Which models.
    pub models: Models,
    /// Whether they look at pictures.
    pub vision: Option<bool>,
    /// Whether they call tools.
    pub tools: Option<bool>,
    /// Whether their answers keep to a schema.
    pub structured_outputs: Option<bool>,
    /// Where that is written; every row that says something has one.
    pub source: &'static str,
}

const fn row(models: Models, abilities: [Option<bool>; 3], source: &'static str) -> AbilityRow {
    let [vision, tools, structured_outputs] = abilities;
    AbilityRow {
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

const OF_OPENAI: &str = "developers.openai.com, Models: modalities and features of each; Structured outputs";
const OF_ANTHROPIC: &str =
    "platform.claude.com, Models overview; Vision; Structured outputs: supported models";
const OF_GOOGLE: &str = "ai.google.dev, Gemini models: capabilities of each";

/// All that is known; of two rows about a model the first one holds.
pub const ABILITY_ROWS: &[AbilityRow] = &[
    // Variants for other work, each with abilities of its own.
    row(
        Models::Variants(
            "gpt-",
            &["audio", "realtime", "search", "transcribe", "tts", "image"],
        ),
        UNKNOWN,
        "",
    ),
    row(Models::With(&["chatgpt-4o"]), UNKNOWN, ""),
    row(Models::Variants("o", &["deep", "preview"]), UNKNOWN, ""),
    row(Models::With(&["o1-mini"]), UNKNOWN, ""),
    row(
        Models::Variants(
            "gemini-",
            &["image", "tts", "live", "native", "audio", "embedding", "computer"],
        ),
        UNKNOWN,
        "",
    ),
    row(Models::With(&["gpt-4o-2024-05-13"]), [YES, YES, NO], OF_OPENAI),
    row(Models::With(&["gpt-4o", "gpt-4.1"]), [YES; 3], OF_OPENAI),
    row(Models::Between("gpt-", (5, 0), (6, 0)), [YES; 3], OF_OPENAI),
    row(Models::With(&["o3-mini"]), [NO, YES, YES], OF_OPENAI),
    row(Models::Between("o", (1, 0), (5, 0)), [YES; 3], OF_OPENAI),
    row(
        Models::With(&[
            "claude-opus-4-5",
            "claude-opus-4-6",
            "claude-opus-4-7",
            "claude-sonnet-4-5",
            "claude-sonnet-4-6",
            "claude-haiku-4-5",
        ]),
        [YES; 3],
        OF_ANTHROPIC,
    ),
    row(
        Models::With(&["claude-opus-4-1", "claude-opus-4-8"]),
        [YES, YES, None],
        OF_ANTHROPIC,
    ),
    row(
        Models::With(&[
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
        OF_ANTHROPIC,
    ),
    row(Models::Between("gemini-", (2, 5), (4, 0)), [YES; 3], OF_GOOGLE),
];

/// What is known of a model, by its name at the provider.
#[must_use]
pub fn abilities(model: &str) -> Abilities {
    let row = ABILITY_ROWS.iter().find(|row| row.models.has(model));
    let measure = of(model).find(|constraint| {
        matches!(
            constraint,
            Constraint::NoThinking | Constraint::ThinkingBudget | Constraint::EffortLevels(_)
        )
    });
    Abilities {
        vision: row.and_then(|row| row.vision),
        tools: row.and_then(|row| row.tools),
        structured_outputs: row.and_then(|row| row.structured_outputs),
        reasoning: measure.map(|measure| measure != Constraint::NoThinking),
        effort: measure.map(|measure| matches!(measure, Constraint::EffortLevels(_))),
    }
}

impl Abilities {
    /// What a model can do whose requests go to either of two.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Abilities {
            vision: both(self.vision, other.vision),
            tools: both(self.tools, other.tools),
            structured_outputs: both(self.structured_outputs, other.structured_outputs),
            reasoning: both(self.reasoning, other.reasoning),
            effort: both(self.effort, other.effort),
        }
    }
}

/// What is so of both; what is not so of one is not, whatever the other is.
fn both(one: Option<bool>, other: Option<bool>) -> Option<bool> {
    match (one, other) {
        (Some(false), _) | (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    }
}

/// The levels of effort that all of some models take, the lowest first; `None` where those of one are not known.
#[must_use]
pub fn common_efforts<'m>(models: impl IntoIterator<Item = &'m str>) -> Option<Vec<&'static str>> {
    let mut common = EFFORTS.to_vec();
    for model in models {
        let known = levels(model)?;
        common.retain(|level| known.contains(level));
    }
    Some(common)
}

#[cfg(test)]
mod tests {
    use super::{ABILITY_ROWS, Abilities, abilities, common_efforts};

    #[test]
    fn every_row_that_says_something_names_its_source() {
        for row in ABILITY_ROWS {
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
            let known = abilities(model);
            assert_eq!(
                (known.vision, known.tools, known.structured_outputs),
                (None, None, None),
                "{model}"
            );
        }
        assert_eq!(abilities("claude-opus-9"), Abilities::default());
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
            let known = abilities(model);
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
        let (gpt, unknown) = (abilities("gpt-5.1"), Abilities::default());
        assert_eq!(gpt.and(unknown), unknown);
        assert_eq!(gpt.and(abilities("o3-mini")).vision, Some(false));
        assert_eq!(abilities("o3-mini").and(unknown).vision, Some(false));
        assert_eq!(gpt.and(gpt), gpt);
        assert_eq!(
            common_efforts(["gpt-5.4", "gpt-5"]),
            Some(vec!["low", "medium", "high"])
        );
        assert_eq!(common_efforts(["gpt-5.4", "llama"]), None);
    }
}
