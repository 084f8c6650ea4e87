use std::collections::BTreeMap;

use proofgate_dataplane::Rejection;
use proofgate_inspect::{InspectionOutcome, explain_request};
use proofgate_json::Workspace;
use proofgate_policy::{
    Action, Budget, Decision, Direction, Engine, Judgement, Match, MessageJudgement, PolicyConfig, Profile,
    RuleInfo, Scope, Scratch, Target, TenantPolicy, View,
};
use proofgate_providers::{BodyText, Dialect, ParsedRequest};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::errors::config_error;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(denial_codes, module)?)?;
    module.add_function(wrap_pyfunction!(policy_rules, module)?)?;
    module.add_function(wrap_pyfunction!(policy_check, module)?)?;
    module.add_function(wrap_pyfunction!(policy_scan, module)?)
}

/// Returns the refusal codes that are denials by policy; see `_core.pyi`.
#[pyfunction]
fn denial_codes() -> [&'static str; Rejection::DENIAL_CODES.len()] {
    Rejection::DENIAL_CODES
}

#[derive(Serialize)]
struct Rule<'e> {
    id: &'e str,
    pack: Option<&'e str>,
    reason: &'e str,
    target: &'static str,
    view: &'static str,
    score: u32,
    /// The rule's action in each scope to which it applies.
    actions: BTreeMap<&'static str, &'static str>,
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
    /// The rule that blocks; `None` if no rule blocks.
    rule: Option<&'e str>,
    by_score: bool,
    score: u32,
    /// Whether the score reaches the threshold for flagging a message.
    flagged: bool,
    matches: Vec<Found<'e>>,
}

#[derive(Serialize)]
struct Found<'e> {
    rule: &'e str,
    /// The action of the rule in this scope.
    action: &'static str,
    start: usize,
    end: usize,
    /// The matched text, for requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// The result of a policy for a request.
#[derive(Serialize)]
struct RequestCheck<'e> {
    #[serde(flatten)]
    verdict: Verdict<'e>,
    /// The location of the determining message, and its scope.
    message: Option<String>,
    scope: Option<&'static str>,
    /// The messages with matches.
    messages: Vec<Message<'e>>,
    /// The body that would be sent instead of the original one.
    sent: Option<String>,
}

#[derive(Serialize)]
struct Message<'e> {
    place: String,
    scope: &'static str,
    score: u32,
    flagged: bool,
    /// Whether the text is from a tool and flagged as instructions.
    from_tool: bool,
    decision: &'static str,
    matches: Vec<Found<'e>>,
}

