//! Attacks on signed tokens (RFC 8725 section 2): each is refused with the correct reason.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey};
use proofgate_auth::{AuthError, Authenticator, KeyHeader, SigningAlgorithm};
use serde_json::json;
use support::{
    ISSUER, OTHER_ISSUER, authenticate, authenticator, claims, claims_with, header, issuer, key_set,
    public_key, sign, sign_as, tenants, token,
};

fn denial(token: &str) -> AuthError {
    authenticate(&authenticator(), token).unwrap_err()
}

#[test]
fn an_unsigned_token_is_refused() {
    for algorithm in ["none", "None", "NONE", ""] {
        let header = json!({"alg": algorithm, "kid": "es256"}).to_string();
        let signed = sign("es256", &header, &claims().to_string());
        assert_eq!(denial(&signed), AuthError::UnsupportedAlgorithm, "{algorithm}");
        let unsigned = &signed[..=signed.rfind('.').unwrap()];
        assert_eq!(denial(unsigned), AuthError::UnsupportedAlgorithm, "{algorithm}");
    }
    let genuine = token(&claims());
    let stripped = &genuine[..=genuine.rfind('.').unwrap()];
    assert_eq!(denial(stripped), AuthError::InvalidSignature);
}

#[test]
fn a_public_key_is_not_taken_for_a_shared_secret() {
    let key = public_key("rs256");
    let modulus = URL_SAFE_NO_PAD.decode(key["n"].as_str().unwrap()).unwrap();
    let secrets = [
        modulus,
        key.to_string().into_bytes(),
        key["n"].as_str().unwrap().into(),
    ];
    for secret in secrets {
        for name in ["HS256", "RS256"] {
            let header = json!({"alg": name, "kid": "rs256"}).to_string();
            let forged = sign_as(
                Algorithm::HS256,
                &EncodingKey::from_secret(&secret),
                &header,
                &claims().to_string(),
            );
            let expected = match name {
                "HS256" => AuthError::UnsupportedAlgorithm,
                _ => AuthError::InvalidSignature,
            };
            assert_eq!(denial(&forged), expected, "{name}");
        }
    }
}

#[test]
fn a_key_is_used_with_its_own_algorithm_only() {
    for (signer, named) in [("es256", "rs256"), ("eddsa", "es256"), ("rs256", "eddsa")] {
        let mut header = header(signer);
        header["kid"] = json!(named);
        let token = sign(signer, &header.to_string(), &claims().to_string());
        assert_eq!(
            denial(&token),
            AuthError::UnsupportedAlgorithm,
            "{signer} as {named}"
        );
    }
    for algorithm in ["RS384", "PS256", "ES384", "ES256K", "HS512", "rs256", "Ed448"] {
        let header = json!({"alg": algorithm, "kid": "rs256"}).to_string();
        let token = sign("rs256", &header, &claims().to_string());
        assert_eq!(denial(&token), AuthError::UnsupportedAlgorithm, "{algorithm}");
    }
}

#[test]
fn an_algorithm_that_the_issuer_is_not_configured_for_is_refused() {
    let authenticator = Authenticator::new(
        tenants(),
        HashMap::new(),
        vec![issuer(ISSUER, &[SigningAlgorithm::EdDsa])],
    )
    .unwrap();
    let keys = key_set(&["es256", "eddsa"]);
    authenticator.set_key_set(ISSUER, keys).unwrap();
    assert_eq!(
        authenticate(&authenticator, &token(&claims())),
        Err(AuthError::UnsupportedAlgorithm)
    );
}

#[test]
fn a_key_inside_the_token_is_not_looked_at() {
    let attacker = public_key("es256_other");
    for header in [
        json!({"alg": "ES256", "kid": "es256", "jwk": attacker}),
        json!({"alg": "ES256", "kid": "es256", "jku": "https://attacker.example/keys", "x5u": "https://attacker.example"}),
        json!({"alg": "ES256", "jwk": attacker}),
    ] {
        let forged = sign("es256_other", &header.to_string(), &claims().to_string());
        assert_eq!(denial(&forged), AuthError::InvalidSignature, "{header}");
    }
}

