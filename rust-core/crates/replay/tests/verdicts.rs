//! A verdict is reproduced exactly when the rules reach it, whatever a body contains.
#![allow(clippy::unwrap_used, reason = "a test may stop at the first failure")]

mod support;

use proofgate_ledger::record::{Admission, Outcome, PolicyNote};
use proofgate_replay::{Agreement, Replayer, RuleSource, VerdictKind};
use proptest::prelude::*;
use serde_json::json;
use support::*;

#[test]
fn an_admitted_request_has_the_verdict_that_its_rules_come_to_or_it_differs() {
    let mut replayer = recorded();
    let mut of = |tenant, policy, text: &str| {
        let compared = replayer.replay_admission(&admission(tenant, policy), Some(&prompt(text)));
        assert_eq!(compared.reason, None);
        (compared.result, compared.replayed.unwrap().verdict)
    };
    use Agreement::{Differs, Same};
    assert_eq!(of("acme", None, "hello"), (Same, VerdictKind::Allow));
    assert_eq!(
        of("acme", Some(note(60, &["weak-a"])), "alphasign"),
        (Same, VerdictKind::Flag)
    );
    assert_eq!(of("acme", None, "alphasign"), (Differs, VerdictKind::Flag));
    assert_eq!(
        of("acme", Some(note(60, &["weak-a"])), "hello"),
        (Differs, VerdictKind::Allow)
    );
    assert_eq!(
        of("acme", Some(note(61, &["weak-a"])), "alphasign"),
        (Differs, VerdictKind::Flag)
    );
    assert_eq!(
        of("acme", Some(redacted(note(0, &["staff"]))), "staff-123456"),
        (Same, VerdictKind::Redact)
    );
    assert_eq!(
        of("acme", Some(note(0, &["staff"])), "staff-123456"),
        (Differs, VerdictKind::Redact)
    );
    assert_eq!(
        of("acme", Some(note(100, &["codename"])), "bluebird"),
        (Differs, VerdictKind::Block)
    );
    assert_eq!(
        of("dry", Some(would_block(note(100, &["codename"]))), "bluebird"),
        (Same, VerdictKind::WouldBlock)
    );
    assert_eq!(of("mild", None, "alphasign"), (Same, VerdictKind::Allow));
    assert_eq!(
        of("mild", Some(note(100, &["codename"])), "bluebird"),
        (Same, VerdictKind::Flag)
    );
}

#[test]
fn a_refused_request_is_replayed_with_its_body_and_without_it_its_rules_have_to_deny() {
    let mut replayer = recorded();
    let mut of = |code, policy, body: Option<&str>| {
        let body = body.map(prompt);
        replayer
            .replay_rejection(&rejection(code, policy), body.as_deref())
            .map(|compared| told(&compared))
    };
    let blocked = || Some(would_block(note(100, &["codename"])));
    let scored = || Some(would_block(note(120, &["weak-a", "weak-b"])));
    use Agreement::{Consistent, Differs, NotReplayable, Same};
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
        let compared = replayer.replay_admission(&admission, body.as_deref());
        assert_eq!(compared.result, Agreement::NotReplayable);
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
    let mut of = |policy, text: &str| {
        told(&replayer.replay_admission(&admission("asks", policy), Some(&prompt(text))))
    };
    use Agreement::{Consistent, Differs};
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
    let mut of = |policy| told(&replayer.replay_completion(&admission("asks", policy), &end, Some(&answer)));
    assert_eq!(of(None), (Agreement::Same, None));
    assert_eq!(of(Some(note(60, &["weak-a"]))), (Agreement::Same, None));
    assert_eq!(of(Some(note(0, &["python/seen"]))), (Agreement::Same, None));
    assert_eq!(of(more()), (Agreement::NotReplayable, part));
}

#[test]
fn what_rules_deny_differs_also_where_others_would_be_asked_behind_them() {
    let mut replayer = recorded();
    let compared = replayer.replay_admission(&admission("asks", None), Some(&prompt("bluebird")));
    assert_eq!(told(&compared), (Agreement::Differs, None));
    let named = Some(note(0, &["python/seen"]));
    let compared = replayer.replay_admission(&admission("asks", named), Some(&prompt("bluebird")));
    assert_eq!(told(&compared), (Agreement::Differs, Some("other_policy")));
}

