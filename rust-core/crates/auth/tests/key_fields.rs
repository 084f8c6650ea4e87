//! A key is accepted in any of the fields, but only if no other field contradicts it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::HashMap;

use proofgate_auth::{
    ApiKeyHeaders, AuthError, Authenticator, Credential, Identity, KeyHeader, Shards, hash_api_key,
};
use support::{FIELDS, NOW, authenticator, claims, tenants, token, with};

/// Returns a field value that contains a key.
fn value(field: KeyHeader, key: &str) -> Vec<u8> {
    match field {
        KeyHeader::Authorization => format!("Bearer {key}").into_bytes(),
        _ => key.as_bytes().to_vec(),
    }
}

fn ask_of(authenticator: &Authenticator, values: &[(KeyHeader, Vec<u8>)]) -> Result<Identity, AuthError> {
    let fields = values
        .iter()
        .fold(ApiKeyHeaders::default(), |fields, (field, value)| {
            with(*field, value, fields)
        });
    authenticator.authenticate(&Shards::default(), &fields, NOW)
}

fn ask(values: &[(KeyHeader, Vec<u8>)]) -> Result<Identity, AuthError> {
    ask_of(&authenticator(), values)
}

#[test]
fn a_key_counts_in_every_field_that_an_official_client_sends_it_in() {
    for field in FIELDS {
        let identity = ask(&[(field, value(field, "acme-key"))]).unwrap();
        assert_eq!(&*identity.tenant.name, "acme", "{field}");
        assert_eq!(identity.credential, Credential::ApiKey(hash_api_key(b"acme-key")));
        let denial = ask(&[(field, value(field, "nobodys-key"))]).unwrap_err();
        assert_eq!(denial, AuthError::UnknownKey, "{field}");
    }
}

#[test]
fn a_token_counts_wherever_a_key_does() {
    let token = token(&claims());
    let subject = ask(&[(KeyHeader::Authorization, value(KeyHeader::Authorization, &token))]).unwrap();
    assert!(matches!(subject.credential, Credential::Subject(_)));
    for field in FIELDS {
        assert_eq!(
            ask(&[(field, value(field, &token))]),
            Ok(subject.clone()),
            "{field}"
        );
    }
}

#[test]
fn the_same_key_may_stand_in_several_fields() {
    for number in 1..16_u8 {
        let values: Vec<_> = FIELDS
            .into_iter()
            .enumerate()
            .filter(|(place, _)| number & (1 << place) != 0)
            .map(|(_, field)| (field, value(field, "acme-key")))
            .collect();
        assert_eq!(&*ask(&values).unwrap().tenant.name, "acme", "{number:#06b}");
    }
}

#[test]
fn two_fields_with_different_keys_are_refused_by_their_names_and_without_a_value() {
    for (place, first) in FIELDS.into_iter().enumerate() {
        for second in FIELDS.into_iter().skip(place + 1) {
            // The request is refused even if the first key is valid, and if both keys belong to the
            // same tenant.
            for keys in [
                ["acme-key", "acme.v2.key"],
                ["acme-key", "other"],
                ["other", "acme-key"],
            ] {
                let denial =
                    ask(&[(first, value(first, keys[0])), (second, value(second, keys[1]))]).unwrap_err();
                assert_eq!(denial, AuthError::AmbiguousKey(first, second));
                assert_eq!((denial.status(), denial.code()), (400, "ambiguous_api_key"));
                let sentence = denial.to_string();
                assert!(sentence.contains(&format!("{first} and {second} ")), "{sentence}");
                assert!(!keys.iter().any(|key| sentence.contains(key)), "{sentence}");
            }
        }
    }
}

#[test]
fn of_several_fields_the_one_that_differs_is_named() {
    let mut values: Vec<_> = FIELDS
        .into_iter()
        .map(|field| (field, value(field, "acme-key")))
        .collect();
    values[3].1 = b"acme-key2".to_vec();
    assert_eq!(
        ask(&values).unwrap_err(),
        AuthError::AmbiguousKey(KeyHeader::Authorization, KeyHeader::XGoogApiKey)
    );
}

#[test]
fn a_malformed_field_is_refused_also_beside_a_good_key() {
    let long = "k".repeat(8 * 1024 + 1);
    for malformed in FIELDS {
        let mut wrong: Vec<Vec<u8>> = ["", "a b", "acme-key ", "caf\u{e9}", "a\tb", "a\u{7f}", &long]
            .into_iter()
            .map(|key| value(malformed, key))
            .collect();
        wrong.push(match malformed {
            KeyHeader::Authorization => b"acme-key".to_vec(),
            _ => b"Bearer acme-key".to_vec(),
        });
        for wrong in wrong {
            let denial = AuthError::MalformedKey(malformed);
            assert_eq!(ask(&[(malformed, wrong.clone())]), Err(denial), "{malformed}");
            for good in FIELDS.into_iter().filter(|field| *field != malformed) {
                let values = [(good, value(good, "acme-key")), (malformed, wrong.clone())];
                assert_eq!(ask(&values), Err(denial), "{malformed} beside {good}");
            }
            assert_eq!((denial.status(), denial.code()), (401, "malformed_api_key"));
        }
    }
    assert_eq!(
        AuthError::MalformedKey(KeyHeader::Authorization).to_string(),
        r#"The Authorization header is not of the form "Bearer YOUR_KEY"."#
    );
    assert_eq!(
        AuthError::MalformedKey(KeyHeader::XApiKey).to_string(),
        r#"The x-api-key header is not of the form "YOUR_KEY"."#
    );
}

#[test]
fn without_issuers_a_key_is_short_in_every_field() {
    let authenticator = Authenticator::new(tenants(), HashMap::new(), vec![]).unwrap();
    for field in FIELDS {
        let long = |length: usize| {
            ask_of(&authenticator, &[(field, value(field, &"k".repeat(length)))]).unwrap_err()
        };
        assert_eq!(long(512), AuthError::UnknownKey, "{field}");
        assert_eq!(long(513), AuthError::MalformedKey(field), "{field}");
    }
}

#[test]
fn debug_output_shows_which_fields_there_are_and_no_value() {
    let fields = with(KeyHeader::ApiKey, b"secret", ApiKeyHeaders::default());
    let shown = format!("{fields:?}");
    assert!(
        shown.contains("api_key: true") && shown.contains("authorization: false"),
        "{shown}"
    );
    assert!(!shown.contains("secret"), "{shown}");
}
