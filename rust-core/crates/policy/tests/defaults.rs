//! The default actions of the packs' rules, and their overrides.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::BTreeSet;

use proofgate_policy::{Action, Direction, Pack, Scope, pattern_pack_names};
use serde_json::{Value, json};
use support::Policy;

/// Returns all actions of rules of these packs in these scopes.
fn actions(packs: &[&str], scopes: &[Scope], overrides: &Value) -> BTreeSet<Action> {
    let policy = Policy::of(&json!({"packs": packs, "actions": overrides}));
    let rules = policy.engine.rules();
    rules
        .flat_map(|rule| scopes.iter().map(|scope| rule.actions[*scope as usize]))
        .collect()
}

/// Returns the action of a rule in a scope.
fn action(policy: &Policy, rule: &str, scope: Scope) -> Action {
    let index = policy.engine.index_of(rule).unwrap();
    policy.engine.rule(index).actions[scope as usize]
}

const WORDS: [&str; 4] = ["prompt-injection", "jailbreak", "exfiltration", "obfuscation"];

#[test]
fn rules_about_words_flag() {
    let found = actions(&WORDS, &Scope::ALL, &json!([]));
    assert_eq!(found, BTreeSet::from([Action::Ignore, Action::Flag]));
    let in_instructions = actions(&WORDS, &[Scope::Instructions], &json!([]));
    assert_eq!(in_instructions, BTreeSet::from([Action::Ignore]));
}

#[test]
fn a_secret_is_taken_out_and_a_live_key_of_a_user_refused() {
    let policy = Policy::of(&json!({"packs": ["secrets"]}));
    for rule in policy.engine.rules() {
        for scope in Scope::ALL.into_iter().filter(|scope| *scope != Scope::User) {
            // In a response, the end of a key is not known when its beginning would be released.
            let is_cut = rule.id == "secret-private-key" && scope.direction() == Direction::Response;
            let expected = if is_cut { Action::Block } else { Action::Redact };
            assert_eq!(rule.actions[scope as usize], expected, "{} {scope:?}", rule.id);
        }
        let of_users = rule.actions[Scope::User as usize];
        assert!([Action::Redact, Action::Block].contains(&of_users), "{}", rule.id);
    }
    for rule in [
        "secret-aws-access-key-id",
        "secret-github-token",
        "secret-model-provider-key",
        "secret-private-key",
    ] {
        assert_eq!(action(&policy, rule, Scope::User), Action::Block);
    }
    assert_eq!(action(&policy, "secret-assignment", Scope::User), Action::Redact);
}

#[test]
fn personal_data_is_masked_in_chat_and_passes_where_tools_work_with_it() {
    let of = |scopes: &[Scope]| actions(&["pii"], scopes, &json!([]));
    assert_eq!(
        of(&[Scope::User, Scope::Assistant]),
        BTreeSet::from([Action::Mask])
    );
    assert_eq!(of(&[Scope::Other]), BTreeSet::from([Action::Flag]));
    let others = [
        Scope::Instructions,
        Scope::ToolDescription,
        Scope::ToolArguments,
        Scope::ToolResult,
        Scope::Response,
        Scope::ResponseArguments,
    ];
    assert_eq!(of(&others), BTreeSet::from([Action::Ignore]));
}

/// A text that cannot be changed is denied if a part of it would be replaced.
#[test]
fn the_default_of_personal_data_flags_in_texts_that_cannot_be_changed_and_what_a_policy_says_holds() {
    let packs = json!(["pii", "secrets"]);
    let of = |config: Value, tenant: Option<Value>| {
        let mut config = config;
        config["packs"] = packs.clone();
        let policy = Policy::for_tenant(&config, tenant.as_ref());
        let profile = policy.profile.for_fixed_texts();
        let action = |rule: &str| {
            profile
                .action(policy.engine.index_of(rule).unwrap(), Scope::User)
                .unwrap()
        };
        [action("pii-email"), action("secret-jwt")]
    };
    let by_default = [Action::Flag, Action::Redact];
    assert_eq!(of(json!({}), None), by_default);
    assert_eq!(of(json!({"threshold": 100}), None), by_default);
    for action in ["Mask", "Redact", "Block"] {
        let expected: Action = serde_json::from_value(json!(action)).unwrap();
        for entry in [
            json!({"packs": ["pii"], "action": action}),
            json!({"packs": ["pii"], "scopes": ["User"], "action": action}),
            json!({"rules": ["pii-email"], "action": action}),
        ] {
            let entries = json!({"actions": [entry]});
            assert_eq!(of(entries.clone(), None), [expected, Action::Redact]);
            assert_eq!(of(json!({}), Some(entries)), [expected, Action::Redact]);
        }
        assert_eq!(of(json!({"action": action}), None), [expected; 2]);
        assert_eq!(of(json!({}), Some(json!({"action": action}))), [expected; 2]);
    }
    let of_answers = json!({"actions": [{"packs": ["pii"], "scopes": ["Answer"], "action": "Redact"}]});
    assert_eq!(of(of_answers, None), by_default);
}

/// Otherwise one line of a policy would deny texts that match only a rule that flags.
#[test]
fn a_sign_is_raised_by_its_id_only() {
    let (sure, sign) = ("injection-override", "injection-override-anywhere");
    let of = |mut config: Value, scope| {
        config["packs"] = json!(WORDS);
        let policy = Policy::of(&config);
        [sure, sign].map(|rule| action(&policy, rule, scope))
    };
    let blocked = [Action::Block, Action::Flag];
    let by_pack = json!({"actions": [{"packs": WORDS, "action": "Block"}]});
    assert_eq!(of(by_pack, Scope::User), blocked);
    assert_eq!(of(json!({"action": "Block"}), Scope::User), blocked);
    let scoped = json!({"actions": [{"packs": WORDS, "scopes": ["Instructions"], "action": "Block"}]});
    assert_eq!(of(scoped, Scope::Instructions), blocked);
    let by_id = json!({"actions": [{"rules": [sign], "action": "Redact"}]});
    assert_eq!(of(by_id, Scope::User), [Action::Flag, Action::Redact]);
    let off = json!({"actions": [{"packs": ["exfiltration"], "action": "Block"},
        {"packs": WORDS, "scopes": ["Other"], "action": "Ignore"}]});
    assert_eq!(of(off, Scope::Other), [Action::Ignore; 2]);
}

#[test]
fn a_tenant_raises_signs_by_their_ids_only() {
    let tenant = json!({"actions": [{"packs": ["prompt-injection"], "action": "Block"}]});
    let policy = Policy::for_tenant(&json!({"packs": ["prompt-injection"]}), Some(&tenant));
    let of = |id: &str| {
        policy
            .profile
            .action(policy.engine.index_of(id).unwrap(), Scope::User)
    };
    assert_eq!(of("injection-override"), Some(Action::Block));
    assert_eq!(of("injection-override-anywhere"), Some(Action::Flag));
}

/// With `threshold: 100`, the same phrases deny as if their packs blocked, and so do rules that
/// only flag if their scores add up.
#[test]
fn every_rule_that_blocks_by_itself_reaches_the_usual_threshold() {
    for pack in pattern_pack_names().map(|name| Pack::built_in(name).unwrap()) {
        for rule in pack.rules {
            assert_eq!(rule.action == Action::Block, rule.score >= 100, "{}", rule.id);
        }
    }
}
