use proofgate_policy::{
    Action, Budget, Decision, Engine, Judgement, Match, MessageJudgement, PolicyConfig, Scope, Scratch, Target,
    TenantPolicy, View,
};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::errors::config_error;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(policy_rules, module)?)?;
    module.add_function(wrap_pyfunction!(policy_scan, module)?)
}

#[derive(Serialize)]
struct Rule<'e> {
    id: &'e str,
    pack: Option<&'e str>,
    reason: &'e str,
    target: &'static str,
    view: &'static str,
    score: u32,
    action: &'static str,
    examples: Examples<'e>,
}

#[derive(Serialize)]
struct Examples<'e> {
    r#match: &'e [String],
    no_match: &'e [String],
}

#[derive(Serialize)]
struct Verdict<'e> {
    decision: &'static str,
    would_block: bool,
    /// The rule that blocks.
    rule: Option<&'e str>,
    by_score: bool,
    score: u32,
    matches: Vec<Found<'e>>,
}

#[derive(Serialize)]
struct Found<'e> {
    rule: &'e str,
    start: usize,
    end: usize,
}

/// The rules that a policy section yields; see `_core.pyi`.
#[pyfunction]
fn policy_rules(python: Python<'_>, policy_json: &str) -> PyResult<String> {
    let listed = python.detach(|| -> Result<String, String> {
        let engine =
            Engine::compile(&read::<PolicyConfig>(policy_json)?).map_err(|error| error.to_string())?;
        let rules: Vec<_> = engine
            .rules()
            .map(|rule| Rule {
                id: &rule.id,
                pack: rule.pack.as_deref(),
                reason: &rule.reason,
                target: match rule.target {
                    Target::Request => "request",
                    Target::Response => "response",
                    Target::Both => "both",
                },
                view: match rule.view {
                    View::Text => "text",
                    View::Folded => "folded",
                },
                score: rule.score,
                action: word(rule.actions[Scope::User as usize]),
                examples: Examples {
                    r#match: &rule.examples.matching,
                    no_match: &rule.examples.no_match,
                },
            })
            .collect();
        serde_json::to_string(&rules).map_err(|error| error.to_string())
    });
    listed.map_err(|error| config_error(python, &error))
}

/// What a policy says of one text; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (policy_json, tenant_policy_json, direction, text))]
fn policy_scan(
    python: Python<'_>,
    policy_json: &str,
    tenant_policy_json: Option<&str>,
    direction: &str,
    text: &str,
) -> PyResult<String> {
    let judged = python.detach(|| judge(policy_json, tenant_policy_json, direction, text));
    judged.map_err(|error| config_error(python, &error))
}

fn judge(policy: &str, tenant: Option<&str>, direction: &str, text: &str) -> Result<String, String> {
    let engine = Engine::compile(&read::<PolicyConfig>(policy)?).map_err(|error| error.to_string())?;
    let tenant = tenant.map(read::<TenantPolicy>).transpose()?;
    let profile = engine
        .profile(tenant.as_ref())
        .map_err(|error| error.to_string())?;
    let scope = match direction {
        "request" => Scope::User,
        "response" => Scope::Answer,
        _ => return Err("direction is request or response".into()),
    };
    let mut found: Vec<Match> = Vec::new();
    engine
        .scan(
            &profile,
            scope,
            text,
            &mut Budget::unlimited(),
            &mut Scratch::default(),
            &mut found,
        )
        .map_err(|fault| fault.to_string())?;
    found.sort_unstable_by_key(|one| (one.start, one.end, one.rule));
    let (mut message, mut judgement) = (MessageJudgement::default(), Judgement::new());
    for one in &found {
        message.note(&profile, scope, one.rule);
    }
    message.count(&engine, &profile, scope, &found);
    judgement.add(&profile, 0, scope, &message);
    let blocks = match judgement.if_enforced() {
        Some(Decision::Block { rule, by_score }) => Some((engine.rule(rule).id.as_str(), by_score)),
        _ => None,
    };
    let verdict = Verdict {
        decision: match judgement.decision() {
            None => "allow",
            Some(Decision::Flag) => "flag",
            Some(Decision::Redact) => "redact",
            Some(Decision::Block { .. }) => "block",
        },
        would_block: judgement.would_block(),
        rule: blocks.map(|(rule, _)| rule),
        by_score: blocks.is_some_and(|(_, by_score)| by_score),
        score: judgement.score(),
        matches: found
            .iter()
            .map(|one| Found {
                rule: &engine.rule(one.rule).id,
                start: one.start,
                end: one.end,
            })
            .collect(),
    };
    serde_json::to_string(&verdict).map_err(|error| error.to_string())
}

fn word(action: Action) -> &'static str {
    match action {
        Action::Block => "block",
        Action::Redact => "redact",
        Action::Flag => "flag",
        Action::Ignore => "ignore",
    }
}

fn read<'j, T: Deserialize<'j>>(json: &'j str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| format!("policy: {error}"))
}
