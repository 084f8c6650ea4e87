use std::rc::Rc;
use std::sync::Arc;

use proofgate_config::Config;
use proofgate_observe::limit_thread::ModelNames;
use proofgate_policy::{Budget, Scope};
use serde_json::json;

use super::{Catalog, CompiledConfig};

/// A configuration with one literal to detect, and an upstream with this key.
pub fn config(literal: &str, api_key: &str) -> Config {
    let config = json!({
        "ledger": {"name": "l", "directory": "/nowhere", "shard": 0, "durability": "Written",
            "checkpointIntervalSeconds": 1, "signingKey": "", "segmentBytes": 1, "rotation": {"bytes": 1, "seconds": 0.001}},
        "listen": "127.0.0.1:0",
        "providers": [{"name": "p", "type": "OpenAI", "baseURL": "http://127.0.0.1:1", "apiKey": api_key, "caPem": null,
            "streamUsage": "Leave"}],
        "models": [],
        "tenants": [{"name": "t", "keys": [], "models": null, "endpoints": null, "limits": {}, "keyLimits": {}, "policy": null}],
        "policy": {"rules": [{"id": "word", "reason": "A word.", "literals": [literal]}]},
        "timeouts": {"clientHeadSeconds": 0.001, "clientBodySeconds": 0.001, "clientIdleSeconds": 0.001, "upstreamConnectSeconds": 0.001,
            "upstreamResponseSeconds": 0.001, "answerSeconds": 0.001, "connectionAgeSeconds": 0.001, "drainSeconds": 0.001, "lameDuckSeconds": 0.001},
        "limits": {"headBytes": 1, "bodyBytes": 1, "connections": 1, "bufferedBytes": 1},
        "configDigest": "00".repeat(32),
    });
    serde_json::from_value(config).unwrap()
}

/// The same configuration with models of these names.
pub fn models(mut config: Config, names: &[&str]) -> Config {
    let models = names.iter().map(|name| {
        json!({"name": name, "maxOutputTokens": 1,
            "routes": [{"provider": "p", "upstreamModel": name, "weight": 1}]})
    });
    config.models = serde_json::from_value(models.collect()).unwrap();
    config
}

fn next(config: &Config, previous: &Catalog) -> Catalog {
    let blueprint = CompiledConfig::new(config, Some(&previous.settings.engine)).unwrap();
    Catalog::new(blueprint, Some(previous), &Rc::default())
}

fn first(config: &Config) -> Catalog {
    Catalog::new(CompiledConfig::new(config, None).unwrap(), None, &Rc::default())
}

fn evaluate(catalog: &Catalog) {
    let terms = &catalog.settings;
    let tenant = terms.authenticator.tenants().iter().next().unwrap();
    let (engine, profile) = (&terms.engine, &terms.plan(tenant).profile);
    let scratch = &mut *catalog.scratch.borrow_mut();
    let mut budget = Budget::unlimited();
    let scanned = engine.scan(
        profile,
        Scope::User,
        "gold",
        &mut budget,
        scratch,
        &mut Vec::new(),
    );
    scanned.unwrap();
}

#[test]
fn a_reload_that_changes_no_rule_keeps_the_engine_and_what_it_has_learnt() {
    let old = first(&config("gold", "one"));
    evaluate(&old);
    let new = next(&config("gold", "two"), &old);
    assert!(Arc::ptr_eq(&old.settings.engine, &new.settings.engine));
    assert!(Rc::ptr_eq(&old.scratch, &new.scratch));
    for _ in 0..10 {
        evaluate(&old);
        evaluate(&new);
    }
    assert_eq!(new.scratch.borrow().engine_switches(), 1);
}

#[test]
fn streams_of_old_rules_and_requests_under_new_ones_rebuild_nothing() {
    let old = first(&config("gold", "one"));
    let new = next(&config("silver", "one"), &old);
    assert!(!Arc::ptr_eq(&old.settings.engine, &new.settings.engine));
    for _ in 0..10 {
        evaluate(&old);
        evaluate(&new);
    }
    assert_eq!(
        [&old, &new].map(|catalog| catalog.scratch.borrow().engine_switches()),
        [1, 1]
    );
}

#[test]
fn recorded_names_come_to_the_models_that_requests_of_these_names_are_routed_to() {
    let names = [
        "vendor/*",
        "vendor/large-*",
        "vendor/large-one",
        "vendor",
        "other-*",
    ];
    let config = models(config("gold", "one"), &names);
    let blueprint = CompiledConfig::new(&config, None).unwrap();
    let recorded = [
        ("vendor/small", "vendor/*"),
        ("vendor/a/b", "vendor/*"),
        ("vendor/large-two", "vendor/large-*"),
        ("vendor/large-one", "vendor/large-one"),
        ("vendor/large-", "vendor/*"),
        ("vendor", "vendor"),
        ("other-1", "other-*"),
    ];
    let names = recorded.map(|(asked, _)| blueprint.configured_name(asked).to_owned());
    assert_eq!(names, recorded.map(|(_, name)| name));
    // The table of open exchanges contains the model's own name, and an empty name for files and
    // batches.
    for kept in ["vendor/*", "vendor/large-*", "gone", "gone-*", ""] {
        assert_eq!(blueprint.configured_name(kept), kept);
    }
    let catalog = Catalog::new(blueprint, None, &Rc::default());
    let tenant = catalog.settings.authenticator.tenants().iter().next().unwrap();
    let routed = recorded.map(|(asked, _)| catalog.route(tenant, asked).unwrap().name.to_string());
    assert_eq!(routed, names);
}

#[test]
fn a_tenant_without_a_shred_key_and_a_file_that_holds_none_make_a_configuration_invalid() {
    const KEY: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n";
    let folder = tempfile::TempDir::new().unwrap();
    let mut config = config("gold", "one");
    config.ledger.shred_keys_directory = Some(folder.path().display().to_string());
    let refused = |config: &Config| {
        CompiledConfig::new(config, None)
            .map(|_| ())
            .unwrap_err()
            .to_string()
    };
    std::fs::write(folder.path().join("another"), KEY).unwrap();
    assert!(refused(&config).contains("\"t\" has no shred key"));
    std::fs::write(folder.path().join("t"), format!("{KEY}secret\n")).unwrap();
    assert!(refused(&config).contains("strict base64") && !refused(&config).contains("secret"));
    std::fs::write(folder.path().join("t"), KEY).unwrap();
    let terms = first(&config).settings;
    assert!(terms.shred_key("t").unwrap().is_some() && terms.shred_key("new").is_err());
    config.ledger.shred_keys_directory = Some("/nowhere".to_owned());
    assert!(refused(&config).contains("/nowhere"));
    config.ledger.shred_keys_directory = None;
    assert!(first(&config).settings.shred_key("t").unwrap().is_none());
}
