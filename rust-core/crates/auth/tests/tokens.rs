//! Accepted signed tokens, and the resulting identities.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_auth::{AuthError, Credential};
use serde_json::{Value, json};
use support::{
    EXPIRES, ISSUER, LEEWAY, NOW, authenticate, authenticate_at, authenticator, claims, claims_with, header,
    sign, token,
};

fn denial(changes: Value) -> AuthError {
    authenticate(&authenticator(), &token(&claims_with(changes))).unwrap_err()
}

fn tenant_name(token: &str) -> String {
    let authenticator = authenticator();
    let identity = authenticate(&authenticator, token).unwrap();
    identity.tenant.name.to_string()
}

#[test]
fn a_token_of_each_algorithm_names_its_tenant() {
    for key in ["rs256", "es256", "eddsa"] {
        let token = sign(key, &header(key).to_string(), &claims().to_string());
        assert_eq!(tenant_name(&token), "acme", "{key}");
    }
    assert_eq!(
        tenant_name(&token(&claims_with(json!({"tenant": "globex"})))),
        "globex"
    );
}

#[test]
fn all_tokens_of_a_subject_are_one_key() {
    let authenticator = authenticator();
    let key = |changes| {
        authenticate(&authenticator, &token(&claims_with(changes)))
            .unwrap()
            .credential
    };
    let alice = key(json!({}));
    assert_eq!(alice, key(json!({"exp": EXPIRES + 1, "jti": "2"})));
    assert_ne!(alice, key(json!({"sub": "bob"})));
    let of = |text: &[u8]| Credential::Subject(proofgate_auth::hash_api_key(text));
    assert_eq!(alice, of(b"https://login.example.com/\0alice"));
    assert_eq!(key(json!({"sub": null})), of(b"https://login.example.com/\0acme"));
    assert_eq!(key(json!({"sub": ""})), of(b"https://login.example.com/\0acme"));
}

#[test]
fn api_keys_are_accepted_beside_tokens_even_with_two_dots() {
    let authenticator = authenticator();
    for key in ["acme-key", "acme.v2.key"] {
        let identity = authenticate(&authenticator, key).unwrap();
        assert!(matches!(identity.credential, Credential::ApiKey(_)), "{key}");
    }
    assert_eq!(
        authenticate(&authenticator, "unknown"),
        Err(AuthError::UnknownKey)
    );
    assert_eq!(authenticate(&authenticator, "a.b"), Err(AuthError::UnknownKey));
    assert_eq!(
        authenticate(&authenticator, "a.b.c"),
        Err(AuthError::MalformedToken)
    );
}

#[test]
fn a_token_is_only_good_for_who_it_is_meant_for() {
    for audience in [
        json!("other"),
        json!(["a", "b"]),
        json!([]),
        json!("PROOFGATE"),
        json!("proofgat"),
    ] {
        assert_eq!(
            denial(json!({ "aud": audience })),
            AuthError::WrongAudience,
            "{audience}"
        );
    }
    for audience in [json!(7), json!({}), json!(["proofgate", 7]), json!(null)] {
        assert_eq!(
            denial(json!({ "aud": audience })),
            AuthError::InvalidClaims,
            "{audience}"
        );
    }
    assert_eq!(
        tenant_name(&token(&claims_with(json!({"aud": ["x", "proofgate-beta"]})))),
        "acme"
    );
}

#[test]
fn an_issuer_is_its_exact_name() {
    for issuer in [
        "https://login.example.com",
        "HTTPS://login.example.com/",
        "https://login.example.com//",
        "",
    ] {
        assert_eq!(
            denial(json!({ "iss": issuer })),
            AuthError::UnknownIssuer,
            "{issuer}"
        );
    }
    assert_eq!(denial(json!({"iss": null})), AuthError::InvalidClaims);
    assert_eq!(denial(json!({"iss": [ISSUER]})), AuthError::InvalidClaims);
}

#[test]
fn a_token_ends_at_its_expiry_plus_the_leeway() {
    let (authenticator, token) = (authenticator(), token(&claims()));
    let end = EXPIRES + LEEWAY;
    // Both at the first verification and from the cache.
    assert_eq!(
        authenticate_at(&authenticator, &token, end),
        Err(AuthError::ExpiredToken)
    );
    assert!(authenticate_at(&authenticator, &token, end - 1).is_ok());
    assert!(authenticate_at(&authenticator, &token, end - 1).is_ok());
    assert_eq!(
        authenticate_at(&authenticator, &token, end),
        Err(AuthError::ExpiredToken)
    );
    assert_eq!(
        authenticate_at(&authenticator, &token, u64::MAX),
        Err(AuthError::ExpiredToken)
    );
}

