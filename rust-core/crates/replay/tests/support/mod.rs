//! Records, bodies and a configuration for the tests.
#![allow(dead_code, reason = "each test binary uses only some of these helpers")]
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

use std::borrow::Cow;

use proofgate_ledger::record::{Admission, Completion, ConfigId, Outcome, PolicyNote, Rejection};
use proofgate_replay::{Agreement, Comparison, Replayer, RuleSource};
use serde_json::json;

pub const CHAT: &str = "/v1/chat/completions";

pub fn rules() -> serde_json::Value {
    json!([
        {"id": "codename", "reason": "r", "literals": ["bluebird"], "score": 100, "action": "Block"},
        {"id": "weak-a", "reason": "r", "literals": ["alphasign"], "score": 60, "action": "Flag"},
        {"id": "weak-b", "reason": "r", "literals": ["betasign"], "score": 60, "action": "Flag"},
        {"id": "staff", "reason": "r", "regex": "staff-[0-9]{6}", "score": 10, "action": "Redact"},
        {"id": "pair", "reason": "r", "regex": "alphasign or betasign of staff-[0-9]{6}", "score": 70, "action": "Flag"},
        {"id": "asked", "reason": "r", "literals": ["gammasign"], "target": "Request", "score": 1, "action": "Flag"},
    ])
}

pub fn configuration() -> serde_json::Value {
    json!({
        "format": 2,
        "policy": {"rules": rules(), "threshold": 100, "budgetMilliseconds": 1_000},
        "tenants": [
            {"name": "acme", "policy": null, "policies": []},
            {"name": "dry", "policy": {"mode": "DryRun"}},
            {"name": "asks", "policies": ["python"]},
            {"name": "mild", "policy": {"action": "Flag", "threshold": 1000, "actions": [{"rules": ["weak-a"], "action": "Ignore"}]}},
        ],
        "limits": {"bodyBytes": 65536},
        "unknown": "is passed over",
    })
}

pub fn replayer(document: &serde_json::Value, basis: RuleSource) -> Replayer {
    Replayer::new(document.to_string().as_bytes(), basis).unwrap()
}

pub fn recorded() -> Replayer {
    replayer(&configuration(), RuleSource::Recorded)
}

pub fn note(score: u32, rules: &[&'static str]) -> PolicyNote<'static> {
    PolicyNote {
        score,
        rules: rules.iter().map(|rule| Cow::Borrowed(*rule)).collect(),
        ..PolicyNote::default()
    }
}

pub fn redacted(note: PolicyNote<'static>) -> PolicyNote<'static> {
    PolicyNote {
        redacted: true,
        ..note
    }
}

pub fn would_block(note: PolicyNote<'static>) -> PolicyNote<'static> {
    PolicyNote {
        would_block: true,
        ..note
    }
}

/// Returns the note with the scope and location of a message, if it names a rule of the engine.
fn about(
    note: Option<PolicyNote<'static>>,
    scope: &'static str,
    message: Option<&str>,
) -> Option<PolicyNote<'static>> {
    note.map(|note| match note.rules.iter().any(|rule| !rule.contains('/')) {
        true => {
            let flagged = note.score >= 50;
            note.with_message(Some(scope), message.map(str::to_owned), flagged)
        }
        false => note,
    })
}

pub fn admission(tenant: &'static str, policy: Option<PolicyNote<'static>>) -> Admission<'static> {
    let text = json!({
        "seq": 1, "ts": 1, "id": "req_1", "tenant": tenant, "tenant_seq": 1, "key": "k", "model": "m", "provider": "p",
        "upstream_model": "m", "endpoint": CHAT, "stream": false, "bytes": 0,
        "request": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "reserved": null, "config": "0000000000000000",
    });
    let text = Box::leak(text.to_string().into_boxed_str());
    Admission {
        policy: about(policy, "user", Some("messages[0]")),
        ..serde_json::from_str(text).unwrap()
    }
}

pub fn completion(outcome: Outcome, policy: Option<PolicyNote<'static>>) -> Completion<'static> {
    let text = json!({
        "seq": 2, "ts": 2, "id": "req_1", "admission": 1, "status": 200, "upstream_status": 200, "outcome": "complete",
        "bytes": 0, "response": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "usage": null, "charged": null,
        "duration_us": 1, "config": "0000000000000000",
    });
    let text = Box::leak(text.to_string().into_boxed_str());
    Completion {
        outcome,
        policy: about(policy, "answer", None),
        ..serde_json::from_str(text).unwrap()
    }
}

pub fn rejection(code: &'static str, policy: Option<PolicyNote<'static>>) -> Rejection<'static> {
    Rejection {
        seq: 1,
        ts: 1,
        id: "req_1".into(),
        tenant: Some("acme".into()),
        counted: None,
        shared_plan: None,
        status: 403,
        code: code.into(),
        endpoint: Some(CHAT.into()),
        bytes: 0,
        policy: about(policy, "user", Some("messages[0]")),
        config: ConfigId::default(),
        ..Rejection::default()
    }
}

pub fn prompt(text: &str) -> Vec<u8> {
    json!({"model": "m", "messages": [{"role": "user", "content": text}]})
        .to_string()
        .into_bytes()
}

pub fn whole(text: &str) -> Vec<u8> {
    let message = json!({"role": "assistant", "content": text});
    json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        .to_string()
        .into_bytes()
}

pub fn stream(pieces: &[&str], done: &str) -> Vec<u8> {
    let events = pieces.iter().map(|piece| {
        let event = json!({"choices": [{"index": 0, "delta": {"content": piece}}]});
        format!("data: {event}\n\n")
    });
    (events.collect::<String>() + done).into_bytes()
}

pub const DONE: &str = "data: [DONE]\n\n";
pub const OWN_END: &str = "data: {\"error\":{\"message\":\"Denied by the policy rule codename: bluebird\",\"code\":\"policy_blocked\"}}\n\n";

pub fn told(compared: &Comparison) -> (Agreement, Option<&'static str>) {
    (compared.result, compared.reason)
}
