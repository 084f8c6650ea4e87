//! Actions of rules, their scopes, and tenants' overrides.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_policy::{Action, Decision, Direction, Judgement, MessageJudgement, Mode, Scope};
use serde_json::{Value, json};
use support::{Policy, with_defaults};

/// Three rules, one for each action.
fn config() -> Value {
    json!({"rules": [
        with_defaults(json!({"id": "gold", "literals": ["gold"], "score": 60, "action": "Flag"})),
        with_defaults(json!({"id": "silver", "literals": ["silver"], "score": 40, "action": "Redact"})),
        with_defaults(json!({"id": "bomb", "literals": ["bomb"], "score": 0, "action": "Block"})),
    ]})
}

fn for_tenant(tenant: Value) -> Policy {
    Policy::for_tenant(&config(), Some(&tenant))
}

/// Returns the judgement of a message of one text.
fn judge_in(policy: &mut Policy, scope: Scope, text: &str) -> Judgement {
    let mut found = policy
        .scan(scope, text, &mut proofgate_policy::Budget::unlimited())
        .unwrap();
    found.sort_unstable_by_key(|found| (found.start, found.end, found.rule));
    let (mut message, mut judgement) = (MessageJudgement::default(), Judgement::new());
    for found in &found {
        message.record(&policy.profile, scope, found.rule);
        judgement.record(found.rule);
    }
    message.count(&policy.engine, &policy.profile, scope, &found);
    judgement.add(&policy.profile, 0, scope, &message);
    judgement
}

fn judge(policy: &mut Policy, text: &str) -> Judgement {
    judge_in(policy, Scope::User, text)
}

fn decision(policy: &mut Policy, text: &str) -> Option<Decision> {
    judge(policy, text).decision()
}

fn block(policy: &mut Policy, id: &str, by_score: bool) -> Option<Decision> {
    let rule = policy.index(id, "gold silver bomb");
    Some(Decision::Block { rule, by_score })
}

#[test]
fn a_rule_does_what_its_action_says() {
    let mut policy = Policy::of(&config());
    assert_eq!(decision(&mut policy, "nothing"), None);
    assert_eq!(decision(&mut policy, "gold"), Some(Decision::Flag));
    assert_eq!(decision(&mut policy, "silver"), Some(Decision::Redact));
    let blocked = block(&mut policy, "bomb", false);
    assert_eq!(decision(&mut policy, "bomb"), blocked);
}

#[test]
fn the_first_rule_that_denies_is_named() {
    let mut policy = Policy::of(&config());
    let blocked = block(&mut policy, "bomb", false);
    assert_eq!(decision(&mut policy, "bomb gold silver"), blocked);
}

#[test]
fn all_rules_that_matched_are_known() {
    let mut policy = Policy::of(&config());
    let judgement = judge(&mut policy, "silver bomb");
    let ids: Vec<_> = judgement
        .matched_rules()
        .map(|rule| policy.engine.rule(rule).id.as_str())
        .collect();
    assert_eq!(ids, ["silver", "bomb"]);
}

#[test]
fn the_action_of_the_policy_replaces_those_of_its_rules() {
    let mut config = config();
    config["action"] = json!("Flag");
    assert_eq!(
        decision(&mut Policy::of(&config), "bomb silver"),
        Some(Decision::Flag)
    );
}

#[test]
fn the_action_of_a_tenant_replaces_that_of_the_policy() {
    let mut config = config();
    config["action"] = json!("Flag");
    let mut policy = Policy::for_tenant(&config, Some(&json!({"action": "Redact"})));
    assert_eq!(decision(&mut policy, "bomb"), Some(Decision::Redact));
}

#[test]
fn an_action_can_be_set_for_one_rule_in_some_scopes() {
    let mut config = config();
    config["actions"] = json!([
        {"rules": ["bomb"], "scopes": [], "action": "Redact"},
        {"rules": ["bomb"], "scopes": ["ToolResult"], "action": "Flag"},
        {"rules": ["gold"], "scopes": ["User", "ToolArguments"], "action": "Ignore"},
    ]);
    let mut policy = Policy::of(&config);
    assert_eq!(decision(&mut policy, "bomb gold"), Some(Decision::Redact));
    let decided = |policy: &mut Policy, scope| judge_in(policy, scope, "bomb").decision();
    assert_eq!(decided(&mut policy, Scope::ToolResult), Some(Decision::Flag));
    assert_eq!(decided(&mut policy, Scope::Response), Some(Decision::Redact));
    for scope in [Scope::User, Scope::ToolArguments, Scope::ResponseArguments] {
        assert_eq!(judge_in(&mut policy, scope, "gold").decision(), None);
    }
    assert_eq!(
        judge_in(&mut policy, Scope::Other, "gold").decision(),
        Some(Decision::Flag)
    );
}

