//! The verdict on a request is the same whether messages that were scanned before are scanned again or not, whatever
//! sessions send in whatever order. The input is a program: each byte that is not a text's is a step.
#![no_main]

use std::cell::RefCell;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use proofgate_inspect::{
    MIN_CACHED_RUN_BYTES, RequestInspection, ScanCache, TenantScanCache, inspect_request,
};
use proofgate_json::Workspace;
use proofgate_policy::{Budget, Engine, PolicyConfig, Profile, Scratch, TenantPolicy};
use proofgate_providers::{BodyText, Dialect, ParsedRequest};
use serde_json::json;

/// Short rules, so that random texts match them; the second one has one rule more, a learned score.
const RULES: [&str; 2] = [
    r#"{"threshold": 100, "rules": [
        {"id": "literals", "reason": "-", "literals": ["ab", "b c"], "score": 30, "action": "Redact"},
        {"id": "folded", "reason": "-", "regex": "x[yz]{1,6}x|\\byes\\b", "score": 60, "action": "Flag"},
        {"id": "text", "reason": "-", "view": "Text", "regex": "\\bsk-[A-Za-z0-9]{3,8}\\b", "score": 100, "action": "Block"}
    ]}"#,
    r#"{"threshold": 100, "packs": ["instruction-likeness"], "rules": [
        {"id": "literals", "reason": "-", "literals": ["ba", "c b"], "score": 30, "action": "Redact"},
        {"id": "folded", "reason": "-", "regex": "y[xz]{1,6}y|\\bno\\b", "score": 60, "action": "Flag"},
        {"id": "text", "reason": "-", "view": "Text", "regex": "\\bab-[A-Za-z0-9]{3,8}\\b", "score": 100, "action": "Block"}
    ]}"#,
];
const ROLES: [&str; 4] = ["system", "user", "assistant", "tool"];
const TENANTS: [&str; 2] = ["a", "b"];
const MOST_MESSAGES: usize = 8;
/// Bytes: room for five messages.
const MOST: usize = 640;

struct Policy {
    engine: Engine,
    profiles: [Profile; 2],
}

thread_local! {
    static POLICIES: RefCell<([Policy; 2], Scratch)> = RefCell::new((RULES.map(policy), Scratch::new()));
}

fn policy(rules: &str) -> Policy {
    let config: PolicyConfig = serde_json::from_str(rules).expect("it is a policy");
    let engine = Engine::compile(&config).expect("its rules are right");
    let tenant = json!({"actions": [{"rules": ["folded"], "action": "Ignore"}]});
    let tenant: TenantPolicy = serde_json::from_value(tenant).expect("it is a tenant's policy");
    let profiles = [None, Some(&tenant)].map(|tenant| engine.profile(tenant).expect("it fits"));
    Policy { engine, profiles }
}

/// A session as it is now: role and texts of each message, and under what it is judged.
#[derive(Default)]
struct Session {
    messages: Vec<(usize, Vec<String>)>,
    tenant: usize,
    profile: usize,
    policy: usize,
}

impl Session {
    fn body(&self) -> String {
        let messages = self.messages.iter().map(|(role, texts)| {
            let parts: Vec<_> = texts
                .iter()
                .map(|text| json!({"type": "text", "text": text}))
                .collect();
            json!({"role": ROLES[*role], "tool_call_id": "c", "content": parts})
        });
        json!({"model": "m", "messages": messages.collect::<Vec<_>>()}).to_string()
    }

    /// One step: what it is, where, and a text.
    fn change(&mut self, step: u8, at: u8, text: &str, known: &mut ScanCache) {
        let at = usize::from(at);
        let count = self.messages.len();
        match step % 12 {
            0 | 1 if count < MOST_MESSAGES => self.messages.push((at % ROLES.len(), vec![text.to_owned()])),
            2 if count < MOST_MESSAGES => {
                let long = format!("{text}{}", ".".repeat(MIN_CACHED_RUN_BYTES));
                self.messages.insert(at % (count + 1), (1, vec![long]));
            }
            3 => self.tenant = at % TENANTS.len(),
            4 => self.profile = at % 2,
            5 => self.policy = at % 2,
            6 => known.reset(MOST),
            _ if count == 0 => {}
            7 => {
                self.messages.remove(at % count);
            }
            8 => self.messages.swap(at % count, count - 1),
            9 => self.messages[at % count].0 = text.len() % ROLES.len(),
            10 => {
                let texts = &mut self.messages[at % count].1;
                let whole = texts.concat();
                let cut = (0..=text.len().min(whole.len()))
                    .rev()
                    .find(|cut| whole.is_char_boundary(*cut));
                let (one, other) = whole.split_at(cut.unwrap_or(0));
                *texts = vec![one.to_owned(), other.to_owned()];
            }
            _ => {
                let texts = &mut self.messages[at % count].1;
                // Of the same length, where that is possible.
                let kept = texts[0].get(text.len()..).unwrap_or_default().to_owned();
                texts[0] = format!("{text}{kept}");
            }
        }
    }

    /// Judges with and without what is known.
    fn compare(&self, policies: &[Policy; 2], scratch: &mut Scratch, known: &mut ScanCache) {
        let body = self.body();
        let mut text = BodyText::new();
        if ParsedRequest::read(Dialect::Chat, body.as_bytes(), &mut Workspace::new(), &mut text).is_err() {
            return;
        }
        let Policy { engine, profiles } = &policies[self.policy];
        let profile = &profiles[self.profile];
        let full = inspect_request(engine, profile, &text, Budget::unlimited(), scratch);
        let mut inspection = RequestInspection::new(Budget::unlimited());
        let recalled = loop {
            let tenant = TENANTS[self.tenant];
            let recall = Some(TenantScanCache { cache: known, tenant });
            let slice = Duration::ZERO;
            match inspection.step_with_cache(recall, engine, profile, &text, slice, scratch) {
                Ok(None) => {}
                Ok(Some(verdict)) => break Ok(verdict),
                Err(fault) => break Err(fault),
            }
        };
        assert_eq!(format!("{recalled:?}"), format!("{full:?}"));
        assert!(known.memory_bytes() <= MOST);
    }
}

fuzz_target!(|input: &[u8]| POLICIES.with_borrow_mut(|(policies, scratch)| {
    let mut known = ScanCache::new(MOST);
    let mut session = Session::default();
    for step in input.split(|byte| *byte == b'\n').take(64) {
        let [kind, at, text @ ..] = step else { continue };
        session.change(*kind, *at, &String::from_utf8_lossy(text), &mut known);
        if !session.messages.is_empty() {
            session.compare(policies, scratch, &mut known);
        }
    }
}));
