use serde_json::{Value, json};

use super::{KeyLookupError, KeySet};
use crate::jwt::token::CompactToken;
use crate::{AuthError, Error};

fn vectors() -> (Value, Value) {
    (
        serde_json::from_str(include_str!("../../tests/vectors/keys.json")).unwrap(),
        serde_json::from_str(include_str!("../../tests/vectors/signatures.json")).unwrap(),
    )
}

fn public(name: &str, extra: Value) -> Value {
    let mut key = vectors().0[name]["public"].clone();
    let members = key.as_object_mut().unwrap();
    members.extend(extra.as_object().unwrap().clone());
    key
}

fn parse(keys: &[Value]) -> (KeySet, usize) {
    KeySet::parse(&json!({ "keys": keys }).to_string()).unwrap()
}

fn verdict(keys: &[Value], token: &str) -> Result<Result<(), AuthError>, KeyLookupError> {
    parse(keys)
        .0
        .verify(&CompactToken::parse(token.as_bytes()).unwrap())
}

#[test]
fn the_signatures_of_the_rfcs_are_genuine() {
    let (_, signatures) = vectors();
    for vector in signatures.as_array().unwrap() {
        let keys = [public(vector["key"].as_str().unwrap(), json!({}))];
        let token = vector["token"].as_str().unwrap();
        assert_eq!(verdict(&keys, token), Ok(Ok(())), "{}", vector["source"]);
    }
}

#[test]
fn a_signature_over_something_else_is_not_genuine() {
    let (_, signatures) = vectors();
    for vector in signatures.as_array().unwrap() {
        let keys = [public(vector["key"].as_str().unwrap(), json!({}))];
        let (header, rest) = vector["token"].as_str().unwrap().split_once('.').unwrap();
        let forged = format!("{header}.e30{}", &rest[rest.find('.').unwrap()..]);
        assert_eq!(verdict(&keys, &forged), Ok(Err(AuthError::InvalidSignature)));
        let short = forged[..forged.len() - 4].to_owned();
        assert_eq!(verdict(&keys, &short), Ok(Err(AuthError::InvalidSignature)));
    }
}

#[test]
fn a_token_without_a_key_id_fits_only_when_one_key_can_be_meant() {
    let (_, signatures) = vectors();
    let token = signatures[1]["token"].as_str().unwrap();
    let meant = public("es256", json!({"kid": "a"}));
    let other = public("es256_other", json!({"kid": "b"}));
    assert_eq!(
        verdict(&[meant.clone(), public("eddsa", json!({}))], token),
        Ok(Ok(()))
    );
    assert_eq!(verdict(&[meant, other], token), Err(KeyLookupError::Ambiguous));
    assert_eq!(
        verdict(&[public("rs256", json!({}))], token),
        Err(KeyLookupError::Missing)
    );
}

#[test]
fn keys_that_are_not_for_these_signatures_are_left_out() {
    let wrong = [
        public("es256", json!({"use": "enc"})),
        public("es256", json!({"key_ops": ["sign"]})),
        public("es256", json!({"alg": "ES384"})),
        public("es256", json!({"crv": "P-384"})),
        public("es256", json!({"crv": "secp256k1"})),
        public("es256", json!({"x": "AAAA"})),
        public("es256", json!({"y": null})),
        public(
            "es256",
            json!({"d": "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}),
        ),
        public("rs256", json!({"alg": "PS256"})),
        public("rs256", json!({"alg": "HS256"})),
        public(
            "rs256",
            json!({"n": "sXchDaQebHnPiGvyDOAT4saGEUetSyo9MKLOoWFsueri23bOdgWp4Dy1Wl"}),
        ),
        public("rs256", json!({"e": "AQ"})),
        public("rs256", json!({"e": "AAE"})),
        public("rs256", json!({"e": "Ag"})),
        public("rs256", json!({"e": ""})),
        public("eddsa", json!({"crv": "X25519"})),
        public("eddsa", json!({"kid": 7})),
        json!({"kty": "oct", "k": "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ"}),
        json!({"kty": "AKP", "alg": "ML-DSA-44", "pub": "AAAA"}),
        json!("RSA"),
        json!(["RSA"]),
        json!(null),
    ];
    for key in wrong {
        let (set, ignored) = parse(&[
            key.clone(),
            public("eddsa", json!({"use": "sig", "alg": "EdDSA"})),
        ]);
        assert_eq!((set.len(), ignored), (1, 1), "{key}");
    }
}

#[test]
fn an_rsa_key_of_2047_bits_is_left_out_whatever_zeros_stand_before_it() {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let sized = |first: u8| {
        let modulus: Vec<u8> = [0, first].into_iter().chain([0xff; 255]).collect();
        parse(&[public("rs256", json!({"n": URL_SAFE_NO_PAD.encode(modulus)}))])
            .0
            .len()
    };
    assert_eq!(sized(0x7f), 0);
    assert_eq!(sized(0x80), 1);
}

#[test]
fn the_second_key_of_one_name_and_algorithm_is_left_out() {
    let one = public("es256", json!({"kid": "a"}));
    let two = public("es256_other", json!({"kid": "a"}));
    let of_another_type = public("eddsa", json!({"kid": "a"}));
    let (set, ignored) = parse(&[one, two, of_another_type]);
    assert_eq!((set.len(), ignored), (2, 1));
}

#[test]
fn an_empty_set_is_a_set() {
    let (set, ignored) = parse(&[]);
    assert!(set.is_empty());
    assert_eq!(ignored, 0);
}

#[test]
fn what_is_no_key_set_is_refused() {
    for text in [
        "",
        "[]",
        "{}",
        "[[]]",
        r#"{"keys": {}}"#,
        r#"{"keys": [], "keys": []}"#,
        r#"{"keys": []} x"#,
    ] {
        assert_eq!(KeySet::parse(text).unwrap_err(), Error::MalformedKeySet, "{text}");
    }
    let many = json!({ "keys": vec![json!({}); 65] }).to_string();
    assert!(matches!(KeySet::parse(&many), Err(Error::KeySetTooLarge { .. })));
    let long = format!(r#"{{"keys": [], "x": "{}"}}"#, "x".repeat(300_000));
    assert!(matches!(KeySet::parse(&long), Err(Error::KeySetTooLarge { .. })));
}
