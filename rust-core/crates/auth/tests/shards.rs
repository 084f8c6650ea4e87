//! Tenants and keys that change without a new configuration.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proofgate_auth::{
    ApiKey, AuthError, Authenticator, Credential, KeyHash, LineError, SHARD_COUNT, Shard, ShardError,
    ShardFile, Shards, TenantTable, hash_api_key,
};
use proptest::prelude::*;
use serde_json::json;
use support::{ALL, ISSUER, NOW, authorization, claims_with, issuer, key_set, tenant, token};

/// The two files of every shard, as the operator writes them.
#[derive(Default)]
struct Files {
    keys: BTreeMap<KeyHash, String>,
    tenants: BTreeMap<String, String>,
}

impl Files {
    fn tenant(mut self, name: &str, plan: &str, keys: &[&str]) -> Self {
        self.tenants.insert(name.to_owned(), plan.to_owned());
        for key in keys {
            self.keys
                .insert(hash_api_key(key.as_bytes()), format!("{name} ci"));
        }
        self
    }

    fn of(&self, number: usize) -> (String, String) {
        let here = |hash: &KeyHash| usize::from(hash[0] >> 3) == number;
        let keys = self.keys.iter().filter(|(hash, _)| here(hash));
        let tenants = self
            .tenants
            .iter()
            .filter(|(name, _)| here(&hash_api_key(name.as_bytes())));
        (
            keys.map(|(hash, rest)| format!("{} {rest}\n", hex(hash)))
                .collect(),
            tenants.map(|(name, plan)| format!("{name} {plan}\n")).collect(),
        )
    }

    fn shards(&self) -> Shards {
        Shards::default().with_shards((0..SHARD_COUNT).map(|number| (number, parsed(&self.of(number)))))
    }
}

fn parsed((keys, tenants): &(String, String)) -> Shard {
    Shard::parse(keys.as_bytes(), tenants.as_bytes()).unwrap()
}

