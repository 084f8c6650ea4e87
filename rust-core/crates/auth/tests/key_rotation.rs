//! Tokens after a change of an issuer's keys or of the configuration.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::HashMap;

use proofgate_auth::{AuthError, Authenticator, Error, KeySet, SigningAlgorithm};
use serde_json::json;
use support::{
    ALL, ISSUER, NOW, OTHER_ISSUER, authenticate, claims, claims_with, header, issuer, key_set, sign,
    tenants, token,
};

fn without_keys() -> Authenticator {
    Authenticator::new(
        tenants(),
        HashMap::new(),
        vec![issuer(ISSUER, &ALL), issuer(OTHER_ISSUER, &ALL)],
    )
    .unwrap()
}

fn of_new_key() -> String {
    sign(
        "es256_other",
        &header("es256_other").to_string(),
        &claims().to_string(),
    )
}

#[test]
fn before_its_keys_arrive_an_issuer_is_wanted_once() {
    let authenticator = without_keys();
    let wanted = authenticator.requested_key_sets();
    assert!(wanted.take().is_empty());
    for _ in 0..2 {
        assert_eq!(
            authenticate(&authenticator, &token(&claims())),
            Err(AuthError::UnknownSigningKey)
        );
    }
    assert_eq!(wanted.take(), [ISSUER]);
    assert!(wanted.take().is_empty());
    authenticator.set_key_set(ISSUER, key_set(&["es256"])).unwrap();
    assert!(authenticate(&authenticator, &token(&claims())).is_ok());
    assert!(wanted.take().is_empty());
}

#[test]
fn a_new_key_is_wanted_then_known_while_the_old_one_still_counts() {
    let authenticator = without_keys();
    authenticator.set_key_set(ISSUER, key_set(&["es256"])).unwrap();
    assert_eq!(
        authenticate(&authenticator, &of_new_key()),
        Err(AuthError::UnknownSigningKey)
    );
    assert_eq!(authenticator.requested_key_sets().take(), [ISSUER]);
    authenticator
        .set_key_set(ISSUER, key_set(&["es256", "es256_other"]))
        .unwrap();
    assert!(authenticate(&authenticator, &of_new_key()).is_ok());
    assert!(authenticate(&authenticator, &token(&claims())).is_ok());
}

