//! Constraints of models: what a model refuses, and what it accepts instead, with one row per fact
//! and its source. Writers use it to translate a request so that the model accepts it. A model
//! without a row accepts everything.

mod hosts;
mod row;
mod table;

pub use hosts::lacks_responses_api;
pub use row::{Constraint, ConstraintRow, ModelMatcher};
pub use table::ROWS;

/// Returns the rows about a model, by its name at the provider. If two rows are about the same
/// property, the first one applies.
pub fn constraint_rows(model: &str) -> impl Iterator<Item = &'static ConstraintRow> {
    ROWS.iter().filter(move |row| row.models.matches(model))
}

/// Returns the known constraints of a model, by its name at the provider.
pub fn constraints_for_model(model: &str) -> impl Iterator<Item = Constraint> {
    constraint_rows(model).map(|row| row.constraint)
}

/// Whether a model is known to have a constraint.
#[must_use]
pub fn has_constraint(model: &str, constraint: Constraint) -> bool {
    // Most rows are about other constraints, and comparing those is cheaper than matching a name.
    let mut rows = ROWS.iter().filter(|row| row.constraint == constraint);
    rows.any(|row| row.models.matches(model))
}

/// The form in which a model expresses an effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort<'e> {
    /// This level: the requested level, or the highest level below it that the model has.
    Level(&'e str),
    /// This number of thinking tokens.
    Budget(u64),
    /// The model has no effort setting.
    Unsupported,
}

/// OpenAI's levels, the lowest first, each with an equivalent number of thinking tokens.
const LEVELS: [(&str, u64); 6] = [
    ("minimal", 1024),
    ("low", 1024),
    ("medium", 4096),
    ("high", 16_384),
    ("xhigh", 24_576),
    ("max", 32_768),
];

/// Returns how a model expresses one of OpenAI's effort levels; `None` for an unknown level.
#[must_use]
pub fn effort_for_level<'e>(model: &str, level: &'e str) -> Option<Effort<'e>> {
    let at = LEVELS.iter().position(|(name, _)| *name == level)?;
    for constraint in constraints_for_model(model) {
        match constraint {
            Constraint::NoThinking => return Some(Effort::Unsupported),
            Constraint::ThinkingBudget => return Some(Effort::Budget(LEVELS[at].1)),
            Constraint::EffortLevels(levels) => {
                return Some(Effort::Level(nearest_level(levels, level)));
            }
            _ => {}
        }
    }
    Some(Effort::Level(level))
}

/// Returns the level of a model for one of OpenAI's levels: the same level, else the highest level
/// below it, else the lowest level.
#[must_use]
pub fn nearest_level<'e>(levels: &[&'e str], level: &'e str) -> &'e str {
    let at = LEVELS.iter().position(|(name, _)| *name == level);
    let below = LEVELS.iter().take(at.map_or(0, |at| at + 1)).rev();
    let known = below.filter_map(|(name, _)| levels.iter().find(|known| *known == name));
    known.copied().next().or(levels.first().copied()).unwrap_or(level)
}

/// Returns the effort levels that a model is known to accept, the lowest first.
#[must_use]
pub fn effort_levels(model: &str) -> Option<&'static [&'static str]> {
    ROWS.iter().find_map(|row| match row.constraint {
        Constraint::EffortLevels(levels) if row.models.matches(model) => Some(levels),
        _ => None,
    })
}

/// Returns the effort level for a number of thinking tokens: the highest level that is worth no more.
#[must_use]
pub fn effort_for_budget(model: &str, budget: u64) -> &'static str {
    let within = LEVELS.iter().rev().find(|(_, tokens)| *tokens <= budget);
    let level = within.map_or("low", |(level, _)| level);
    nearest_level(effort_levels(model).unwrap_or(&["low", "medium", "high"]), level)
}

/// Whether a request in another dialect than Responses must be sent to one of OpenAI's own models as `/v1/responses`,
/// because chat completions refuse its functions together with `effort` (`None` is the model's default), or do not
/// have the model.
#[must_use]
pub fn model_requires_responses_api(model: &str, has_tools: bool, effort: Option<&str>) -> bool {
    let refuses_tools = || {
        has_constraint(model, Constraint::ToolsWithoutEffort)
            && match effort {
                Some(effort) => effort != "none",
                None => has_constraint(model, Constraint::ReasonsByDefault),
            }
    };
    has_constraint(model, Constraint::ResponsesOnly) || (has_tools && refuses_tools())
}

