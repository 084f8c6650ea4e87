//! The table of known constraints, with sources.

use super::row::{Constraint, ConstraintRow, ModelMatcher};

const fn row(models: ModelMatcher, constraint: Constraint, source: &'static str) -> ConstraintRow {
    ConstraintRow {
        models,
        constraint,
        source,
    }
}

const EFFORT_SOURCE: &str = "platform.claude.com, Effort: supported models and levels";
const OPENAI_LEVELS_SOURCE: &str = "developers.openai.com, Models (reasoning efforts of each model), anomalyco/models.dev#2351, anomalyco/opencode#4451";
const SIGNATURES_SOURCE: &str =
    "ai.google.dev, Thought signatures: model behavior; FAQ about tool calls of other models";

/// All known constraints.
pub const ROWS: &[ConstraintRow] = &[
    row(
        ModelMatcher::SinceVersion("gpt-", (0, 0)),
        Constraint::MaxCompletionTokens,
        "OpenAI's API reference, Chat Completions: max_tokens is deprecated, and refused by reasoning models",
    ),
    row(
        ModelMatcher::SinceVersion("o", (1, 0)),
        Constraint::MaxCompletionTokens,
        "OpenAI's API reference, Chat Completions: max_tokens is refused by o-series models",
    ),
    row(
        ModelMatcher::Containing(&["chatgpt-4o-latest", "chatgpt-4o"]),
        Constraint::MaxCompletionTokens,
        "OpenAI's API reference, Chat Completions: max_tokens is deprecated",
    ),
    row(
        ModelMatcher::SinceVersion("gpt-", (5, 4)),
        Constraint::ToolsWithoutEffort,
        "openai/openai-openapi#541, pipecat-ai/pipecat#4043: Function tools with reasoning_effort are not supported",
    ),
    row(
        ModelMatcher::SinceVersion("gpt-", (5, 5)),
        Constraint::ReasonsByDefault,
        "jeffdafoe/llm-memory-api#178 (5.5), BerriAI/litellm#34569 (5.6): a request with tools is refused without reasoning_effort, and accepted with reasoning_effort none",
    ),
    row(
        ModelMatcher::Variants("gpt-", &["codex", "pro"]),
        Constraint::ResponsesOnly,
        "developers.openai.com, Models: endpoints; alvinunreal/tmuxai#82: only supported in v1/responses",
    ),
    row(
        ModelMatcher::Variants("o", &["pro", "deep"]),
        Constraint::ResponsesOnly,
        "developers.openai.com, Models: endpoints; Deep research; aaif-goose/goose#2564 (o3-pro)",
    ),
    row(
        ModelMatcher::Containing(&["codex-mini-latest", "computer-use-preview"]),
        Constraint::ResponsesOnly,
        "aaif-goose/goose#2564: only supported in v1/responses; developers.openai.com, Computer use",
    ),
    row(
        ModelMatcher::VersionRange("gpt-", (3, 0), (5, 0)),
        Constraint::NoThinking,
        "developers.openai.com, Models: gpt-4 and before do not reason",
    ),
    row(
        ModelMatcher::VersionRange("o", (1, 0), (9, 0)),
        Constraint::EffortLevels(&["low", "medium", "high"]),
        OPENAI_LEVELS_SOURCE,
    ),
    row(
        ModelMatcher::VersionRange("gpt-", (5, 0), (5, 1)),
        Constraint::EffortLevels(&["minimal", "low", "medium", "high"]),
        OPENAI_LEVELS_SOURCE,
    ),
    row(
        ModelMatcher::VersionRange("gpt-", (5, 1), (5, 2)),
        Constraint::EffortLevels(&["low", "medium", "high"]),
        OPENAI_LEVELS_SOURCE,
    ),
    row(
        ModelMatcher::VersionRange("gpt-", (5, 2), (6, 0)),
        Constraint::EffortLevels(&["low", "medium", "high", "xhigh"]),
        OPENAI_LEVELS_SOURCE,
    ),
    row(
        ModelMatcher::VersionRange("o", (1, 0), (9, 0)),
        Constraint::DefaultSampling,
        "developers.openai.com, Reasoning: temperature and top_p are not supported",
    ),
    row(
        ModelMatcher::VersionRange("gpt-", (5, 0), (5, 1)),
        Constraint::DefaultSampling,
        "developers.openai.com, Using GPT-5: temperature and top_p are not supported; langchain-ai/langchain#35424",
    ),
    row(
        ModelMatcher::VersionRange("o", (3, 0), (9, 0)),
        Constraint::NoStop,
        "OpenAI's API reference, Chat Completions: stop is not supported with o3 and o4-mini",
    ),
    row(
        ModelMatcher::Containing(&[
            "claude-opus-4-1",
            "claude-opus-4-5",
            "claude-opus-4-6",
            "claude-sonnet-4-5",
            "claude-sonnet-4-6",
            "claude-haiku-4-5",
        ]),
        Constraint::OneOfTemperatureAndTopP,
        "open-webui/pipelines#546, comet-ml/opik#3728, SalesforceAIResearch/MCP-Universe#49, Vali-98/ChatterUI#564",
    ),
    row(
        ModelMatcher::Containing(&["claude-opus-4-7", "claude-opus-4-8"]),
        Constraint::DefaultSampling,
        "platform.claude.com, What's new in Claude 4.7: sampling parameters removed; The-PR-Agent/pr-agent#2458",
    ),
    row(
        ModelMatcher::Containing(&["claude-opus-4-5"]),
        Constraint::EffortLevels(&["low", "medium", "high"]),
        EFFORT_SOURCE,
    ),
    row(
        ModelMatcher::Containing(&["claude-opus-4-6", "claude-sonnet-4-6"]),
        Constraint::EffortLevels(&["low", "medium", "high", "max"]),
        EFFORT_SOURCE,
    ),
    row(
        ModelMatcher::Containing(&[
            "claude-haiku-4-5",
            "claude-sonnet-4-5",
            "claude-opus-4-1",
            "claude-opus-4-0",
            "claude-opus-4-20250514",
            "claude-opus-4@20250514",
            "claude-sonnet-4-0",
            "claude-sonnet-4-20250514",
            "claude-sonnet-4@20250514",
            "claude-3-7-sonnet",
        ]),
        Constraint::ThinkingBudget,
        "platform.claude.com, Extended thinking; Oaklight/llm-rosetta#289, oratis/LISA#218: effort is refused",
    ),
    row(
        ModelMatcher::Containing(&[
            "claude-3-5-sonnet",
            "claude-3-5-haiku",
            "claude-3-opus",
            "claude-3-sonnet",
            "claude-3-haiku",
        ]),
        Constraint::NoThinking,
        "platform.claude.com, Extended thinking: supported models",
    ),
    row(
        ModelMatcher::VersionRange("gemini-", (1, 0), (2, 5)),
        Constraint::NoThinking,
        "googleapis/js-genai#681: thinking is not supported by this model; lobehub/lobehub#7985 (2.0)",
    ),
    row(
        ModelMatcher::Containing(&["gemini-2"]),
        Constraint::ThinkingBudget,
        "ai.google.dev, Thinking: levels and budgets",
    ),
    row(
        ModelMatcher::Containing(&["gemini-3-pro"]),
        Constraint::EffortLevels(&["low", "high"]),
        "ai.google.dev, Thinking levels; jenslys/opencode-gemini-auth#14, heyhuynhgiabuu/proxypal#170",
    ),
    row(
        ModelMatcher::Containing(&["gemini-3.1-pro"]),
        Constraint::EffortLevels(&["low", "medium", "high"]),
        "ai.google.dev, Thinking levels; langchain-ai/langchainjs#10101",
    ),
    row(
        ModelMatcher::VersionRange("gemini-", (3, 0), (4, 0)),
        Constraint::EffortLevels(&["minimal", "low", "medium", "high"]),
        "ai.google.dev, Thinking levels; withceleste/celeste-python#292",
    ),
    row(
        ModelMatcher::VersionRange("gemini-", (2, 5), (4, 0)),
        Constraint::NoPenalties,
        "google-gemini/cookbook#1290, vercel/ai#8943: Penalty is not enabled for this model",
    ),
    row(
        ModelMatcher::SinceVersion("gemini-", (3, 0)),
        Constraint::SignedCalls,
        SIGNATURES_SOURCE,
    ),
    row(
        ModelMatcher::Containing(&[
            "gemini-pro-latest",
            "gemini-flash-latest",
            "gemini-flash-lite-latest",
        ]),
        Constraint::SignedCalls,
        SIGNATURES_SOURCE,
    ),
];
