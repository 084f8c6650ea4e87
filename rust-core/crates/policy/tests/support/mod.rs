//! Engines, scans and encodings that the tests share.
#![allow(dead_code, reason = "each test file uses only some of these helpers")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use proofgate_policy::{
    Action, Budget, Engine, EvaluationError, Match, Pack, PolicyConfig, PolicyError, Profile, RuleIndex,
    Scope, Scratch, StreamScan, TenantPolicy, pattern_pack_names,
};
use serde_json::{Value, json};

/// A match with the id of its rule: id, start, end (exclusive).
pub type Found = BTreeSet<(String, usize, usize)>;

/// An engine, a tenant's profile and a thread's scratch.
pub struct Policy {
    pub engine: Engine,
    pub profile: Profile,
    pub scratch: Scratch,
}

impl Policy {
    pub fn of(config: &Value) -> Self {
        Policy::for_tenant(config, None)
    }

    pub fn for_tenant(config: &Value, tenant: Option<&Value>) -> Self {
        let config = serde_json::from_value::<PolicyConfig>(config.clone()).unwrap();
        Policy::new(Engine::compile(&config).unwrap(), tenant)
    }

    fn new(engine: Engine, tenant: Option<&Value>) -> Self {
        let tenant = tenant.map(|tenant| serde_json::from_value::<TenantPolicy>(tenant.clone()).unwrap());
        let profile = engine.profile(tenant.as_ref()).unwrap();
        Policy {
            engine,
            profile,
            scratch: Scratch::new(),
        }
    }

    /// All rules of the built-in packs, with their own actions in all scopes of their targets.
    pub fn built_in() -> Self {
        Policy::allowing(&json!({}))
    }

    /// The same rules, with exemptions.
    pub fn allowing(allow: &Value) -> Self {
        let config = serde_json::from_value(json!({"allow": allow})).unwrap();
        Policy::of_packs(
            &config,
            pattern_pack_names().map(|name| Pack::built_in(name).unwrap()),
        )
    }

    /// The same rules, all with the action to deny.
    pub fn all_denying() -> Self {
        let mut packs: Vec<_> = pattern_pack_names()
            .map(|name| Pack::built_in(name).unwrap())
            .collect();
        let rules = packs.iter_mut().flat_map(|pack| &mut pack.rules);
        rules.for_each(|rule| rule.action = Action::Block);
        Policy::of_packs(&PolicyConfig::default(), packs)
    }

    fn of_packs(config: &PolicyConfig, packs: impl IntoIterator<Item = Pack>) -> Self {
        let packs = packs.into_iter().map(Pack::without_limits).collect();
        Policy::new(Engine::compile_packs(config, packs).unwrap(), None)
    }

    /// One rule; `rule` contains the fields that differ from the defaults.
    pub fn rule(rule: Value) -> Self {
        Policy::of(&json!({"rules": [with_defaults(rule)]}))
    }

    pub fn scan(
        &mut self,
        scope: Scope,
        text: &str,
        budget: &mut Budget,
    ) -> Result<Vec<Match>, EvaluationError> {
        let mut found = Vec::new();
        let Policy {
            engine,
            profile,
            scratch,
        } = self;
        engine.scan(profile, scope, text, budget, scratch, &mut found)?;
        Ok(found)
    }

    /// Returns the matches in a whole text.
    pub fn found(&mut self, scope: Scope, text: &str) -> Found {
        let found = self.scan(scope, text, &mut Budget::unlimited()).unwrap();
        self.named(&found)
    }

    /// Returns the ids of the rules that match in a prompt.
    pub fn ids(&mut self, text: &str) -> Vec<String> {
        let ids: BTreeSet<String> = self
            .found(Scope::User, text)
            .into_iter()
            .map(|found| found.0)
            .collect();
        ids.into_iter().collect()
    }

    /// Returns the text of the first match in a prompt.
    pub fn matched<'t>(&mut self, text: &'t str) -> Option<&'t str> {
        let found = self.found(Scope::User, text);
        found.first().map(|(_, start, end)| &text[*start..*end])
    }

    /// Pushes the pieces of a text; returns its matches, and how much was cleared after each piece.
    pub fn stream<'t>(
        &mut self,
        scope: Scope,
        pieces: impl IntoIterator<Item = &'t str>,
    ) -> Result<(Found, Vec<usize>), EvaluationError> {
        let mut budget = Budget::unlimited();
        let (mut scan, mut found, mut cleared) = (StreamScan::new(), Vec::new(), Vec::new());
        let Policy {
            engine,
            profile,
            scratch,
        } = self;
        for piece in pieces {
            cleared.push(scan.push(engine, profile, scope, piece, &mut budget, scratch, &mut found)?);
        }
        scan.finish(engine, profile, scope, &mut budget, scratch, &mut found)?;
        Ok((self.named(&found), cleared))
    }

    /// Returns the matches and cleared bytes of a stream after these pieces, before its end.
    pub fn so_far(&mut self, scope: Scope, pieces: &[&str]) -> (Found, usize) {
        let mut budget = Budget::unlimited();
        let (mut scan, mut found, mut cleared) = (StreamScan::new(), Vec::new(), 0);
        let Policy {
            engine,
            profile,
            scratch,
        } = self;
        for piece in pieces {
            let pushed = scan.push(engine, profile, scope, piece, &mut budget, scratch, &mut found);
            cleared = pushed.unwrap();
        }
        (self.named(&found), cleared)
    }

    pub fn named(&self, found: &[Match]) -> Found {
        let named = |found: &Match| (self.engine.rule(found.rule).id.clone(), found.start, found.end);
        found.iter().map(named).collect()
    }

    /// Returns the index of a rule.
    pub fn index(&mut self, id: &str, text: &str) -> RuleIndex {
        let found = self.scan(Scope::User, text, &mut Budget::unlimited()).unwrap();
        let mut rules = found.iter().map(|found| found.rule);
        rules.find(|rule| self.engine.rule(*rule).id == id).unwrap()
    }
}

/// Returns a rule with a default id and reason, unless it has its own.
pub fn with_defaults(mut rule: Value) -> Value {
    for (field, value) in [("id", "a-rule"), ("reason", "A reason.")] {
        rule.as_object_mut().unwrap().entry(field).or_insert(json!(value));
    }
    rule
}

/// Returns the error for an invalid configuration.
pub fn refusal(config: Value) -> PolicyError {
    let config: PolicyConfig = serde_json::from_value(config).unwrap();
    match Engine::compile(&config) {
        Ok(_) => panic!("the configuration was taken"),
        Err(error) => error,
    }
}

pub fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| bits << 8 | u32::from(*group.get(at).unwrap_or(&0)));
        let digits = (0..=group.len()).map(|at| ALPHABET[(bits >> (18 - 6 * at)) as usize & 63]);
        encoded.extend(digits.map(char::from));
    }
    encoded
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn percent(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("%{byte:02X}")).collect()
}

pub fn escapes(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
}
