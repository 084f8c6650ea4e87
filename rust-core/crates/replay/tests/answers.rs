//! A replay shows of an answer what its client's bytes can show, and nothing more.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

mod support;

use proofgate_ledger::record::{Completion, FlaggedToolText, GuardVerdict, GuardedCall, Outcome, PolicyNote};
use proofgate_policy::{Pack, pattern_pack_names};
use proofgate_replay::{Agreement, RuleSource};
use serde_json::json;
use support::*;

#[test]
fn an_answer_that_was_not_changed_has_its_verdict_however_it_came() {
    let mut replayer = recorded();
    let mut of = |tenant, policy, body: &[u8]| {
        let end = completion(Outcome::Complete, policy);
        told(&replayer.replay_completion(&admission(tenant, None), &end, Some(body)))
    };
    let flagged = || Some(note(60, &["weak-a"]));
    use Agreement::{Differs, Same};
    let streamed = stream(&["so al", "phasi", "gn"], DONE);
    let beaten = [b": hb\n", &streamed[..]].concat();
    for body in [whole("so alphasign"), streamed, beaten] {
        assert_eq!(of("acme", flagged(), &body), (Same, None));
        assert_eq!(of("acme", None, &body), (Differs, None));
        assert_eq!(of("mild", None, &body), (Same, None));
        assert_eq!(of("acme", Some(note(60, &["weak-b"])), &body), (Differs, None));
    }
    assert_eq!(of("acme", None, &whole("a gammasign")), (Same, None));
    assert_eq!(of("acme", None, &whole("about bluebird")), (Differs, None));
    assert_eq!(of("acme", None, &whole("staff-123456")), (Differs, None));
    let would = || Some(would_block(note(100, &["codename", "staff"])));
    assert_eq!(of("dry", would(), &whole("bluebird staff-123456")), (Same, None));
    assert_eq!(of("acme", None, b""), (Same, None));
}

#[test]
fn of_an_answer_that_was_changed_what_is_left_holds_nothing_that_would_be() {
    let mut replayer = recorded();
    let mut of = |policy, body: &[u8]| {
        let end = completion(Outcome::Complete, Some(redacted(policy)));
        told(&replayer.replay_completion(&admission("acme", None), &end, Some(body)))
    };
    let part = Some("redacted_answer");
    let left = stream(&["ask [redacted:staff] of an alphasign"], DONE);
    assert_eq!(
        of(note(70, &["weak-a", "staff"]), &left),
        (Agreement::Consistent, part)
    );
    assert_eq!(of(note(10, &["staff"]), &left), (Agreement::Differs, part));
    // The pair outweighed both of them, and a part of it is gone.
    let outweighed = stream(&["alphasign or betasign of [redacted:staff]"], DONE);
    let pair = || note(70, &["weak-a", "weak-b", "staff", "pair"]);
    assert_eq!(of(pair(), &outweighed), (Agreement::Consistent, part));
    assert_eq!(
        of(note(70, &["weak-a", "weak-b", "staff"]), &outweighed),
        (Agreement::Differs, part)
    );
    assert_eq!(
        of(note(70, &["weak-a", "staff", "pair"]), &outweighed),
        (Agreement::Differs, part)
    );
    assert_eq!(
        of(pair(), &whole("alphasign bluebird")),
        (Agreement::Differs, part)
    );
    let unchanged = stream(&["ask staff-123456"], DONE);
    assert_eq!(of(note(10, &["staff"]), &unchanged), (Agreement::Differs, part));
    assert_eq!(
        of(note(100, &["codename", "staff"]), &whole("bluebird")),
        (Agreement::Differs, part)
    );
}

