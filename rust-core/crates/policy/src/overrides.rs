//! Actions of rules in each scope: their own action, limited by their pack and overridden by the policy.

use serde::{Deserialize, Deserializer};

use crate::packs::{all_names, is_built_in_rule};
use crate::scope::{Scope, ScopeSet};
use crate::{Action, ActionLimit, Direction, Extent, PolicyError};

/// An override of the actions of some rules.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionOverride {
    /// Names of the packs whose rules are affected. Pack rules that only flag continue to only
    /// flag.
    #[serde(default)]
    pub packs: Vec<String>,
    /// Ids of the rules that are affected.
    #[serde(default)]
    pub rules: Vec<String>,
    /// The scopes in which it applies; absent or empty: all scopes in which the rules already apply.
    #[serde(default, deserialize_with = "some_scopes")]
    pub scopes: Option<ScopeSet>,
    /// The action of the affected rules.
    pub action: Action,
}

fn some_scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ScopeSet>, D::Error> {
    let scopes = ScopeSet::deserialize(deserializer)?;
    Ok((scopes != ScopeSet::default()).then_some(scopes))
}

/// The action of one rule in each scope, indexed by [`Scope`] as a number.
pub(crate) type Actions = [Action; Scope::ALL.len()];

/// Returns a rule's own actions within the limits of its pack. In responses, where the rest of a private key is not
/// replaced, the limits do not apply to rules that find the beginning of one.
pub(crate) fn own_actions(action: Action, extent: Extent, limits: &[ActionLimit]) -> Actions {
    Scope::ALL.map(|scope| {
        let is_part = extent == Extent::PrivateKey && scope.direction() == Direction::Response;
        let here = limits
            .iter()
            .filter(|limit| limit.scopes.contains(scope) && !is_part);
        here.fold(action, |action, limit| action.min(limit.action))
    })
}

/// The properties of a rule by which overrides select it.
#[derive(Clone, Copy)]
pub(crate) struct RuleName<'r> {
    pub(crate) id: &'r str,
    pub(crate) pack: Option<&'r str>,
    /// Whether its pack defines it to flag only: only an override by its id can make it stricter.
    pub(crate) is_flag_only: bool,
}

/// Applies the action for all rules, and then the overrides that select this rule. Overrides by
/// pack come before overrides by id, then overrides without scopes before overrides with scopes;
/// otherwise their order is kept. Later ones win. An override without scopes does not change scopes
/// where the rule is off.
pub(crate) fn apply(
    actions: &mut Actions,
    rule: RuleName<'_>,
    everywhere: Option<Action>,
    overrides: &[ActionOverride],
) {
    let RuleName {
        id,
        pack,
        is_flag_only: is_sign,
    } = rule;
    // An override for many rules does not take into account which of them often have false positives.
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

/// Limits a rule to flagging.
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

/// Checks the overrides: each names packs or rules, and all of them exist.
///
/// # Errors
/// [`PolicyError`] names the first invalid one.
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
