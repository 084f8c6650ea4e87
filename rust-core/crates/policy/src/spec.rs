//! A rule in its serialised form, in a pack (TOML) or in the configuration (JSON), with the same fields and words.

use serde::Deserialize;

use crate::FalsePositiveRate;

/// The action of a rule where it matches; ordered from mild to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub enum Action {
    /// The rule is not applied.
    Ignore,
    /// The match is reported, and counts toward the score of its message.
    Flag,
    /// In a request, the matched text is replaced with a placeholder, which is restored in the response. In a response, the
    /// match is reported.
    Mask,
    /// The matched text is replaced.
    Redact,
    /// The exchange is denied.
    Block,
}

/// The directions of an exchange that a rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Target {
    /// Requests.
    Request,
    /// Responses.
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
    /// Whether a rule with this target applies to `direction`.
    #[must_use]
    pub fn includes(self, direction: Direction) -> bool {
        matches!(
            (self, direction),
            (Self::Both, _) | (Self::Request, Direction::Request) | (Self::Response, Direction::Response)
        )
    }
}

/// The copy of a text that a regex is applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum View {
    /// The text itself.
    Text,
    /// The normalised copy: lower case, look-alikes replaced, white space as one blank, invisible characters and markup
    /// inside words removed.
    #[default]
    Folded,
}

/// The extent of a replacement: `SEMANTICS.md` has the exact definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub enum Extent {
    /// The match, or its group `value`.
    #[default]
    Match,
    /// In a request, also the rest of a private key whose beginning matched.
    PrivateKey,
    /// Also the rest of a token that is longer than the rule can match.
    Token,
}

/// Texts with which a rule is tested.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Examples {
    /// The rule matches each of these.
    #[serde(rename = "match")]
    pub matching: Vec<String>,
    /// The rule matches none of these.
    pub no_match: Vec<String>,
}

/// A rule in its serialised form. `SEMANTICS.md` defines what it matches.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleSpec {
    /// The rule's id in kebab-case; unique over all packs and the user's rules.
    pub id: String,
    /// The reason as one sentence for the client, without any matched text.
    pub reason: String,
    /// The directions it applies to.
    #[serde(default)]
    pub target: Target,
    /// The copy of the text that its regex is applied to.
    #[serde(default)]
    pub view: View,
    /// Without a regex: the texts that the rule matches. With a regex: a match counts only if it
    /// contains one of these.
    #[serde(default)]
    pub literals: Vec<String>,
    /// The regex it matches.
    #[serde(default)]
    pub regex: Option<String>,
    /// The name of an additional check on the matched text.
    #[serde(default)]
    pub check: Option<String>,
    /// The extent of the replacement of a match.
    #[serde(default)]
    pub extent: Extent,
    /// In a built-in pack, instead of a regex and literals: the rule matches parts of a text whose
    /// linear score reaches the threshold for this false positive rate. Such a rule flags a
    /// request, and does nothing else.
    #[serde(default)]
    pub likeness: Option<FalsePositiveRate>,
    /// The score it adds to a message, once; 0 to 1000.
    #[serde(default = "default_score")]
    pub score: u32,
    /// The action that applies unless the policy or the pack's limits change it.
    #[serde(default = "default_action")]
    pub action: Action,
    /// Texts with which it is tested.
    #[serde(default)]
    pub examples: Examples,
}

fn default_score() -> u32 {
    100
}

fn default_action() -> Action {
    Action::Block
}