/// The most specific override wins, whatever the order.
#[test]
fn what_is_said_of_a_rule_comes_before_what_is_said_of_its_pack() {
    let config = json!({"packs": ["pii"], "actions": [
        {"rules": ["pii-us-ssn"], "scopes": ["Other"], "action": "Flag"},
        {"rules": ["pii-us-ssn"], "action": "Redact"},
        {"packs": ["pii"], "scopes": ["User"], "action": "Ignore"},
        {"packs": ["pii"], "action": "Block"},
    ]});
    let policy = Policy::of(&config);
    let actions = |id: &str| policy.engine.rules().find(|rule| rule.id == id).unwrap().actions;
    let of = |id: &str, scope: Scope| actions(id)[scope as usize];
    assert_eq!(of("pii-us-ssn", Scope::Other), Action::Flag);
    assert_eq!(of("pii-us-ssn", Scope::Assistant), Action::Redact);
    assert_eq!(of("pii-us-ssn", Scope::User), Action::Ignore);
    assert_eq!(of("pii-iban", Scope::Other), Action::Block);
    assert_eq!(of("pii-iban", Scope::User), Action::Ignore);
}

#[test]
fn a_pack_looks_where_it_says_unless_a_policy_names_other_scopes() {
    let look = |actions: Value| {
        let policy = Policy::of(&json!({"packs": ["prompt-injection"], "actions": actions}));
        let rule = policy.engine.rules().next().unwrap().actions;
        (rule[Scope::Instructions as usize], rule[Scope::User as usize])
    };
    assert_eq!(look(json!([])).0, Action::Ignore);
    let everywhere = json!([{"packs": ["prompt-injection"], "action": "Redact"}]);
    assert_eq!(look(everywhere), (Action::Ignore, Action::Redact));
    let there = json!([{"packs": ["prompt-injection"], "scopes": ["Instructions"], "action": "Flag"}]);
    assert_eq!(look(there).0, Action::Flag);
}

#[test]
fn a_rule_that_a_tenant_has_off_matches_for_the_others_only() {
    let mut policy = for_tenant(json!({"actions": [{"rules": ["gold"], "action": "Ignore"}]}));
    assert_eq!(policy.ids("gold silver"), ["silver"]);
    policy.profile = policy.engine.profile(None).unwrap();
    assert_eq!(policy.ids("gold silver"), ["gold", "silver"]);
}

#[test]
fn a_rule_that_the_policy_has_off_everywhere_is_gone() {
    let mut config = config();
    config["actions"] = json!([{"rules": ["gold"], "action": "Ignore"}]);
    let mut policy = Policy::of(&config);
    assert_eq!(policy.ids("gold silver"), ["silver"]);
    assert!(policy.engine.rules().all(|rule| rule.id != "gold"));
    // A tenant may still name the rule.
    let tenant = serde_json::from_value(json!({"actions": [{"rules": ["gold"], "action": "Block"}]}));
    assert!(policy.engine.profile(Some(&tenant.unwrap())).is_ok());
}

#[test]
fn a_dry_run_only_flags_and_remembers_what_it_would_have_done() {
    let mut policy = for_tenant(json!({"mode": "DryRun"}));
    let judgement = judge(&mut policy, "silver bomb");
    assert_eq!(judgement.decision(), Some(Decision::Flag));
    assert!(judgement.would_block());
    assert_eq!(judgement.enforced_decision(), block(&mut policy, "bomb", false));
}

#[test]
fn a_tenant_can_enforce_what_the_policy_only_tries() {
    let mut config = config();
    config["mode"] = json!("DryRun");
    assert_eq!(decision(&mut Policy::of(&config), "silver"), Some(Decision::Flag));
    let mut policy = Policy::for_tenant(&config, Some(&json!({"mode": "Enforce"})));
    assert_eq!(policy.profile.mode(), Mode::Enforce);
    assert_eq!(decision(&mut policy, "silver"), Some(Decision::Redact));
}

#[test]
fn a_rule_looks_at_the_direction_of_its_target_only() {
    let mut policy = Policy::rule(json!({"literals": ["gold"], "target": "Response"}));
    assert!(policy.found(Scope::User, "gold").is_empty());
    assert_eq!(policy.found(Scope::Response, "gold").len(), 1);
    assert!(policy.profile.is_idle(Direction::Request) && !policy.profile.is_idle(Direction::Response));
}

#[test]
fn a_profile_says_what_each_rule_does() {
    let mut policy = Policy::of(&config());
    let (gold, silver) = (policy.index("gold", "gold"), policy.index("silver", "silver"));
    let off = json!({"actions": [{"rules": ["silver"], "scopes": ["User"], "action": "Ignore"}]});
    let profile = policy
        .engine
        .profile(Some(&serde_json::from_value(off).unwrap()))
        .unwrap();
    assert_eq!(profile.action(gold, Scope::User), Some(Action::Flag));
    assert_eq!(profile.action(silver, Scope::User), None);
    assert_eq!(profile.action(silver, Scope::Response), Some(Action::Redact));
}