/// Returns the rules of a policy section; see `_core.pyi`.
#[pyfunction]
fn policy_rules(python: Python<'_>, policy_json: &str) -> PyResult<String> {
    let listed = python.detach(|| -> Result<String, String> {
        let engine =
            Engine::compile(&parse_json::<PolicyConfig>(policy_json)?).map_err(|error| error.to_string())?;
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
                actions: actions(rule),
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

/// Evaluates a policy for one text; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (policy_json, tenant_policy_json, direction, scope, text))]
fn policy_scan(
    python: Python<'_>,
    policy_json: &str,
    tenant_policy_json: Option<&str>,
    direction: &str,
    scope: &str,
    text: &str,
) -> PyResult<String> {
    let judged = python.detach(|| judge(policy_json, tenant_policy_json, (direction, scope), text));
    judged.map_err(|error| config_error(python, &error))
}

/// Evaluates a policy for a request; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (policy_json, tenant_policy_json, endpoint, body))]
fn policy_check(
    python: Python<'_>,
    policy_json: &str,
    tenant_policy_json: Option<&str>,
    endpoint: &str,
    body: &[u8],
) -> PyResult<String> {
    let judged = python.detach(|| check(policy_json, tenant_policy_json, endpoint, body));
    judged.map_err(|error| config_error(python, &error))
}

/// Compiles a policy's rules, and the profile that applies.
fn compile(policy: &str, tenant: Option<&str>) -> Result<(Engine, Profile), String> {
    let engine = Engine::compile(&parse_json::<PolicyConfig>(policy)?).map_err(|error| error.to_string())?;
    let tenant = tenant.map(parse_json::<TenantPolicy>).transpose()?;
    let profile = engine
        .profile(tenant.as_ref())
        .map_err(|error| error.to_string())?;
    Ok((engine, profile))
}

fn judge(
    policy: &str,
    tenant: Option<&str>,
    (direction, scope): (&str, &str),
    text: &str,
) -> Result<String, String> {
    let (engine, profile) = compile(policy, tenant)?;
    let direction = match direction {
        "request" => Direction::Request,
        "response" => Direction::Response,
        _ => return Err("direction must be request or response".into()),
    };
    let scope = Scope::from_name(scope, direction).ok_or_else(|| {
        let scopes = Scope::ALL
            .into_iter()
            .filter(|scope| scope.direction() == direction);
        let names: Vec<&str> = scopes.map(Scope::name).collect();
        format!(
            "there is no scope {scope:?} in this direction; the scopes are: {}",
            names.join(", ")
        )
    })?;
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
        message.record(&profile, scope, one.rule);
    }
    message.count(&engine, &profile, scope, &found);
    judgement.add(&profile, 0, scope, &message);
    let verdict = Verdict {
        matches: matches(&engine, &profile, scope, &found, None),
        ..Verdict::from_judgement(&engine, &judgement)
    };
    serde_json::to_string(&verdict).map_err(|error| error.to_string())
}

fn check(policy: &str, tenant: Option<&str>, endpoint: &str, body: &[u8]) -> Result<String, String> {
    let (engine, profile) = compile(policy, tenant)?;
    let dialect = Dialect::from_path(endpoint).filter(|dialect| !dialect.has_form());
    let dialect = dialect.ok_or_else(|| format!("{endpoint:?} does not accept JSON requests"))?;
    let (mut text, mut workspace) = (BodyText::new(), Workspace::new());
    ParsedRequest::read(dialect, body, &mut workspace, &mut text).map_err(|bad| bad.to_string())?;
    let (verdict, messages) = explain_request(&engine, &profile, &text, &mut Scratch::default())
        .map_err(|fault| fault.to_string())?;
    let sent = (verdict.outcome == InspectionOutcome::Redact).then(|| {
        let mut sent = Vec::new();
        verdict.rewrite(&engine, &text, body, &mut sent);
        String::from_utf8_lossy(&sent).into_owned()
    });
    let messages = messages.iter().map(|message| Message {
        place: message.location.to_string(),
        scope: message.scope.as_str(),
        score: message.score,
        flagged: message.score >= profile.flag_threshold(),
        from_tool: message.is_tool_flag,
        decision: decision_name(message.decision),
        matches: matches(
            &engine,
            &profile,
            message.scope,
            &message.matches,
            Some(text.text()),
        ),
    });
    let place = verdict.location.map(|place| place.to_string());
    let checked = RequestCheck {
        message: place,
        scope: verdict.judgement.worst().map(|worst| worst.scope.as_str()),
        messages: messages.collect(),
        sent,
        verdict: Verdict::from_judgement(&engine, &verdict.judgement),
    };
    serde_json::to_string(&checked).map_err(|error| error.to_string())
}

impl<'e> Verdict<'e> {
    fn from_judgement(engine: &'e Engine, judgement: &Judgement) -> Self {
        let blocks = match judgement.enforced_decision() {
            Some(Decision::Block { rule, by_score }) => Some((engine.rule(rule).id.as_str(), by_score)),
            _ => None,
        };
        Verdict {
            decision: decision_name(judgement.decision()),
            would_block: judgement.would_block(),
            rule: blocks.map(|(rule, _)| rule),
            by_score: blocks.is_some_and(|(_, by_score)| by_score),
            score: judgement.score(),
            flagged: judgement.is_flagged(),
            matches: Vec::new(),
        }
    }
}

fn matches<'e>(
    engine: &'e Engine,
    profile: &Profile,
    scope: Scope,
    found: &[Match],
    text: Option<&str>,
) -> Vec<Found<'e>> {
    let found = found.iter().map(|one| Found {
        rule: &engine.rule(one.rule).id,
        action: action_name(profile.action(one.rule, scope).unwrap_or(Action::Ignore)),
        start: one.start,
        end: one.end,
        text: text
            .and_then(|text| text.get(one.start..one.end))
            .map(str::to_owned),
    });
    found.collect()
}

fn decision_name(decision: Option<Decision>) -> &'static str {
    match decision {
        None => "allow",
        Some(Decision::Flag) => "flag",
        Some(Decision::Redact) => "redact",
        Some(Decision::Mask) => "mask",
        Some(Decision::Block { .. }) => "block",
    }
}

/// Returns the action of a rule in each scope of its directions.
fn actions(rule: &RuleInfo) -> BTreeMap<&'static str, &'static str> {
    let scopes = Scope::ALL.into_iter();
    let looked_at = scopes.filter(|scope| rule.target.includes(scope.direction()));
    looked_at
        .map(|scope| (scope.as_str(), action_name(rule.actions[scope as usize])))
        .collect()
}

fn action_name(action: Action) -> &'static str {
    match action {
        Action::Block => "block",
        Action::Redact => "redact",
        Action::Mask => "mask",
        Action::Flag => "flag",
        Action::Ignore => "ignore",
    }
}

fn parse_json<'j, T: Deserialize<'j>>(json: &'j str) -> Result<T, String> {
    serde_json::from_str(json).map_err(|error| format!("policy: {error}"))
}