#[test]
fn of_an_answer_that_was_denied_its_rules_have_to_deny_and_what_left_before_may_not_be_denied() {
    let mut replayer = recorded();
    let mut of = |policy, body: &[u8]| {
        let end = completion(Outcome::PolicyBlocked, policy);
        told(&replayer.replay_completion(&admission("acme", None), &end, Some(body)))
    };
    let blocked = || Some(would_block(note(100, &["codename"])));
    let part = Some("blocked_answer");
    assert_eq!(
        of(blocked(), &stream(&["here. And "], OWN_END)),
        (Agreement::Consistent, part)
    );
    assert_eq!(of(blocked(), OWN_END.as_bytes()), (Agreement::Consistent, part));
    assert_eq!(
        of(blocked(), br#"{"error":{"code":"policy_blocked"}}"#),
        (Agreement::Consistent, part)
    );
    assert_eq!(
        of(Some(note(60, &["weak-a"])), OWN_END.as_bytes()),
        (Agreement::Differs, part)
    );
    let delivered = stream(&["of bluebird. ", "And "], OWN_END);
    assert_eq!(of(blocked(), &delivered), (Agreement::Differs, part));
    let nothing = Some("no_verdict_recorded");
    assert_eq!(of(None, OWN_END.as_bytes()), (Agreement::NotReplayable, nothing));
}

#[test]
fn of_an_answer_that_broke_off_what_left_is_what_the_record_tells_or_less() {
    let mut replayer = recorded();
    let mut of = |outcome, policy, body: &[u8]| {
        told(&replayer.replay_completion(&admission("acme", None), &completion(outcome, policy), Some(body)))
    };
    let part = Some("cut_short");
    let begun = stream(&["an alphasign, ", "so it "], "");
    let flagged = || Some(note(60, &["weak-a"]));
    assert_eq!(
        of(Outcome::ClientDisconnect, flagged(), &begun),
        (Agreement::Consistent, part)
    );
    assert_eq!(
        of(Outcome::ClientDisconnect, None, &begun),
        (Agreement::Differs, part)
    );
    assert_eq!(
        of(Outcome::UpstreamError, None, &whole("x")),
        (Agreement::NotReplayable, part)
    );
}

/// What the packs redact in their own examples contains nothing that would be redacted again; else honest answers would
/// differ.
#[test]
fn what_the_packs_have_redacted_stays_as_it_is() {
    let names: Vec<_> = pattern_pack_names().collect();
    let document = json!({
        "format": 2,
        "policy": {
            "packs": names,
            "budgetMilliseconds": 10_000,
            "actions": [{"packs": ["pii"], "scopes": ["Answer"], "action": "Redact"}],
        },
        "tenants": [{"name": "acme"}],
        "limits": {"bodyBytes": 1_000_000},
    });
    let mut replayer = replayer(&document, RuleSource::Recorded);
    let engine =
        proofgate_policy::Engine::compile(&serde_json::from_value(document["policy"].clone()).unwrap())
            .unwrap();
    let profile = engine.profile(None).unwrap();
    let mut scratch = proofgate_policy::Scratch::new();
    let mut reading = proofgate_inspect::ReadBuffers::default();
    let mut tried = 0;
    let mut wrong = Vec::new();
    for rule in pattern_pack_names().flat_map(|name| Pack::built_in(name).unwrap().rules) {
        for example in rule.examples.matching.iter().chain(&rule.examples.no_match) {
            let mut inspector = proofgate_inspect::ResponseInspector::new(
                proofgate_providers::Dialect::Chat,
                proofgate_inspect::ResponseKind::Unary,
                1_000_000,
            );
            let mut out = Vec::new();
            let body = whole(example);
            inspector
                .push(&engine, &profile, &mut scratch, &mut reading, &body, &mut out)
                .unwrap();
            let ended = inspector.finish(&engine, &profile, &mut scratch, &mut reading, &mut out);
            if ended.is_err() || !inspector.is_redacted() {
                continue;
            }
            tried += 1;
            let judgement = inspector.judgement();
            let matched = judgement
                .matched_rules()
                .map(|rule| engine.rule(rule).id.as_str());
            let note = PolicyNote::from_rules(judgement.score(), matched, true, false);
            let end = completion(Outcome::Complete, None);
            let end = Completion {
                policy: Some(note),
                ..end
            };
            let compared = replayer.replay_completion(&admission("acme", None), &end, Some(&out));
            if compared.result != Agreement::Consistent {
                wrong.push((
                    rule.id.clone(),
                    String::from_utf8_lossy(&out).into_owned(),
                    compared,
                ));
            }
        }
    }
    assert!(tried > 30, "{tried}");
    assert!(wrong.is_empty(), "{} of {tried}: {wrong:#?}", wrong.len());
}

/// A tenant whose calls of `Bash` are refused after a flagged tool text, and one whose calls need an approval.
fn guarding() -> serde_json::Value {
    let mut configuration = configuration();
    for (name, on_flag, mode) in [
        ("guarded", "Refuse", "Enforce"),
        ("approving", "RequireApproval", "Enforce"),
        ("watching", "Refuse", "DryRun"),
    ] {
        let guarded = json!({"names": ["Bash", "mcp__x__*"], "onFlag": on_flag});
        let tenant = json!({"name": name, "policy": {"mode": mode}, "guardedTools": guarded});
        configuration["tenants"].as_array_mut().unwrap().push(tenant);
    }
    configuration
}

fn calls(tool: &str) -> String {
    let function = json!({"name": tool, "arguments": "{}"});
    json!({"choices": [{"index": 0, "message": {"tool_calls": [{"function": function}]}}]}).to_string()
}

fn guarded_call(tool: &'static str, verdict: GuardVerdict) -> PolicyNote<'static> {
    PolicyNote {
        guarded_call: Some(GuardedCall {
            tool: tool.into(),
            verdict,
            approval: None,
        }),
        would_block: verdict == GuardVerdict::Observed,
        ..PolicyNote::default()
    }
}

/// Replays an answer of `tenant` to a request with or without a flagged tool text.
fn replay_guarded(
    (tenant, is_flagged): (&'static str, bool),
    outcome: Outcome,
    note: Option<PolicyNote<'static>>,
    body: Option<&str>,
) -> (Agreement, Option<&'static str>) {
    let from_tool = FlaggedToolText {
        scope: "tool_result".into(),
        message: Some("messages[2]".into()),
        count: 1,
    };
    let flagged = PolicyNote {
        from_tool: Some(from_tool),
        ..note_of_flag()
    };
    let admission = admission(tenant, is_flagged.then_some(flagged));
    let mut completion = completion(outcome, None);
    completion.policy = note;
    let mut replayer = replayer(&guarding(), RuleSource::Recorded);
    let compared = replayer.replay_completion(&admission, &completion, body.map(str::as_bytes));
    (compared.result, compared.reason)
}

fn note_of_flag() -> PolicyNote<'static> {
    note(60, &["weak-a"])
}

#[test]
fn an_answer_with_a_guarded_call_has_to_be_what_the_record_says_of_it() {
    use GuardVerdict::{ApprovalRequired, Approved, Observed, Refused};
    let (bash, read) = (calls("Bash"), calls("Read"));
    let flagged = |tenant| (tenant, true);
    let complete = Outcome::Complete;
    for (tenant, note, body, expected) in [
        (flagged("guarded"), None, &read, Agreement::Same),
        (flagged("guarded"), None, &bash, Agreement::Differs),
        (("guarded", false), None, &bash, Agreement::Same),
        (flagged("acme"), None, &bash, Agreement::Same),
        (
            flagged("approving"),
            Some(guarded_call("Bash", Approved)),
            &bash,
            Agreement::Same,
        ),
        (
            flagged("approving"),
            Some(guarded_call("Bash", Approved)),
            &read,
            Agreement::Differs,
        ),
        (
            flagged("watching"),
            Some(guarded_call("Bash", Observed)),
            &bash,
            Agreement::Same,
        ),
        (flagged("watching"), None, &bash, Agreement::Differs),
    ] {
        let told = format!("{tenant:?} {note:?}");
        let (result, _) = replay_guarded(tenant, complete, note, Some(body));
        assert_eq!(result, expected, "{told}");
    }
    // The refused call is not in the body: a replay can only show that it could have been refused.
    let blocked = Outcome::PolicyBlocked;
    for (tenant, verdict, expected) in [
        (flagged("guarded"), Refused, Agreement::Consistent),
        (("guarded", false), Refused, Agreement::Differs),
        (flagged("guarded"), ApprovalRequired, Agreement::Differs),
        (flagged("approving"), ApprovalRequired, Agreement::Consistent),
        (flagged("acme"), Refused, Agreement::Differs),
    ] {
        for body in [
            None,
            Some(r#"{"error":{"message":"m"}}"#),
            Some("data: {\"choices\":[]}\n\ndata: {\"error\":{}}\n\n"),
        ] {
            let note = Some(guarded_call("Bash", verdict));
            let replayed = replay_guarded(tenant, blocked, note, body);
            assert_eq!(
                replayed,
                (expected, Some("guarded_call")),
                "{tenant:?} {verdict:?} {body:?}"
            );
        }
        let other = Some(guarded_call("Write", verdict));
        assert_eq!(replay_guarded(tenant, blocked, other, None).0, Agreement::Differs);
    }
}
