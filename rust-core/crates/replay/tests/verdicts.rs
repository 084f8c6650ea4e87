//! A verdict comes out again exactly when the rules come to it, whatever a body holds.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may stop at the first failure"
)]

use std::borrow::Cow;

use proofgate_ledger::record::{Admission, Completion, ConfigId, Outcome, PolicyNote, Rejection};
use proofgate_policy::{Action, Pack, pack_names};
use proofgate_replay::{Basis, Compared, Replayer, Standing, Word};
use proptest::prelude::*;
use serde_json::json;

const CHAT: &str = "/v1/chat/completions";

fn rules() -> serde_json::Value {
    json!([
        {"id": "codename", "reason": "r", "literals": ["bluebird"], "score": 100, "action": "block"},
        {"id": "weak-a", "reason": "r", "literals": ["alphasign"], "score": 60, "action": "flag"},
        {"id": "weak-b", "reason": "r", "literals": ["betasign"], "score": 60, "action": "flag"},
        {"id": "staff", "reason": "r", "regex": "staff-[0-9]{6}", "score": 10, "action": "redact"},
        {"id": "asked", "reason": "r", "literals": ["gammasign"], "target": "request", "score": 1, "action": "flag"},
    ])
}

fn configuration() -> serde_json::Value {
    json!({
        "policy": {"rules": rules(), "budget_us": 1_000_000},
        "tenants": [
            {"name": "acme", "policy": null, "policies": []},
            {"name": "dry", "policy": {"mode": "dry_run"}},
            {"name": "asks", "policies": ["python"]},
            {"name": "mild", "policy": {"action": "flag", "threshold": 1000, "disabled_rules": ["weak-a"]}},
        ],
        "limits": {"body_bytes": 65536},
        "unknown": "is passed over",
    })
}

fn replayer(document: &serde_json::Value, basis: Basis) -> Replayer {
    Replayer::new(document.to_string().as_bytes(), basis).unwrap()
}

fn recorded() -> Replayer {
    replayer(&configuration(), Basis::Recorded)
}

