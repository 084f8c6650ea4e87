//! Measures the authentication of a request: by API key, by a cached token, and by an uncached one.
//!
//! `cargo run --release -p proofgate-auth --example auth_cost`
#![allow(clippy::unwrap_used, reason = "a measurement may fail")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::collections::HashMap;

use std::hint::black_box;
use std::time::Instant;

use proofgate_auth::{ApiKey, AuthError, Authenticator, Shards, TenantTable, hash_api_key};
use serde_json::json;
use support::{ALL, ISSUER, NOW, authorization, claims, claims_with, header, issuer, key_set, sign, tenant};

const TENANTS: usize = 1000;

/// Returns the nanoseconds of one call: the minimum of seven series, to exclude other load on the
/// machine.
fn measure(name: &str, rounds: u32, mut call: impl FnMut()) {
    let series = (0..7).map(|_| {
        let start = Instant::now();
        (0..rounds).for_each(|_| call());
        start.elapsed().as_nanos() / u128::from(rounds)
    });
    println!("{name:44} {:>7} ns", series.min().unwrap_or_default());
}

/// Returns a gateway with 1000 tenants, each with one key, that also accepts tokens.
fn gateway() -> Authenticator {
    let key = |index: usize| ApiKey::from(hash_api_key(format!("sk-proofgate-{index:032}").as_bytes()));
    let others = (1..TENANTS).map(|index| (tenant(&format!("tenant-{index}")), vec![key(index)]));
    let tenants = TenantTable::new(std::iter::once((tenant("acme"), vec![key(0)])).chain(others)).unwrap();
    Authenticator::new(tenants, HashMap::new(), vec![issuer(ISSUER, &ALL)]).unwrap()
}

fn bearer(token: &str) -> Vec<u8> {
    format!("Bearer {token}").into_bytes()
}

fn main() {
    let gateway = gateway();
    let authenticate = |value: &[u8], now| {
        black_box(gateway.authenticate(&Shards::default(), &authorization(black_box(value)), now))
    };
    println!("{TENANTS} tenants, keys of 45 bytes");
    let known = bearer(&format!("sk-proofgate-{:032}", 500));
    measure("API key, known", 200_000, || {
        authenticate(&known, NOW).unwrap();
    });
    let unknown = bearer(&format!("sk-proofgate-{:032}", TENANTS));
    measure("API key, unknown", 200_000, || {
        authenticate(&unknown, NOW).unwrap_err();
    });
    measure("SHA-256 of that key alone", 200_000, || {
        black_box(hash_api_key(black_box(&known[7..])));
    });
    for key in ["rs256", "es256", "eddsa"] {
        let token = bearer(&sign(key, &header(key).to_string(), &claims().to_string()));
        println!("{key} token of {} bytes", token.len() - 7);
        gateway.set_key_set(ISSUER, key_set(&[key])).unwrap();
        measure("  remembered", 100_000, || {
            authenticate(&token, NOW).unwrap();
        });
        measure("  SHA-256 of it alone", 100_000, || {
            black_box(hash_api_key(black_box(&token[7..])));
        });
        // A new key set invalidates the verifier's cache.
        let mut key_sets = [key_set(&[key]), key_set(&[key, "es256_other"])]
            .into_iter()
            .cycle();
        measure("  verified", 600, || {
            let keys = key_sets.next().unwrap();
            gateway.set_key_set(ISSUER, keys).unwrap();
            authenticate(&token, NOW).unwrap();
        });
        let expired = bearer(&sign(
            key,
            &header(key).to_string(),
            &claims_with(json!({"exp": 1})).to_string(),
        ));
        measure("  expired, refused before the signature", 20_000, || {
            assert_eq!(authenticate(&expired, NOW), Err(AuthError::ExpiredToken));
        });
    }
    let garbage = bearer(&format!(
        "{}.{}.{}",
        "e30".repeat(900),
        "e30".repeat(900),
        "A".repeat(86)
    ));
    measure("garbage of 5.4 KB in the form of a token", 20_000, || {
        authenticate(&garbage, NOW).unwrap_err();
    });
}
