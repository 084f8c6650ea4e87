//! A rule as it is written, in a pack (TOML) or in the configuration (JSON), with the same fields and words.

use serde::Deserialize;

use crate::FalsePositiveRate;

/// What a rule does where it matches; ordered from mild to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum Action {
    /// The rule does not look there.
    Ignore,
    /// It is reported, and counts for the score of its message.
    Flag,
    /// Of a request, the matched text is replaced by a placeholder, which is put back in the answer. Of an answer, it is
    /// reported.
    Mask,
    /// The matched text is replaced.
    Redact,
    /// The exchange is denied.
    Block,
}

/// Which direction of an exchange a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Target {
    /// Prompts.
    Request,
    /// Answers.
    Response,
    /// Both.
    #[default]
    Both,
}

/// One direction of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the provider.
    Request,
    /// From the provider to the client.
    Response,
}

impl Target {
    /// Whether a rule with this target takes part in `direction`.
    #[must_use]
    pub fn includes(self, direction: Direction) -> bool {
        matches!(
            (self, direction),
            (Self::Both, _) | (Self::Request, Direction::Request) | (Self::Response, Direction::Response)
        )
    }
}

/// Which copy of a text a regex runs over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum View {
    /// The text itself.
    Text,
    /// The normalised copy: lower case, look-alikes replaced, white space as one blank, invisible characters and markup
    /// inside words left out.
    #[default]
    Folded,
}

/// How far what is replaced reaches: `SEMANTICS.md` says it exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Extent {
    /// What matched, or the group `value` of it.
    #[default]
    Match,
    /// In a request, also what follows of a private key that it has found the beginning of.
    PrivateKey,
    /// Also the rest of a token that is longer than the rule can match.
    Token,
}

/// Texts that a rule is tried on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Examples {
    /// The rule matches each of these.
    #[serde(rename = "match")]
    pub matching: Vec<String>,
    /// The rule matches none of these.
    pub no_match: Vec<String>,
}

/// A rule as it is written. `SEMANTICS.md` says what it matches.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleSpec {
    /// Kebab-case; unique over all packs and the user's rules.
    pub id: String,
    /// One sentence for the client, without any matched text.
    pub reason: String,
    /// Which direction it looks at.
    #[serde(default)]
    pub target: Target,
    /// Which copy of the text its regex runs over.
    #[serde(default)]
    pub view: View,
    /// Without a regex: what it matches. With one: a match counts only if it contains one of these.
    #[serde(default)]
    pub literals: Vec<String>,
    /// What it matches.
    #[serde(default)]
    pub regex: Option<String>,
    /// The name of a further condition on the matched text.
    #[serde(default)]
    pub check: Option<String>,
    /// How far what is replaced reaches where it matches.
    #[serde(default)]
    pub extent: Extent,
    /// Instead of a regex and literals, in a built-in pack: it matches parts of a text whose linear score is at least what
    /// this share of honest texts reaches. Such a rule flags a request, and does nothing else.
    #[serde(default)]
    pub likeness: Option<FalsePositiveRate>,
    /// What it adds to the score of a message, once; 0 to 1000.
    #[serde(default = "default_score")]
    pub score: u32,
    /// What it does by itself.
    #[serde(default = "default_action")]
    pub action: Action,
    /// Texts that it is tried on.
    #[serde(default)]
    pub examples: Examples,
}

fn default_score() -> u32 {
    100
}

fn default_action() -> Action {
    Action::Block
}