fn note(score: u32, rules: &[&'static str]) -> PolicyNote<'static> {
    PolicyNote {
        score,
        rules: rules.iter().map(|rule| Cow::Borrowed(*rule)).collect(),
        ..PolicyNote::default()
    }
}

fn redacted(note: PolicyNote<'static>) -> PolicyNote<'static> {
    PolicyNote {
        redacted: true,
        ..note
    }
}

fn would_block(note: PolicyNote<'static>) -> PolicyNote<'static> {
    PolicyNote {
        would_block: true,
        ..note
    }
}

fn admission(tenant: &'static str, policy: Option<PolicyNote<'static>>) -> Admission<'static> {
    let text = json!({
        "seq": 1, "ts": 1, "id": "req_1", "tenant": tenant, "tenant_seq": 1, "key": "k", "model": "m", "provider": "p",
        "upstream_model": "m", "endpoint": CHAT, "stream": false, "bytes": 0,
        "request": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "reserved": null, "config": "0000000000000000",
    });
    let text = Box::leak(text.to_string().into_boxed_str());
    Admission {
        policy,
        ..serde_json::from_str(text).unwrap()
    }
}

fn completion(outcome: Outcome, policy: Option<PolicyNote<'static>>) -> Completion<'static> {
    let text = json!({
        "seq": 2, "ts": 2, "id": "req_1", "admission": 1, "status": 200, "upstream_status": 200, "outcome": "complete",
        "bytes": 0, "response": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "usage": null, "charged": null,
        "duration_us": 1, "config": "0000000000000000",
    });
    let text = Box::leak(text.to_string().into_boxed_str());
    Completion {
        outcome,
        policy,
        ..serde_json::from_str(text).unwrap()
    }
}

fn rejection(code: &'static str, policy: Option<PolicyNote<'static>>) -> Rejection<'static> {
    Rejection {
        seq: 1,
        ts: 1,
        id: "req_1".into(),
        tenant: Some("acme".into()),
        counted: None,
        status: 403,
        code: code.into(),
        endpoint: Some(CHAT.into()),
        bytes: 0,
        policy,
        config: ConfigId::default(),
    }
}

fn prompt(text: &str) -> Vec<u8> {
    json!({"model": "m", "messages": [{"role": "user", "content": text}]})
        .to_string()
        .into_bytes()
}

fn whole(text: &str) -> Vec<u8> {
    let message = json!({"role": "assistant", "content": text});
    json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        .to_string()
        .into_bytes()
}

fn stream(pieces: &[&str], done: &str) -> Vec<u8> {
    let events = pieces.iter().map(|piece| {
        let event = json!({"choices": [{"index": 0, "delta": {"content": piece}}]});
        format!("data: {event}\n\n")
    });
    (events.collect::<String>() + done).into_bytes()
}

const DONE: &str = "data: [DONE]\n\n";
const OWN_END: &str = "data: {\"error\":{\"message\":\"Denied by the policy rule codename: bluebird\",\"code\":\"policy_blocked\"}}\n\n";

fn told(compared: &Compared) -> (Standing, Option<&'static str>) {
    (compared.result, compared.reason)
}

#[test]
fn an_admitted_request_has_the_verdict_that_its_rules_come_to_or_it_differs() {
    let mut replayer = recorded();
    let mut of = |tenant, policy, text: &str| {
        let compared = replayer.admitted(&admission(tenant, policy), Some(&prompt(text)));
        assert_eq!(compared.reason, None);
        (compared.result, compared.replayed.unwrap().verdict)
    };
    use Standing::{Differs, Same};
    assert_eq!(of("acme", None, "hello"), (Same, Word::Allow));
    assert_eq!(
        of("acme", Some(note(60, &["weak-a"])), "alphasign"),
        (Same, Word::Flag)
    );
    assert_eq!(of("acme", None, "alphasign"), (Differs, Word::Flag));
    assert_eq!(
        of("acme", Some(note(60, &["weak-a"])), "hello"),
        (Differs, Word::Allow)
    );
    assert_eq!(
        of("acme", Some(note(61, &["weak-a"])), "alphasign"),
        (Differs, Word::Flag)
    );
    assert_eq!(
        of("acme", Some(redacted(note(10, &["staff"]))), "staff-123456"),
        (Same, Word::Redact)
    );
    assert_eq!(
        of("acme", Some(note(10, &["staff"])), "staff-123456"),
        (Differs, Word::Redact)
    );
    assert_eq!(
        of("acme", Some(note(100, &["codename"])), "bluebird"),
        (Differs, Word::Block)
    );
    assert_eq!(
        of("dry", Some(would_block(note(100, &["codename"]))), "bluebird"),
        (Same, Word::WouldBlock)
    );
    assert_eq!(of("mild", None, "alphasign"), (Same, Word::Allow));
    assert_eq!(
        of("mild", Some(note(100, &["codename"])), "bluebird"),
        (Same, Word::Flag)
    );
}

#[test]
fn a_refused_request_is_replayed_with_its_body_and_without_it_its_rules_have_to_deny() {
    let mut replayer = recorded();
    let mut of = |code, policy, body: Option<&str>| {
        let body = body.map(prompt);
        replayer
            .rejected(&rejection(code, policy), body.as_deref())
            .map(|compared| told(&compared))
    };
    let blocked = || Some(would_block(note(100, &["codename"])));
    let scored = || Some(would_block(note(120, &["weak-a", "weak-b"])));
    use Standing::{Consistent, Differs, NotReplayable, Same};
    assert_eq!(
        of("policy_blocked", blocked(), Some("bluebird")),
        Some((Same, None))
    );
    assert_eq!(
        of("policy_blocked", blocked(), Some("hello")),
        Some((Differs, None))
    );
    let parts = Some("rules_and_score");
    assert_eq!(of("policy_blocked", blocked(), None), Some((Consistent, parts)));
    assert_eq!(of("policy_blocked", scored(), None), Some((Consistent, parts)));
    assert_eq!(
        of("policy_blocked", Some(note(60, &["weak-a"])), None),
        Some((Differs, parts))
    );
    assert_eq!(
        of("policy_blocked", Some(note(200, &["weak-a"])), None),
        Some((Differs, parts))
    );
    assert_eq!(
        of("policy_blocked", Some(note(100, &["nothing"])), None),
        Some((Differs, parts))
    );
    assert_eq!(of("policy_blocked", None, None), Some((Differs, parts)));
    let more = PolicyNote {
        unnamed: 1,
        ..note(60, &["weak-a"])
    };
    assert_eq!(
        of("policy_blocked", Some(more), None),
        Some((NotReplayable, Some("not_stored")))
    );
    let others = Some("other_policy");
    let denied = || Some(note(0, &["python/denied"]));
    assert_eq!(
        of("policy_blocked", denied(), Some("hello")),
        Some((Consistent, others))
    );
    assert_eq!(
        of("policy_blocked", denied(), Some("bluebird")),
        Some((Differs, others))
    );
    assert_eq!(
        of("policy_blocked", denied(), None),
        Some((NotReplayable, Some("not_stored")))
    );
    assert_eq!(
        of("policy_budget", None, Some("hello")),
        Some((NotReplayable, Some("no_verdict_recorded")))
    );
    assert_eq!(of("rate_limit_exceeded", None, Some("hello")), None);
}

#[test]
fn what_cannot_be_replayed_is_told_with_its_reason() {
    let mut replayer = recorded();
    let mut of = |admission: Admission<'_>, body: Option<&str>| {
        let body = body.map(prompt);
        let compared = replayer.admitted(&admission, body.as_deref());
        assert_eq!(compared.result, Standing::NotReplayable);
        compared.reason.unwrap()
    };
    assert_eq!(of(admission("acme", None), None), "not_stored");
    assert_eq!(of(admission("nobody", None), Some("hello")), "tenant_unknown");
    let form = Admission {
        endpoint: "/v1/audio/transcriptions".into(),
        ..admission("acme", None)
    };
    assert_eq!(of(form, Some("hello")), "form");
    let batch = Admission {
        endpoint: "POST /v1/batches".into(),
        ..admission("acme", None)
    };
    assert_eq!(of(batch, Some("hello")), "endpoint");
    let silent = would_block(note(0, &[]));
    assert_eq!(
        of(admission("dry", Some(silent)), Some("hello")),
        "no_verdict_recorded"
    );
}

#[test]
fn what_others_found_behind_the_rules_is_left_to_them_and_the_rules_have_to_agree() {
    let mut replayer = recorded();
    let mut of =
        |policy, text: &str| told(&replayer.admitted(&admission("asks", policy), Some(&prompt(text))));
    use Standing::{Consistent, Differs};
    let part = Some("other_policy");
    assert_eq!(of(None, "hello"), (Consistent, part));
    assert_eq!(of(None, "alphasign"), (Differs, part));
    assert_eq!(of(Some(note(60, &["weak-a"])), "alphasign"), (Consistent, part));
    assert_eq!(of(Some(note(60, &["weak-a"])), "hello"), (Differs, part));
    let more = || Some(redacted(note(75, &["weak-a", "python/masked"])));
    assert_eq!(of(more(), "alphasign"), (Consistent, part));
    assert_eq!(of(more(), "hello"), (Differs, part));
    assert_eq!(
        of(Some(note(59, &["weak-a", "python/seen"])), "alphasign"),
        (Differs, part)
    );
    assert_eq!(
        of(Some(note(10, &["staff", "python/seen"])), "staff-123456"),
        (Differs, part)
    );

    let end = completion(Outcome::Complete, Some(note(60, &["weak-a"])));
    let answer = whole("alphasign");
    let mut of = |policy| told(&replayer.answered(&admission("asks", policy), &end, Some(&answer)));
    assert_eq!(of(None), (Standing::Same, None));
    assert_eq!(of(Some(note(60, &["weak-a"]))), (Standing::Same, None));
    assert_eq!(of(Some(note(0, &["python/seen"]))), (Standing::Same, None));
    assert_eq!(of(more()), (Standing::NotReplayable, part));
}

#[test]
fn what_rules_deny_differs_also_where_others_would_be_asked_behind_them() {
    let mut replayer = recorded();
    let compared = replayer.admitted(&admission("asks", None), Some(&prompt("bluebird")));
    assert_eq!(told(&compared), (Standing::Differs, None));
    let named = Some(note(0, &["python/seen"]));
    let compared = replayer.admitted(&admission("asks", named), Some(&prompt("bluebird")));
    assert_eq!(told(&compared), (Standing::Differs, Some("other_policy")));
}

#[test]
fn an_answer_that_was_not_changed_has_its_verdict_however_it_came() {
    let mut replayer = recorded();
    let mut of = |tenant, policy, body: &[u8]| {
        let end = completion(Outcome::Complete, policy);
        told(&replayer.answered(&admission(tenant, None), &end, Some(body)))
    };
    let flagged = || Some(note(60, &["weak-a"]));
    use Standing::{Differs, Same};
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
    let would = || Some(would_block(note(110, &["codename", "staff"])));
    assert_eq!(of("dry", would(), &whole("bluebird staff-123456")), (Same, None));
    assert_eq!(of("acme", None, b""), (Same, None));
}

#[test]
fn of_an_answer_that_was_changed_what_is_left_holds_nothing_that_would_be() {
    let mut replayer = recorded();
    let mut of = |policy, body: &[u8]| {
        let end = completion(Outcome::Complete, Some(redacted(policy)));
        told(&replayer.answered(&admission("acme", None), &end, Some(body)))
    };
    let part = Some("redacted_answer");
    let left = stream(&["ask [redacted:staff] of an alphasign"], DONE);
    assert_eq!(
        of(note(70, &["weak-a", "staff"]), &left),
        (Standing::Consistent, part)
    );
    assert_eq!(of(note(10, &["staff"]), &left), (Standing::Differs, part));
    let unchanged = stream(&["ask staff-123456"], DONE);
    assert_eq!(of(note(10, &["staff"]), &unchanged), (Standing::Differs, part));
    assert_eq!(
        of(note(110, &["codename", "staff"]), &whole("bluebird")),
        (Standing::Differs, part)
    );
}

#[test]
fn of_an_answer_that_was_denied_its_rules_have_to_deny_and_what_left_before_may_not_be_denied() {
    let mut replayer = recorded();
    let mut of = |policy, body: &[u8]| {
        let end = completion(Outcome::PolicyBlocked, policy);
        told(&replayer.answered(&admission("acme", None), &end, Some(body)))
    };
    let blocked = || Some(would_block(note(100, &["codename"])));
    let part = Some("blocked_answer");
    assert_eq!(
        of(blocked(), &stream(&["here. And "], OWN_END)),
        (Standing::Consistent, part)
    );
    assert_eq!(of(blocked(), OWN_END.as_bytes()), (Standing::Consistent, part));
    assert_eq!(
        of(blocked(), br#"{"error":{"code":"policy_blocked"}}"#),
        (Standing::Consistent, part)
    );
    assert_eq!(
        of(Some(note(60, &["weak-a"])), OWN_END.as_bytes()),
        (Standing::Differs, part)
    );
    let delivered = stream(&["of bluebird. ", "And "], OWN_END);
    assert_eq!(of(blocked(), &delivered), (Standing::Differs, part));
    let nothing = Some("no_verdict_recorded");
    assert_eq!(of(None, OWN_END.as_bytes()), (Standing::NotReplayable, nothing));
}

#[test]
fn of_an_answer_that_broke_off_what_left_is_what_the_record_tells_or_less() {
    let mut replayer = recorded();
    let mut of = |outcome, policy, body: &[u8]| {
        told(&replayer.answered(&admission("acme", None), &completion(outcome, policy), Some(body)))
    };
    let part = Some("cut_short");
    let begun = stream(&["an alphasign, ", "so it "], "");
    let flagged = || Some(note(60, &["weak-a"]));
    assert_eq!(
        of(Outcome::ClientDisconnect, flagged(), &begun),
        (Standing::Consistent, part)
    );
    assert_eq!(
        of(Outcome::ClientDisconnect, None, &begun),
        (Standing::Differs, part)
    );
    assert_eq!(
        of(Outcome::UpstreamError, None, &whole("x")),
        (Standing::NotReplayable, part)
    );
}

#[test]
fn other_rules_decide_otherwise_or_the_same_whatever_scores_say() {
    let mut document = configuration();
    document["policy"]["rules"][1]["score"] = json!(1);
    document["policy"]["rules"][3]["action"] = json!("flag");
    let mut replayer = replayer(&document, Basis::Other);
    let mut of = |policy, text: &str| {
        let compared = replayer.admitted(&admission("nobody", policy), Some(&prompt(text)));
        (compared.result, compared.replayed.unwrap().verdict)
    };
    let flagged = Some(note(60, &["weak-a"]));
    assert_eq!(of(flagged, "alphasign"), (Standing::Same, Word::Flag));
    assert_eq!(
        of(Some(redacted(note(10, &["staff"]))), "staff-123456"),
        (Standing::Differs, Word::Flag)
    );
    let changed = completion(Outcome::Complete, Some(redacted(note(10, &["staff"]))));
    let left = whole("ask [redacted:staff]");
    let compared = replayer.answered(&admission("acme", None), &changed, Some(&left));
    assert_eq!(
        told(&compared),
        (Standing::NotReplayable, Some("redacted_answer"))
    );
    let compared = replayer.answered(&admission("acme", None), &changed, Some(&whole("bluebird")));
    assert_eq!(told(&compared), (Standing::Differs, None));
}

#[test]
fn tenants_of_shards_are_replayed_where_all_plans_say_the_same() {
    let mut document = configuration();
    document["plans"] = json!([
        {"name": "a", "policy": {"action": "flag"}, "policies": []},
        {"name": "b", "policy": {"action": "flag"}, "policies": []},
    ]);
    let stranger = admission("ns/stranger", Some(note(10, &["staff"])));
    let mut same = replayer(&document, Basis::Recorded);
    assert_eq!(
        told(&same.admitted(&stranger, Some(&prompt("staff-123456")))),
        (Standing::Same, None)
    );
    document["plans"][1]["policy"] = json!(null);
    let mut differ = replayer(&document, Basis::Recorded);
    let compared = differ.admitted(&stranger, Some(&prompt("staff-123456")));
    assert_eq!(told(&compared), (Standing::NotReplayable, Some("tenant_unknown")));
}

#[test]
fn a_configuration_of_another_form_is_refused_without_what_it_says() {
    for (text, said) in [
        ("{\"policy\": \"hunter2\"}", "line 1, column"),
        ("{}", "line 1, column"),
        ("[", "line 1, column"),
        (
            "{\"policy\":{\"packs\":[\"none\"]},\"limits\":{\"body_bytes\":1}}",
            "its rules are refused",
        ),
    ] {
        let error = Replayer::new(text.as_bytes(), Basis::Recorded)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains(said), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn hostile_bodies_cost_no_more_than_their_verdict() {
    let mut replayer = recorded();
    let deep = [b"[".repeat(200_000), b"]".repeat(200_000)].concat();
    let nested = [br#"{"model":"m","messages":"#.as_slice(), &deep, b"}"].concat();
    let many = format!(
        "{{\"model\":\"m\",\"messages\":[{}0]}}",
        "\"staff-123456\",".repeat(200_000)
    );
    let bodies: [&[u8]; 5] = [&deep, &nested, b"\xff\xfe", many.as_bytes(), b""];
    for body in bodies {
        let compared = replayer.admitted(&admission("acme", None), Some(body));
        assert_ne!(compared.result, Standing::Same, "{} bytes", body.len());
        let end = completion(Outcome::Complete, None);
        let _ = replayer.answered(&admission("acme", None), &end, Some(body));
        let events = [b"data: ", body, b"\n\n"].concat();
        let _ = replayer.answered(&admission("acme", None), &end, Some(&events));
    }
    let compared = replayer.admitted(&admission("acme", None), Some(&prompt("hello")));
    assert_eq!(compared.result, Standing::Same);
}

/// What redacts its own examples leaves nothing that would be redacted: else honest answers would differ.
#[test]
fn what_the_packs_have_redacted_stays_as_it_is() {
    let names: Vec<_> = pack_names().collect();
    let document = json!({
        "policy": {"packs": names, "budget_us": 10_000_000},
        "tenants": [{"name": "acme"}],
        "limits": {"body_bytes": 1_000_000},
    });
    let mut replayer = replayer(&document, Basis::Recorded);
    let engine =
        proofgate_policy::Engine::compile(&serde_json::from_value(document["policy"].clone()).unwrap())
            .unwrap();
    let profile = engine.profile(None).unwrap();
    let mut scratch = proofgate_policy::Scratch::new();
    let mut reading = proofgate_inspect::Reading::default();
    let mut tried = 0;
    let mut wrong = Vec::new();
    for rule in pack_names().flat_map(|name| Pack::built_in(name).unwrap().rules) {
        for example in rule
            .examples
            .matching
            .iter()
            .filter(|_| rule.action == Action::Redact)
        {
            let mut inspector = proofgate_inspect::ResponseInspector::new(
                proofgate_providers::Dialect::Chat,
                proofgate_inspect::AnswerKind::Unary,
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
            let matched = judgement.matched().map(|rule| engine.rule(rule).id.as_str());
            let note = PolicyNote::of(judgement.score(), matched, true, false);
            let end = completion(Outcome::Complete, None);
            let end = Completion {
                policy: Some(note),
                ..end
            };
            let compared = replayer.answered(&admission("acme", None), &end, Some(&out));
            if compared.result != Standing::Consistent {
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_panic(body in proptest::collection::vec(any::<u8>(), 0..200), kind in 0..3_usize) {
        let mut replayer = recorded();
        let begin: &[u8] = [b"".as_slice(), b"data: ", b"{"][kind];
        let body = [begin, &body].concat();
        for outcome in Outcome::ALL {
            let compared =
                replayer.answered(&admission("acme", None), &completion(outcome, None), Some(&body));
            prop_assert_ne!(compared.reason, Some("policy_panic"));
        }
        let compared = replayer.admitted(&admission("acme", None), Some(&body));
        prop_assert_ne!(compared.reason, Some("policy_panic"));
    }
}