/// Minimum number of thinking tokens that a Claude model accepts.
pub const MIN_THINKING_BUDGET: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::{
        Constraint, Effort, ROWS, effort_for_budget, effort_for_level, has_constraint,
        model_requires_responses_api,
    };

    #[test]
    fn every_row_names_its_source() {
        assert!(ROWS.iter().all(|row| row.source.len() > 10));
    }

    #[test]
    fn a_version_is_compared_by_its_numbers() {
        let tools = |model| has_constraint(model, Constraint::ToolsWithoutEffort);
        for model in [
            "gpt-5.4",
            "gpt-5.4-mini",
            "openai/gpt-5.10",
            "gpt-6",
            "ft:gpt-5.6:org",
        ] {
            assert!(tools(model), "{model}");
        }
        for model in [
            "gpt-5",
            "gpt-5.3",
            "gpt-4.5-preview",
            "gpt-oss-120b",
            "my-gpt-5.4",
            "o3",
            "",
        ] {
            assert!(!tools(model), "{model}");
        }
    }

    #[test]
    fn a_model_that_no_row_names_takes_every_level() {
        for level in ["low", "medium", "high", "xhigh", "max"] {
            assert_eq!(
                effort_for_level("claude-opus-9", level),
                Some(Effort::Level(level))
            );
        }
        assert_eq!(effort_for_level("claude-opus-9", "huge"), None);
    }

    #[test]
    fn a_level_that_a_model_has_not_becomes_the_one_below() {
        let bedrock = "us.anthropic.claude-opus-4-5-20251101-v1:0";
        assert_eq!(effort_for_level(bedrock, "max"), Some(Effort::Level("high")));
        assert_eq!(
            effort_for_level("claude-opus-4-6", "xhigh"),
            Some(Effort::Level("high"))
        );
        assert_eq!(
            effort_for_level("claude-opus-4-6", "max"),
            Some(Effort::Level("max"))
        );
        assert_eq!(
            effort_for_level("claude-haiku-4-5-20251001", "high"),
            Some(Effort::Budget(16_384))
        );
        assert_eq!(
            effort_for_level("claude-3-haiku-20240307", "high"),
            Some(Effort::Unsupported)
        );
    }

    #[test]
    fn chat_requests_reach_openais_own_models_by_responses_where_chat_completions_refuse_them() {
        for (model, tools, effort) in [
            ("gpt-5.4", true, Some("low")),
            ("gpt-5.4-mini", true, Some("xhigh")),
            ("gpt-5.5", true, None),
            ("gpt-5.6-terra", true, None),
            ("openai/gpt-6", true, Some("high")),
            ("gpt-5-codex", false, None),
            ("gpt-5.1-codex-mini", false, None),
            ("codex-mini-latest", false, None),
            ("o3-pro-2025-06-10", false, None),
            ("gpt-5.4-pro", false, Some("none")),
            ("o4-mini-deep-research", false, None),
        ] {
            assert!(model_requires_responses_api(model, tools, effort), "{model}");
        }
        for (model, tools, effort) in [
            ("gpt-5.4", true, None),
            ("gpt-5.4", true, Some("none")),
            ("gpt-5.6-terra", true, Some("none")),
            ("gpt-5.6-terra", false, Some("high")),
            ("gpt-5.2", true, Some("high")),
            ("gpt-4o", true, None),
            ("gemini-3-pro", true, Some("high")),
            ("deepseek-reasoner", true, None),
        ] {
            assert!(!model_requires_responses_api(model, tools, effort), "{model}");
        }
    }

    #[test]
    fn a_budget_of_thought_is_the_highest_effort_that_costs_no_more() {
        assert_eq!(effort_for_budget("gpt-5.6", 31_999), "xhigh");
        assert_eq!(effort_for_budget("gpt-5.1", 31_999), "high");
        assert_eq!(effort_for_budget("gpt-9", 4096), "medium");
        assert_eq!(effort_for_budget("o3", 1), "low");
    }
}