#[test]
fn an_issuer_cannot_speak_for_another() {
    let es256 = [SigningAlgorithm::Es256];
    let issuers = vec![issuer(ISSUER, &es256), issuer(OTHER_ISSUER, &es256)];
    let authenticator = Authenticator::new(tenants(), HashMap::new(), issuers).unwrap();
    for (name, key) in [(ISSUER, "es256"), (OTHER_ISSUER, "es256_other")] {
        authenticator.set_key_set(name, key_set(&[key])).unwrap();
    }
    let own = |issuer, key| {
        let payload = claims_with(json!({ "iss": issuer })).to_string();
        authenticate(&authenticator, &sign(key, &header(key).to_string(), &payload))
    };
    let (one, other) = (
        own(ISSUER, "es256").unwrap(),
        own(OTHER_ISSUER, "es256_other").unwrap(),
    );
    assert_ne!(
        one.credential, other.credential,
        "one subject of two issuers is two"
    );
    assert_eq!(own(ISSUER, "es256_other"), Err(AuthError::UnknownSigningKey));
    assert_eq!(own(OTHER_ISSUER, "es256"), Err(AuthError::UnknownSigningKey));
}

#[test]
fn a_critical_extension_is_refused_because_none_is_understood() {
    for critical in [
        json!(["b64"]),
        json!(["exp"]),
        json!([]),
        json!(null),
        json!("b64"),
    ] {
        let header = json!({"alg": "ES256", "kid": "es256", "crit": critical, "b64": false}).to_string();
        let token = sign("es256", &header, &claims().to_string());
        assert_eq!(denial(&token), AuthError::MalformedToken, "{critical}");
    }
}

#[test]
fn a_header_that_can_be_read_in_two_ways_is_refused() {
    for header in [
        r#"{"alg":"ES256","alg":"none","kid":"es256"}"#,
        r#"{"alg":"ES256","kid":"es256","kid":"eddsa"}"#,
        r#"{"alg":"ES256","kid":7}"#,
        r#"{"alg":["ES256"],"kid":"es256"}"#,
        r#"{"kid":"es256"}"#,
        r#"["ES256","es256"]"#,
        r#"{"alg":"ES256","kid":"es256"} {}"#,
        "",
    ] {
        let token = sign("es256", header, &claims().to_string());
        assert_eq!(denial(&token), AuthError::MalformedToken, "{header}");
    }
}

#[test]
fn a_token_has_one_spelling() {
    let genuine = sign("eddsa", &header("eddsa").to_string(), &claims().to_string());
    let (input, signature) = genuine.rsplit_once('.').unwrap();
    assert!(signature.contains(['-', '_']));
    let standard_alphabet = format!("{input}.{}", signature.replace('-', "+").replace('_', "/"));
    // The last character of 64 bytes carries four unused bits.
    let last = signature.chars().last().unwrap();
    let other = char::from(last as u8 + 1);
    let unused_bits = format!("{input}.{}{other}", &signature[..signature.len() - 1]);
    for spelling in [format!("{genuine}=="), standard_alphabet, unused_bits] {
        assert_eq!(denial(&spelling), AuthError::InvalidSignature, "{spelling}");
    }
}

#[test]
fn a_token_is_bounded_in_length() {
    let filler = "x".repeat(5000);
    let long = token(&claims_with(json!({ "filler": filler })));
    assert!(long.len() > 6000 && long.len() < 8192);
    assert!(authenticate(&authenticator(), &long).is_ok());
    let too_long = token(&claims_with(json!({ "filler": format!("{filler}{filler}") })));
    assert_eq!(
        denial(&too_long),
        AuthError::MalformedKey(KeyHeader::Authorization)
    );
}

#[test]
fn an_encrypted_token_is_no_signed_one() {
    let token = format!("{}.x", token(&claims()));
    assert_eq!(denial(&token), AuthError::UnknownKey);
    let encrypted = format!("{}.x.y", "e30");
    assert_eq!(denial(&encrypted), AuthError::MalformedToken);
}