#[test]
fn a_withdrawn_key_ends_its_tokens_at_once_though_they_are_remembered() {
    let authenticator = without_keys();
    authenticator.set_key_set(ISSUER, key_set(&["es256"])).unwrap();
    let token = token(&claims());
    assert!(authenticate(&authenticator, &token).is_ok());
    authenticator
        .set_key_set(ISSUER, key_set(&["es256_other"]))
        .unwrap();
    assert_eq!(
        authenticate(&authenticator, &token),
        Err(AuthError::UnknownSigningKey)
    );
    let (empty, _) = KeySet::parse(r#"{"keys": []}"#).unwrap();
    authenticator.set_key_set(ISSUER, key_set(&["es256"])).unwrap();
    assert!(authenticate(&authenticator, &token).is_ok());
    authenticator.set_key_set(ISSUER, empty).unwrap();
    assert_eq!(
        authenticate(&authenticator, &token),
        Err(AuthError::UnknownSigningKey)
    );
}

#[test]
fn a_reused_key_name_does_not_keep_old_tokens() {
    let authenticator = without_keys();
    authenticator.set_key_set(ISSUER, key_set(&["es256"])).unwrap();
    let token = token(&claims());
    assert!(authenticate(&authenticator, &token).is_ok());
    let mut other = support::public_key("es256_other");
    other["kid"] = json!("es256");
    let (keys, _) = KeySet::parse(&json!({ "keys": [other] }).to_string()).unwrap();
    authenticator.set_key_set(ISSUER, keys).unwrap();
    assert_eq!(
        authenticate(&authenticator, &token),
        Err(AuthError::InvalidSignature)
    );
}

#[test]
fn nobody_makes_an_issuer_wanted_with_a_token_that_could_not_be_valid() {
    let authenticator = without_keys();
    authenticator.set_key_set(ISSUER, key_set(&["es256"])).unwrap();
    let with_unknown_key = |changes| {
        let header = json!({"alg": "ES256", "kid": "unknown"}).to_string();
        authenticate(
            &authenticator,
            &sign("es256", &header, &claims_with(changes).to_string()),
        )
    };
    assert_eq!(with_unknown_key(json!({"exp": 1})), Err(AuthError::ExpiredToken));
    assert_eq!(
        with_unknown_key(json!({"nbf": NOW + 1000})),
        Err(AuthError::TokenNotYetValid)
    );
    assert_eq!(
        with_unknown_key(json!({"aud": "x"})),
        Err(AuthError::WrongAudience)
    );
    assert_eq!(
        with_unknown_key(json!({"iss": "x"})),
        Err(AuthError::UnknownIssuer)
    );
    assert!(authenticator.requested_key_sets().take().is_empty());
    assert_eq!(with_unknown_key(json!({})), Err(AuthError::UnknownSigningKey));
    assert_eq!(authenticator.requested_key_sets().take(), [ISSUER]);
}

#[test]
fn a_new_configuration_keeps_the_keys_of_the_issuers_that_stay() {
    let old = without_keys();
    old.set_key_set(ISSUER, key_set(&["es256"])).unwrap();
    let new = Authenticator::new(
        tenants(),
        HashMap::new(),
        vec![issuer("https://new.example/", &ALL), issuer(ISSUER, &ALL)],
    )
    .unwrap();
    new.inherit_key_sets(&old);
    assert!(authenticate(&new, &token(&claims())).is_ok());
    new.inherit_key_sets(&new);
    assert!(authenticate(&new, &token(&claims())).is_ok());
    let without = Authenticator::new(tenants(), HashMap::new(), vec![]).unwrap();
    without.inherit_key_sets(&old);
    assert_eq!(
        authenticate(&without, &token(&claims())),
        Err(AuthError::UnknownKey)
    );
}

#[test]
fn more_tokens_than_are_remembered_are_all_accepted() {
    let authenticator = without_keys();
    authenticator.set_key_set(ISSUER, key_set(&["eddsa"])).unwrap();
    let tokens: Vec<String> = (0..5000)
        .map(|number| {
            let payload = claims_with(json!({ "sub": number.to_string() })).to_string();
            sign("eddsa", &header("eddsa").to_string(), &payload)
        })
        .collect();
    let identities: Vec<_> = tokens
        .iter()
        .map(|token| authenticate(&authenticator, token))
        .collect();
    assert!(identities.iter().all(Result::is_ok));
    for (token, identity) in tokens.iter().zip(&identities) {
        assert_eq!(authenticate(&authenticator, token), *identity);
    }
}

#[test]
fn issuers_are_checked_before_they_are_used() {
    let build = |issuers| Authenticator::new(tenants(), HashMap::new(), issuers).unwrap_err();
    assert_eq!(
        build(vec![issuer(ISSUER, &ALL), issuer(ISSUER, &ALL)]),
        Error::DuplicateIssuer(ISSUER.into())
    );
    assert!(matches!(
        build(vec![issuer(ISSUER, &[])]),
        Error::IncompleteIssuer {
            missing: "algorithm",
            ..
        }
    ));
    let mut without_audience = issuer(ISSUER, &ALL);
    without_audience.audiences.clear();
    assert!(matches!(
        build(vec![without_audience]),
        Error::IncompleteIssuer {
            missing: "audience",
            ..
        }
    ));
    let unknown = without_keys().set_key_set("https://unknown.example/", key_set(&["es256"]));
    assert_eq!(
        unknown,
        Err(Error::UnknownIssuer("https://unknown.example/".into()))
    );
}

#[test]
fn an_issuer_is_read_from_its_configuration() {
    let json = json!({
        "issuer": ISSUER,
        "audiences": ["proofgate", "proofgate-beta"],
        "algorithms": ["RS256", "ES256", "EdDSA"],
        "tenantClaim": "tenant",
        "leewaySeconds": 60,
    });
    let read: proofgate_auth::Issuer = serde_json::from_value(json).unwrap();
    assert_eq!(read, issuer(ISSUER, &ALL));
    for algorithm in ["none", "HS256", "RS384"] {
        assert!(serde_json::from_value::<SigningAlgorithm>(json!(algorithm)).is_err());
    }
}

#[test]
fn what_other_threads_prepare_can_be_sent_to_them() {
    fn is_send<T: Send>() {}
    fn is_shared<T: Send + Sync>() {}
    is_send::<Authenticator>();
    is_shared::<KeySet>();
    is_shared::<proofgate_auth::RequestedKeySets>();
}