#[test]
fn a_token_must_say_when_it_ends() {
    for expiry in [
        json!(null),
        json!("1900000000"),
        json!([1_900_000_000]),
        json!(true),
    ] {
        assert_eq!(
            denial(json!({ "exp": expiry })),
            AuthError::InvalidClaims,
            "{expiry}"
        );
    }
    for expiry in [
        json!(0),
        json!(-1),
        json!(-1.5),
        json!(NOW - LEEWAY),
        json!((NOW - LEEWAY) as f64 + 0.9),
    ] {
        assert_eq!(
            denial(json!({ "exp": expiry })),
            AuthError::ExpiredToken,
            "{expiry}"
        );
    }
    for expiry in [json!(EXPIRES as f64 + 0.5), json!(1e300), json!(u64::MAX)] {
        assert!(
            authenticate(&authenticator(), &token(&claims_with(json!({ "exp": expiry })))).is_ok(),
            "{expiry}"
        );
    }
}

#[test]
fn a_token_is_not_used_before_its_time() {
    assert_eq!(
        denial(json!({"nbf": NOW + LEEWAY + 1})),
        AuthError::TokenNotYetValid
    );
    assert_eq!(denial(json!({"nbf": "now"})), AuthError::InvalidClaims);
    for start in [json!(NOW + LEEWAY), json!(NOW), json!(-5), json!(1.5)] {
        assert!(
            authenticate(&authenticator(), &token(&claims_with(json!({ "nbf": start })))).is_ok(),
            "{start}"
        );
    }
}

#[test]
fn a_genuine_token_of_no_tenant_is_denied() {
    for tenant in [
        json!("initech"),
        json!("ACME"),
        json!(""),
        json!(7),
        json!(["acme"]),
        json!(null),
    ] {
        let denial = denial(json!({ "tenant": tenant }));
        assert_eq!(denial, AuthError::UnknownTenant, "{tenant}");
        assert_eq!(denial.status(), 403);
    }
}

#[test]
fn a_forged_token_does_not_tell_which_tenants_exist() {
    for tenant in ["acme", "initech"] {
        let payload = claims_with(json!({ "tenant": tenant })).to_string();
        let forged = sign("es256_other", &header("es256").to_string(), &payload);
        assert_eq!(
            authenticate(&authenticator(), &forged),
            Err(AuthError::InvalidSignature),
            "{tenant}"
        );
    }
}

#[test]
fn repeated_claims_are_refused() {
    let usual = claims().to_string();
    let with = |text: &str| usual.replacen('{', &format!("{{{text},"), 1);
    for (claim, expected) in [
        (r#""exp":1"#, AuthError::InvalidClaims),
        (r#""aud":"x""#, AuthError::InvalidClaims),
        (r#""iss":"x""#, AuthError::InvalidClaims),
        (r#""sub":"x""#, AuthError::InvalidClaims),
        (r#""tenant":"globex""#, AuthError::UnknownTenant),
    ] {
        let token = sign("es256", &header("es256").to_string(), &with(claim));
        assert_eq!(authenticate(&authenticator(), &token), Err(expected), "{claim}");
    }
}

#[test]
fn claims_that_are_no_object_are_refused() {
    for payload in [
        "",
        "null",
        "[]",
        "\"x\"",
        "{",
        "{}x",
        "[\"https://login.example.com/\",\"proofgate\",1900000000]",
    ] {
        let token = sign("es256", &header("es256").to_string(), payload);
        assert_eq!(
            authenticate(&authenticator(), &token),
            Err(AuthError::InvalidClaims),
            "{payload:?}"
        );
    }
}

#[test]
fn any_type_is_tolerated_and_so_is_an_unknown_parameter() {
    for header in [
        json!({"alg": "ES256", "kid": "es256"}),
        json!({"alg": "ES256", "kid": "es256", "typ": "JWT"}),
        json!({"alg": "ES256", "kid": "es256", "typ": 7, "cty": "x", "x5t": "y"}),
        json!({"alg": "ES256"}),
    ] {
        let token = sign("es256", &header.to_string(), &claims().to_string());
        assert_eq!(tenant_name(&token), "acme", "{header}");
    }
}