#[test]
fn other_rules_decide_otherwise_or_the_same_whatever_scores_say() {
    let mut document = configuration();
    document["policy"]["rules"][1]["score"] = json!(1);
    document["policy"]["rules"][3]["action"] = json!("Flag");
    let mut replayer = replayer(&document, RuleSource::Other);
    let mut of = |policy, text: &str| {
        let compared = replayer.replay_admission(&admission("nobody", policy), Some(&prompt(text)));
        (compared.result, compared.replayed.unwrap().verdict)
    };
    let flagged = Some(note(60, &["weak-a"]));
    assert_eq!(of(flagged, "alphasign"), (Agreement::Same, VerdictKind::Flag));
    assert_eq!(
        of(Some(redacted(note(0, &["staff"]))), "staff-123456"),
        (Agreement::Differs, VerdictKind::Flag)
    );
    let changed = completion(Outcome::Complete, Some(redacted(note(0, &["staff"]))));
    let left = whole("ask [redacted:staff]");
    let compared = replayer.replay_completion(&admission("acme", None), &changed, Some(&left));
    assert_eq!(
        told(&compared),
        (Agreement::NotReplayable, Some("redacted_answer"))
    );
    let compared = replayer.replay_completion(&admission("acme", None), &changed, Some(&whole("bluebird")));
    assert_eq!(told(&compared), (Agreement::Differs, None));
}

#[test]
fn a_token_that_is_longer_than_its_match_is_replayed_with_its_rest() {
    let mut document = configuration();
    let token_rule = json!({
        "id": "token", "reason": "r", "regex": "tok_[a-z]{8,64}", "extent": "Token", "score": 0, "action": "Redact",
    });
    document["policy"]["rules"]
        .as_array_mut()
        .unwrap()
        .push(token_rule);
    let mut replayer = replayer(&document, RuleSource::Recorded);
    let token = format!("use tok_{} please", "abcdefgh".repeat(300));
    let taken = || Some(redacted(note(0, &["token"])));
    let mut request = |policy| {
        let compared = replayer.replay_admission(&admission("acme", policy), Some(&prompt(&token)));
        (compared.result, compared.replayed.unwrap().verdict)
    };
    assert_eq!(request(taken()), (Agreement::Same, VerdictKind::Redact));
    assert_eq!(request(None), (Agreement::Differs, VerdictKind::Redact));
    let mut answer = |policy, text: &str| {
        let end = completion(Outcome::Complete, policy);
        told(&replayer.replay_completion(&admission("acme", None), &end, Some(&whole(text))))
    };
    let part = Some("redacted_answer");
    assert_eq!(
        answer(taken(), "use [redacted:token] please"),
        (Agreement::Consistent, part)
    );
    assert_eq!(answer(taken(), &token), (Agreement::Differs, part));
    assert_eq!(answer(None, &token), (Agreement::Differs, None));
}

#[test]
fn tenants_of_shards_are_replayed_where_all_plans_say_the_same() {
    let mut document = configuration();
    document["plans"] = json!([
        {"name": "a", "policy": {"action": "Flag"}, "policies": []},
        {"name": "b", "policy": {"action": "Flag"}, "policies": []},
    ]);
    let stranger = admission("ns/stranger", Some(note(10, &["staff"])));
    let mut same = replayer(&document, RuleSource::Recorded);
    assert_eq!(
        told(&same.replay_admission(&stranger, Some(&prompt("staff-123456")))),
        (Agreement::Same, None)
    );
    document["plans"][1]["policy"] = json!(null);
    let mut differ = replayer(&document, RuleSource::Recorded);
    let compared = differ.replay_admission(&stranger, Some(&prompt("staff-123456")));
    assert_eq!(
        told(&compared),
        (Agreement::NotReplayable, Some("tenant_unknown"))
    );
}

#[test]
fn a_configuration_of_another_form_is_refused_without_what_it_says() {
    for (text, said) in [
        ("{\"format\":2,\"policy\": \"hunter2\"}", "line 1, column"),
        ("{\"format\":2}", "line 1, column"),
        ("{\"policy\": \"hunter2\"}", "archived by an earlier version"),
        ("{\"format\":1}", "archived by an earlier version"),
        ("[", "line 1, column"),
        (
            "{\"format\":2,\"policy\":{\"packs\":[\"none\"]},\"limits\":{\"bodyBytes\":1}}",
            "its rules are refused",
        ),
    ] {
        let error = Replayer::new(text.as_bytes(), RuleSource::Recorded)
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
        let compared = replayer.replay_admission(&admission("acme", None), Some(body));
        assert_ne!(compared.result, Agreement::Same, "{} bytes", body.len());
        let end = completion(Outcome::Complete, None);
        let _ = replayer.replay_completion(&admission("acme", None), &end, Some(body));
        let events = [b"data: ", body, b"\n\n"].concat();
        let _ = replayer.replay_completion(&admission("acme", None), &end, Some(&events));
    }
    let compared = replayer.replay_admission(&admission("acme", None), Some(&prompt("hello")));
    assert_eq!(compared.result, Agreement::Same);
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
                replayer.replay_completion(&admission("acme", None), &completion(outcome, None), Some(&body));
            prop_assert_ne!(compared.reason, Some("policy_panic"));
        }
        let compared = replayer.replay_admission(&admission("acme", None), Some(&body));
        prop_assert_ne!(compared.reason, Some("policy_panic"));
    }
}