fn hex(hash: &KeyHash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns an authenticator with one tenant in the configuration, the plans gold (1) and silver
/// (2), and tokens.
fn authenticator() -> Authenticator {
    let acme = (tenant("acme"), vec![ApiKey::from(hash_api_key(b"acme-key"))]);
    let plans = HashMap::from([("gold".to_owned(), 1), ("silver".to_owned(), 2)]);
    let tenants = TenantTable::new([acme]).unwrap();
    let authenticator = Authenticator::new(tenants, plans, vec![issuer(ISSUER, &ALL)]).unwrap();
    authenticator.set_key_set(ISSUER, key_set(&["es256"])).unwrap();
    authenticator
}

/// Returns the name and the plan of the tenant that owns a key.
fn ask(authenticator: &Authenticator, shards: &Shards, key: &str) -> Result<(String, usize), AuthError> {
    let value = format!("Bearer {key}");
    let identity = authenticator.authenticate(shards, &authorization(value.as_bytes()), NOW)?;
    Ok((identity.tenant.name.to_string(), identity.tenant.plan))
}

#[test]
fn a_key_of_a_shard_names_its_tenant_and_its_tenant_a_plan() {
    let files = Files::default()
        .tenant("team-a/chat", "gold", &["one", "two"])
        .tenant("team-b/chat", "silver", &["three"]);
    let (authenticator, shards) = (authenticator(), files.shards());
    let ask = |key| ask(&authenticator, &shards, key);
    assert_eq!(ask("one"), Ok(("team-a/chat".into(), 1)));
    assert_eq!(ask("two"), Ok(("team-a/chat".into(), 1)));
    assert_eq!(ask("three"), Ok(("team-b/chat".into(), 2)));
    assert_eq!(ask("acme-key"), Ok(("acme".into(), 0)));
    assert_eq!(ask("four"), Err(AuthError::UnknownKey));
    let identity = authenticator
        .authenticate(&shards, &authorization(b"Bearer one"), NOW)
        .unwrap();
    assert_eq!(identity.credential, Credential::ApiKey(hash_api_key(b"one")));
}

#[test]
fn a_key_of_a_shard_has_the_name_that_its_line_gives_it() {
    let mut files = Files::default().tenant("team-a/chat", "gold", &["one", "two"]);
    let longest = "k".repeat(63);
    for (key, name) in [("one", longest.as_str()), ("two", "ci")] {
        files
            .keys
            .insert(hash_api_key(key.as_bytes()), format!("team-a/chat {name}"));
    }
    let (authenticator, shards) = (authenticator(), files.shards());
    let name = |key: &str| {
        let value = format!("Bearer {key}");
        let identity = authenticator.authenticate(&shards, &authorization(value.as_bytes()), NOW);
        identity.unwrap().key_name
    };
    assert_eq!(name("one").as_deref(), Some(longest.as_str()));
    assert_eq!(name("two").as_deref(), Some("ci"));
    assert_eq!(name("acme-key"), None);
}

#[test]
fn a_key_without_its_tenant_is_unknown_and_a_tenant_without_its_plan_is_told_so() {
    let files = Files::default().tenant("team-a/chat", "bronze", &["one"]);
    let denial = ask(&authenticator(), &files.shards(), "one").unwrap_err();
    assert_eq!(denial, AuthError::UnknownPlan);
    assert_eq!((denial.status(), denial.code()), (401, "plan_unknown"));
    let mut files = Files::default().tenant("team-a/chat", "gold", &["one"]);
    files.tenants.clear();
    assert_eq!(
        ask(&authenticator(), &files.shards(), "one"),
        Err(AuthError::UnknownKey)
    );
}

#[test]
fn a_key_of_the_configuration_stays_its_tenants_whatever_a_shard_says() {
    let files = Files::default().tenant("team-a/thief", "gold", &["acme-key"]);
    assert_eq!(
        ask(&authenticator(), &files.shards(), "acme-key"),
        Ok(("acme".into(), 0))
    );
}

#[test]
fn a_key_of_a_shard_ends_when_its_line_says() {
    let hash = hash_api_key(b"one");
    let mut files = Files::default().tenant("team-a/chat", "gold", &["one"]);
    let authenticator = authenticator();
    let mut at = |end: u64| {
        files.keys.insert(hash, format!("team-a/chat ci not_after={end}"));
        ask(&authenticator, &files.shards(), "one").map(|_| ())
    };
    assert_eq!(at(NOW + 1), Ok(()));
    assert_eq!(at(NOW), Err(AuthError::ExpiredKey));
    assert_eq!(at(9_999_999_999_999_999_999), Ok(()));
}

#[test]
fn one_shard_is_replaced_and_the_others_are_the_same() {
    let before = Files::default().tenant("team-a/chat", "gold", &["one", "two"]);
    let (authenticator, old) = (authenticator(), before.shards());
    let number = usize::from(hash_api_key(b"one")[0] >> 3);
    assert_ne!(number, usize::from(hash_api_key(b"two")[0] >> 3));
    let mut after = before;
    after.keys.remove(&hash_api_key(b"one"));
    let shards = old.with_shards([(number, parsed(&after.of(number)))]);
    assert_eq!(ask(&authenticator, &shards, "one"), Err(AuthError::UnknownKey));
    assert!(ask(&authenticator, &shards, "two").is_ok());
    assert!(
        ask(&authenticator, &old, "one").is_ok(),
        "whoever has the old ones keeps them"
    );
    let changed = shards
        .iter()
        .zip(&old)
        .filter(|(new, old)| !Arc::ptr_eq(new, old));
    assert_eq!(changed.count(), 1);
    assert_ne!(shards.digest_with(&[0; 32]), old.digest_with(&[0; 32]));
}

#[test]
fn a_token_can_name_a_tenant_of_a_shard_until_that_is_gone() {
    let shards = Files::default().tenant("team-a/chat", "gold", &[]).shards();
    let authenticator = authenticator();
    let token = token(&claims_with(json!({"tenant": "team-a/chat"})));
    for _ in 0..2 {
        assert_eq!(
            ask(&authenticator, &shards, &token),
            Ok(("team-a/chat".into(), 1))
        );
    }
    let moved = Files::default().tenant("team-a/chat", "silver", &[]).shards();
    assert_eq!(ask(&authenticator, &moved, &token).unwrap().1, 2);
    assert_eq!(
        ask(&authenticator, &Shards::default(), &token),
        Err(AuthError::UnknownTenant)
    );
}

#[test]
fn a_bad_line_is_named_and_not_repeated() {
    let good = |first: u8, rest: &str| format!("{first:02x}{} {rest}\n", "00".repeat(31));
    let keys = |text: &str| Shard::parse(text.as_bytes(), b"").unwrap_err();
    for (rest, problem) in [
        ("team/chat", LineError::Malformed),
        ("chat ci", LineError::Malformed),
        ("team/chat/x ci", LineError::Malformed),
        ("/chat ci", LineError::Malformed),
        ("team/ ci", LineError::Malformed),
        ("Team/chat ci", LineError::Malformed),
        ("team/chat -ci", LineError::Malformed),
        ("team/chat  ci", LineError::Malformed),
        ("team/chat ci ", LineError::Malformed),
        ("team/chat ci not_after=tomorrow", LineError::Malformed),
        (
            "team/chat ci not_after=2027-01-31T00:00:00Z",
            LineError::Malformed,
        ),
        ("team/chat ci not_after=", LineError::Malformed),
        ("team/chat ci not_after=0", LineError::Malformed),
        ("team/chat ci not_after=01", LineError::Malformed),
        ("team/chat ci not_after=+1", LineError::Malformed),
        ("team/chat ci not_after=1.5", LineError::Malformed),
        ("team/chat ci not_after=\u{661}", LineError::Malformed),
        (
            "team/chat ci not_after=10000000000000000000",
            LineError::Malformed,
        ),
        ("team/chat ci not_after=1801353600 x", LineError::Malformed),
        ("team/chat ci\r", LineError::Malformed),
        ("team/ch\u{e4}t ci", LineError::Malformed),
    ] {
        let error = keys(&(good(0, "team/chat ci") + &good(1, rest)));
        let expected = ShardError {
            file: ShardFile::Keys,
            line: 2,
            problem,
        };
        assert_eq!(error, expected, "{rest:?}");
    }
    let twice = good(0, "team/chat ci");
    assert_eq!(keys(&twice.repeat(2)).problem, LineError::NotSorted);
    assert_eq!(
        keys(&(good(2, "a/b c") + &good(1, "a/b c"))).problem,
        LineError::NotSorted
    );
    assert_eq!(keys(twice.trim_end()).problem, LineError::Unterminated);
    assert_eq!(keys("\n").problem, LineError::Malformed);
    assert_eq!(
        keys(&good(0, &format!("a/{} c", "b".repeat(500)))).problem,
        LineError::TooLong
    );
    assert_eq!(keys(&"x".repeat((1 << 20) + 1)).problem, LineError::TooLong);
    let tenants = |text: &str| Shard::parse(b"", text.as_bytes()).unwrap_err().problem;
    for text in ["a/b\n", "a/b \n", "a/b gold x\n", "ab gold\n", "a/b .gold\n"] {
        assert_eq!(tenants(text), LineError::Malformed, "{text:?}");
    }
}

#[test]
fn a_key_and_its_tenant_are_found_in_whatever_shards_they_stand() {
    let authenticator = authenticator();
    let key = format!("{} team-a/chat ci\n", hex(&hash_api_key(b"key-a")));
    let place = |keys: usize, tenants: usize| {
        let tenant = "team-a/chat gold\n".to_owned();
        let parts = [
            (keys, parsed(&(key.clone(), String::new()))),
            (tenants, parsed(&(String::new(), tenant))),
        ];
        Shards::default().with_shards(parts)
    };
    for (keys, tenants) in [(0, 1), (1, 0), (31, 30), (7, 12)] {
        let shards = place(keys, tenants);
        assert_eq!(
            ask(&authenticator, &shards, "key-a"),
            Ok(("team-a/chat".into(), 1))
        );
        assert!(shards.has_tenant("team-a/chat") && !shards.has_tenant("team-a/mail"));
        let empty = shards.with_shards([(keys, Shard::default())]);
        assert_eq!(ask(&authenticator, &empty, "key-a"), Err(AuthError::UnknownKey));
    }
    let beyond = Shards::default().with_shards([(SHARD_COUNT, parsed(&(key.clone(), String::new())))]);
    assert_eq!(beyond.iter().map(|shard| shard.key_count()).sum::<usize>(), 0);
}

#[test]
fn a_key_that_moves_to_another_shard_is_served_while_it_is_in_both() {
    let authenticator = authenticator();
    let line = |end: &str| format!("{} team-a/chat ci{end}\n", hex(&hash_api_key(b"key-a")));
    let tenant = "team-a/chat gold\n";
    let old = parsed(&(line(&format!(" not_after={NOW}")), tenant.to_owned()));
    let both = Shards::default().with_shards([(3, old), (20, parsed(&(line(""), String::new())))]);
    assert!(
        ask(&authenticator, &both, "key-a").is_ok(),
        "it has a new end in one"
    );
    let moved = both.with_shards([(3, parsed(&(String::new(), tenant.to_owned())))]);
    assert!(ask(&authenticator, &moved, "key-a").is_ok());
    let expired = both.with_shards([(20, Shard::default())]);
    assert_eq!(ask(&authenticator, &expired, "key-a"), Err(AuthError::ExpiredKey));
}

#[test]
fn a_key_that_everybody_can_guess_lets_nobody_in_and_costs_no_other_key() {
    let files = Files::default().tenant("team-a/chat", "gold", &["test", "key-a", "foo\n"]);
    let (authenticator, shards) = (authenticator(), files.shards());
    for guessed in ["test", "foo"] {
        assert_eq!(ask(&authenticator, &shards, guessed), Err(AuthError::UnknownKey));
    }
    assert!(ask(&authenticator, &shards, "key-a").is_ok());
    let left_out: Vec<_> = shards.iter().flat_map(|shard| shard.well_known_keys()).collect();
    assert_eq!(left_out.len(), 2);
    assert!(
        left_out
            .iter()
            .all(|key| &*key.tenant == "team-a/chat" && &*key.name == "ci")
    );
}

proptest! {
    #[test]
    fn whatever_stands_in_the_files_is_found_or_refused_and_nothing_panics(
        keys in prop::collection::vec(any::<u8>(), 0..300),
        tenants in "[a-z/ .\n\u{e9}=:TZ0-9-]{0,200}",
    ) {
        let _ = Shard::parse(&keys, tenants.as_bytes());
    }

    #[test]
    fn every_key_is_found_and_no_other(
        owned in prop::collection::btree_map("key-[a-z0-9]{1,12}", ("[a-c]/[a-d]", prop::bool::ANY), 0..60),
        others in prop::collection::vec("[A-Z]{1,12}", 1..10),
    ) {
        let mut files = Files::default();
        for (key, (name, _)) in &owned {
            files = files.tenant(name, "gold", &[key]);
        }
        let (authenticator, shards) = (authenticator(), files.shards());
        for (key, (name, _)) in &owned {
            prop_assert_eq!(ask(&authenticator, &shards, key), Ok((name.clone(), 1)));
        }
        for key in &others {
            prop_assert_eq!(ask(&authenticator, &shards, key), Err(AuthError::UnknownKey));
        }
        let tenants: usize = shards.iter().map(|shard| shard.tenants().len()).sum();
        prop_assert_eq!(tenants, files.tenants.len());
        prop_assert_eq!(shards.iter().map(|shard| shard.key_count()).sum::<usize>(), owned.len());
    }
}
