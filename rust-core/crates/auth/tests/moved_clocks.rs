//! A clock that is set forward or back between two requests: tokens and keys are checked against
//! the current time, whatever was verified before.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_auth::AuthError;
use serde_json::{Value, json};
use support::{LEEWAY, NOW, authenticate_at, authenticator, claims_with, key_set, token};

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;
const STEPS: [u64; 5] = [1, 2 * HOUR, DAY, 40 * DAY, 3652 * DAY];
/// The seconds before and after `NOW` in which a token is valid.
const LIFE: u64 = 600;

fn living(changes: Value) -> String {
    let mut all = json!({"iat": NOW - LIFE, "nbf": NOW - LIFE, "exp": NOW + LIFE});
    all.as_object_mut()
        .unwrap()
        .extend(changes.as_object().unwrap().clone());
    token(&claims_with(all))
}

/// Returns the expected result for a token at a time.
fn expected(now: u64) -> Result<(), AuthError> {
    match now {
        _ if now >= NOW + LIFE + LEEWAY => Err(AuthError::ExpiredToken),
        _ if now + LEEWAY < NOW - LIFE => Err(AuthError::TokenNotYetValid),
        _ => Ok(()),
    }
}

#[test]
fn a_token_that_was_verified_counts_as_one_that_was_not_wherever_the_clock_goes() {
    let living = living(json!({}));
    let known = authenticator();
    for step in STEPS {
        for moved in [NOW + step, NOW - step] {
            authenticate_at(&known, &living, NOW).unwrap();
            let verdict = authenticate_at(&known, &living, moved).map(drop);
            assert_eq!(verdict, expected(moved), "by {step} s to {moved}");
            let unknown = authenticate_at(&authenticator(), &living, moved).map(drop);
            assert_eq!(unknown, verdict, "by {step} s to {moved}, never seen before");
            authenticate_at(&known, &living, NOW).unwrap();
        }
    }
}

#[test]
fn a_token_of_a_wrong_time_is_good_once_the_clock_is_right_and_not_before() {
    for step in STEPS.into_iter().filter(|step| *step > LIFE + LEEWAY) {
        let living = living(json!({}));
        let known = authenticator();
        for (wrong, error) in [
            (NOW + step, AuthError::ExpiredToken),
            (NOW - step, AuthError::TokenNotYetValid),
        ] {
            assert_eq!(authenticate_at(&known, &living, wrong).unwrap_err(), error);
            authenticate_at(&known, &living, NOW).unwrap();
            assert_eq!(authenticate_at(&known, &living, wrong).unwrap_err(), error);
        }
    }
}

#[test]
fn when_a_token_was_issued_refuses_nobody() {
    let known = authenticator();
    for step in STEPS {
        for issued in [NOW + step, NOW - step] {
            let living = living(json!({"iat": issued, "nbf": null}));
            authenticate_at(&known, &living, NOW).unwrap();
        }
    }
}

#[test]
fn the_ends_of_a_token_are_exact_in_both_directions() {
    let living = living(json!({}));
    let known = authenticator();
    let (first, last) = (NOW - LIFE - LEEWAY, NOW + LIFE + LEEWAY - 1);
    for now in [first, last, first, NOW, last] {
        authenticate_at(&known, &living, now).unwrap();
        assert!(authenticate_at(&known, &living, first - 1).is_err());
        assert!(authenticate_at(&known, &living, last + 1).is_err());
    }
}

#[test]
fn keys_that_were_replaced_stay_so_wherever_the_clock_goes() {
    let living = living(json!({}));
    for step in STEPS {
        for moved in [NOW + step, NOW - step] {
            let known = authenticator();
            authenticate_at(&known, &living, NOW).unwrap();
            known.set_key_set(support::ISSUER, key_set(&[])).unwrap();
            for now in [moved, NOW] {
                assert!(authenticate_at(&known, &living, now).is_err());
            }
        }
    }
}
