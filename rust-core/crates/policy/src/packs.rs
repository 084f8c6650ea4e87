//! The built-in packs, which are a part of the library.

use serde::Deserialize;

use crate::{Action, Limit, PolicyError, RuleSpec, ScopeSet};

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

/// Packs whose one rule is a learned score. They are apart from the packs that `SEMANTICS.md` defines by regexes, which a
/// second engine reads too.
const SCORES: &[(&str, &str)] = &[(
    "instruction-likeness",
    include_str!("../scores/instruction-likeness.toml"),
)];

/// A pack as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Pack {
    /// Its name in `packs`.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Where its rules look, unless a policy says otherwise.
    #[serde(default = "everywhere")]
    pub scopes: ScopeSet,
    /// Whether its rules match nothing that stands in documentation only, such as `user@example.com`.
    #[serde(default)]
    pub spares_documentation: bool,
    /// The most that its rules do instead of replacing something in a text that cannot be changed, such as a form, unless a policy
    /// says otherwise. Absent: what they would replace there denies.
    #[serde(default)]
    pub fixed_texts: Option<Action>,
    /// The most that its rules do in some scopes, unless a policy says otherwise.
    #[serde(rename = "limit", default)]
    pub limits: Vec<Limit>,
    /// Its rules.
    #[serde(rename = "rule", default)]
    pub rules: Vec<RuleSpec>,
}

impl Pack {
    /// Reads a pack.
    ///
    /// # Errors
    /// [`PolicyError::InvalidPack`] names the line and what is wrong with it.
    pub fn read(name: &str, text: &str) -> Result<Self, PolicyError> {
        toml::from_str(text).map_err(|error| PolicyError::InvalidPack {
            pack: name.to_owned(),
            reason: error.to_string().trim().to_owned(),
        })
    }

    /// Reads the built-in pack `name`.
    ///
    /// # Errors
    /// [`PolicyError::UnknownPack`] lists the packs that exist.
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

    /// The pack without its scopes and limits: every rule does what it does by itself, wherever its target has it look.
    #[must_use]
    pub fn unlimited(self) -> Self {
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

/// The names of the built-in packs of rules that find phrases and shapes.
pub fn pack_names() -> impl Iterator<Item = &'static str> {
    PACKS.iter().map(|(name, _)| *name)
}

/// The names of the built-in packs that score a text.
pub fn score_names() -> impl Iterator<Item = &'static str> {
    SCORES.iter().map(|(name, _)| *name)
}

/// The names of all built-in packs.
pub(crate) fn all_names() -> impl Iterator<Item = &'static str> {
    pack_names().chain(score_names())
}

/// Whether any built-in pack holds a rule with this id.
pub(crate) fn is_built_in_rule(id: &str) -> bool {
    all_names()
        .filter_map(|name| Pack::built_in(name).ok())
        .any(|pack| pack.rules.iter().any(|rule| rule.id == id))
}
