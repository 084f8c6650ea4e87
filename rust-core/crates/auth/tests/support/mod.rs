//! Tokens signed with the example keys of the RFCs, and a gateway with two tenants that accepts them.

#![allow(dead_code, reason = "each test file uses only some of these helpers")]

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey};
use proofgate_auth::{
    ApiKeyHeaders, AuthError, Authenticator, Identity, Issuer, KeyHeader, KeySet, Shards, SigningAlgorithm,
    Tenant, TenantTable, hash_api_key,
};
use serde_json::{Value, json};

pub const ISSUER: &str = "https://login.example.com/";
pub const OTHER_ISSUER: &str = "https://login.example.org/";
pub const AUDIENCE: &str = "proofgate";
pub const LEEWAY: u64 = 60;
pub const NOW: u64 = 1_800_000_000;
pub const EXPIRES: u64 = NOW + 600;

pub fn tenant(name: &str) -> Tenant {
    Tenant {
        name: name.into(),
        plan: 0,
    }
}

pub fn tenants() -> TenantTable {
    TenantTable::new([
        (
            tenant("acme"),
            vec![
                hash_api_key(b"acme-key").into(),
                hash_api_key(b"acme.v2.key").into(),
            ],
        ),
        (tenant("globex"), vec![]),
    ])
    .unwrap()
}

pub fn issuer(name: &str, algorithms: &[SigningAlgorithm]) -> Issuer {
    Issuer {
        issuer: name.into(),
        audiences: vec![AUDIENCE.into(), "proofgate-beta".into()],
        algorithms: algorithms.to_vec(),
        tenant_claim: "tenant".into(),
        leeway_seconds: LEEWAY,
    }
}

pub const ALL: [SigningAlgorithm; 3] = [
    SigningAlgorithm::Rs256,
    SigningAlgorithm::Es256,
    SigningAlgorithm::EdDsa,
];

/// Returns an authenticator that accepts every example key from `ISSUER`, with its name in the
/// vector file.
pub fn authenticator() -> Authenticator {
    let authenticator = Authenticator::new(tenants(), HashMap::new(), vec![issuer(ISSUER, &ALL)]).unwrap();
    let keys = key_set(&["rs256", "es256", "eddsa"]);
    authenticator.set_key_set(ISSUER, keys).unwrap();
    authenticator
}

pub fn vectors() -> Value {
    serde_json::from_str(include_str!("../vectors/keys.json")).unwrap()
}

pub fn public_key(name: &str) -> Value {
    let mut key = vectors()[name]["public"].clone();
    key["kid"] = json!(name);
    key
}

pub fn key_set(names: &[&str]) -> KeySet {
    let keys: Vec<Value> = names.iter().map(|name| public_key(name)).collect();
    KeySet::parse(&json!({ "keys": keys }).to_string()).unwrap().0
}

/// Signs any header and payload with an example key, whatever algorithm the header claims.
pub fn sign(key: &str, header: &str, payload: &str) -> String {
    let der = STANDARD
        .decode(vectors()[key]["private_der"].as_str().unwrap())
        .unwrap();
    let (algorithm, key) = match key {
        "rs256" => (Algorithm::RS256, EncodingKey::from_rsa_der(&der)),
        "eddsa" => (Algorithm::EdDSA, EncodingKey::from_ed_der(&der)),
        _ => (Algorithm::ES256, EncodingKey::from_ec_der(&der)),
    };
    sign_as(algorithm, &key, header, payload)
}

pub fn sign_as(algorithm: Algorithm, key: &EncodingKey, header: &str, payload: &str) -> String {
    let input = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(payload)
    );
    let signature = jsonwebtoken::crypto::sign(input.as_bytes(), key, algorithm).unwrap();
    format!("{input}.{signature}")
}

pub fn header(key: &str) -> Value {
    let algorithm = match key {
        "rs256" => "RS256",
        "eddsa" => "EdDSA",
        _ => "ES256",
    };
    json!({ "alg": algorithm, "kid": key, "typ": "at+jwt" })
}

pub fn claims() -> Value {
    json!({ "iss": ISSUER, "aud": AUDIENCE, "exp": EXPIRES, "sub": "alice", "tenant": "acme" })
}

/// Returns the usual claims with some replaced; `null` removes a claim.
pub fn claims_with(changes: Value) -> Value {
    let mut claims = claims();
    let members = claims.as_object_mut().unwrap();
    members.extend(changes.as_object().unwrap().clone());
    members.retain(|_, value| !value.is_null());
    claims
}

/// Returns a valid ES256 token with these claims.
pub fn token(claims: &Value) -> String {
    sign("es256", &header("es256").to_string(), &claims.to_string())
}

/// Returns a request in which only Authorization contains a key, with this value.
pub fn authorization(value: &[u8]) -> ApiKeyHeaders<'_> {
    with(KeyHeader::Authorization, value, ApiKeyHeaders::default())
}

/// Returns the fields with one added or replaced.
pub fn with<'h>(field: KeyHeader, value: &'h [u8], mut fields: ApiKeyHeaders<'h>) -> ApiKeyHeaders<'h> {
    let place = match field {
        KeyHeader::Authorization => &mut fields.authorization,
        KeyHeader::XApiKey => &mut fields.x_api_key,
        KeyHeader::ApiKey => &mut fields.api_key,
        KeyHeader::XGoogApiKey => &mut fields.x_goog_api_key,
    };
    *place = Some(value);
    fields
}

/// Every field that can contain a key.
pub const FIELDS: [KeyHeader; 4] = [
    KeyHeader::Authorization,
    KeyHeader::XApiKey,
    KeyHeader::ApiKey,
    KeyHeader::XGoogApiKey,
];

pub fn authenticate_at(authenticator: &Authenticator, token: &str, now: u64) -> Result<Identity, AuthError> {
    let value = format!("Bearer {token}");
    authenticator.authenticate(&Shards::default(), &authorization(value.as_bytes()), now)
}

pub fn authenticate(authenticator: &Authenticator, token: &str) -> Result<Identity, AuthError> {
    authenticate_at(authenticator, token, NOW)
}
