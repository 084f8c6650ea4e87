//! The built-in packs, which are embedded in the library.

use serde::Deserialize;

use crate::{Action, ActionLimit, PolicyError, RuleSpec, ScopeSet};

/// Embeds `packs/<name>.toml` for every name.
macro_rules! packs {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../packs/", $name, ".toml")))),*]
    };
}

const PACKS: &[(&str, &str)] = packs![
    "prompt-injection",
    "jailbreak",
    "secrets",
    "pii",
    "exfiltration",
    "obfuscation"
];

/// Packs whose only rule is a learned score. They are separate from the packs that `SEMANTICS.md` defines by regexes, which
/// a second engine also reads.
const SCORES: &[(&str, &str)] = &[(
    "instruction-likeness",
    include_str!("../scores/instruction-likeness.toml"),
)];

/// A pack in its serialised form.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pack {
    /// The name by which `packs` selects it.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// The scopes of its rules, unless a policy overrides them.
    #[serde(default = "everywhere")]
    pub scopes: ScopeSet,
    /// Whether its rules skip values that occur only in documentation, such as `user@example.com`.
    #[serde(default)]
    pub spares_documentation: bool,
    /// The strictest action of its rules, instead of a replacement, in a text that cannot be
    /// changed, such as a form, unless a policy overrides it. Absent: a rule that would replace a
    /// part of such a text denies.
    #[serde(default)]
    pub fixed_texts: Option<Action>,
    /// The strictest actions of its rules in some scopes, unless a policy overrides them.
    #[serde(rename = "limit", default)]
    pub limits: Vec<ActionLimit>,
    /// Its rules.
    #[serde(rename = "rule", default)]
    pub rules: Vec<RuleSpec>,
}

impl Pack {
    /// Parses a pack.
    ///
    /// # Errors
    /// [`PolicyError::InvalidPack`] names the line and the error.
    pub fn read(name: &str, text: &str) -> Result<Self, PolicyError> {
        toml::from_str(text).map_err(|error| PolicyError::InvalidPack {
            pack: name.to_owned(),
            reason: error.to_string().trim().to_owned(),
        })
    }

    /// Returns the built-in pack `name`.
    ///
    /// # Errors
    /// [`PolicyError::UnknownPack`] lists the existing packs.
    pub fn built_in(name: &str) -> Result<Self, PolicyError> {
        let Some((_, text)) = PACKS.iter().chain(SCORES).find(|(known, _)| *known == name) else {
            let known = all_names().collect::<Vec<_>>().join(", ");
            return Err(PolicyError::UnknownPack {
                name: name.to_owned(),
                known,
            });
        };
        Self::read(name, text)
    }

    /// Returns the pack without its scopes and limits: every rule has its own action in all scopes of its target.
    #[must_use]
    pub fn without_limits(self) -> Self {
        Self {
            scopes: ScopeSet::ALL,
            limits: Vec::new(),
            fixed_texts: None,
            ..self
        }
    }
}

fn everywhere() -> ScopeSet {
    ScopeSet::ALL
}

/// Returns the names of the built-in packs whose rules find phrases and shapes.
pub fn pattern_pack_names() -> impl Iterator<Item = &'static str> {
    PACKS.iter().map(|(name, _)| *name)
}

/// Returns the names of the built-in packs that score a text.
pub fn score_pack_names() -> impl Iterator<Item = &'static str> {
    SCORES.iter().map(|(name, _)| *name)
}

/// Returns the names of all built-in packs.
pub(crate) fn all_names() -> impl Iterator<Item = &'static str> {
    pattern_pack_names().chain(score_pack_names())
}

/// Whether any built-in pack contains a rule with this id.
pub(crate) fn is_built_in_rule(id: &str) -> bool {
    all_names()
        .filter_map(|name| Pack::built_in(name).ok())
        .any(|pack| pack.rules.iter().any(|rule| rule.id == id))
}
