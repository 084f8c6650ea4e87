//! What rules do in each scope: their own action, what their pack and the policy make of it.

use serde::{Deserialize, Deserializer};

use crate::packs::{all_names, is_built_in_rule};
use crate::scope::{Scope, ScopeSet};
use crate::{Action, Direction, Extent, Limit, PolicyError};

/// What a policy has some rules do instead of what they do by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionOverride {
    /// Names of the packs whose rules are meant. Rules that are signs it has flag at most,
    #[serde(default)]
    pub packs: Vec<String>,
    /// and ids of rules.
    #[serde(default)]
    pub rules: Vec<String>,
    /// Where they are to do it; absent or empty: wherever they look without this.
    #[serde(default, deserialize_with = "some_scopes")]
    pub scopes: Option<ScopeSet>,
    /// What they do.
    pub action: Action,
}

fn some_scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ScopeSet>, D::Error> {
    let scopes = ScopeSet::deserialize(deserializer)?;
    Ok((scopes != ScopeSet::default()).then_some(scopes))
}

/// What one rule does in each scope, by [`Scope`] as a number.
pub(crate) type Actions = [Action; Scope::ALL.len()];

/// What a rule does by itself within the limits of its pack. In answers, where the rest of a private key is not replaced, they do
/// not hold for rules that find the beginning of one.
pub(crate) fn own(action: Action, extent: Extent, limits: &[Limit]) -> Actions {
    Scope::ALL.map(|scope| {
        let is_part = extent == Extent::PrivateKey && scope.direction() == Direction::Response;
        let here = limits
            .iter()
            .filter(|limit| limit.scopes.contains(scope) && !is_part);
        here.fold(action, |action, limit| action.min(limit.action))
    })
}

/// A rule, as overrides name it.
#[derive(Clone, Copy)]
pub(crate) struct RuleName<'r> {
    pub(crate) id: &'r str,
    pub(crate) pack: Option<&'r str>,
    /// Whether it is a sign and no more: only its id makes it do anything but flag.
    pub(crate) is_sign: bool,
}

/// What becomes of a rule's actions by an action for all rules and by the overrides that mean it: those of its pack before
/// those of its id, those without scopes before those with some, and each before the later ones. Without scopes one changes
/// nothing where the rule is off.
pub(crate) fn apply(
    actions: &mut Actions,
    rule: RuleName<'_>,
    everywhere: Option<Action>,
    overrides: &[ActionOverride],
) {
    let RuleName { id, pack, is_sign } = rule;
    // What holds for many rules does not know which of them are mistaken often.
    let of_many = |action: Action| if is_sign { action.min(Action::Flag) } else { action };
    if let Some(action) = everywhere {
        set(actions, None, of_many(action));
    }
    let of_pack = |one: &&ActionOverride| pack.is_some_and(|pack| one.packs.iter().any(|name| name == pack));
    let of_rule = |one: &&ActionOverride| one.rules.iter().any(|known| known == id);
    for scoped in [false, true] {
        let alike = overrides.iter().filter(|one| one.scopes.is_some() == scoped);
        alike
            .filter(of_pack)
            .for_each(|one| set(actions, one.scopes, of_many(one.action)));
    }
    for scoped in [false, true] {
        let alike = overrides.iter().filter(|one| one.scopes.is_some() == scoped);
        alike
            .filter(of_rule)
            .for_each(|one| set(actions, one.scopes, one.action));
    }
}

/// Has a rule do no more than flag.
pub(crate) fn flag_at_most(actions: &mut Actions) {
    actions
        .iter_mut()
        .for_each(|action| *action = (*action).min(Action::Flag));
}

fn set(actions: &mut Actions, scopes: Option<ScopeSet>, action: Action) {
    for (scope, known) in Scope::ALL.into_iter().zip(actions) {
        let is_meant = match scopes {
            Some(scopes) => scopes.contains(scope),
            None => *known != Action::Ignore,
        };
        if is_meant {
            *known = action;
        }
    }
}

/// Checks that overrides mean something: each names packs or rules, and all of them exist.
///
/// # Errors
/// [`PolicyError`] names the first that does not.
pub(crate) fn check(
    overrides: &[ActionOverride],
    is_known: impl Fn(&str) -> bool,
) -> Result<(), PolicyError> {
    for ActionOverride { packs, rules, .. } in overrides {
        if packs.is_empty() && rules.is_empty() {
            let reason = "an entry names neither packs nor rules".to_owned();
            return Err(PolicyError::InvalidSetting {
                field: "actions",
                reason,
            });
        }
        if let Some(name) = packs
            .iter()
            .find(|name| !all_names().any(|known| known == **name))
        {
            let known = all_names().collect::<Vec<_>>().join(", ");
            let reason = format!("there is no pack {name:?}; the packs are: {known}");
            return Err(PolicyError::InvalidSetting {
                field: "actions",
                reason,
            });
        }
        if let Some(rule) = rules.iter().find(|id| !is_known(id) && !is_built_in_rule(id)) {
            return Err(PolicyError::UnknownRule { rule: rule.clone() });
        }
    }
    Ok(())
}
