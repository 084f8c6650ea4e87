//! Tests of the rate-limit header fields of a response.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_limits::{Limiter, TenantId};
use support::{KEY, MIDNIGHT, SECOND, START, consume, limiter};

fn fields(limiter: &mut Limiter, tenant: TenantId, now: u64) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    limiter.limit_status(tenant, KEY, now).write(&mut lines);
    let lines = String::from_utf8(lines).unwrap();
    assert!(lines.is_empty() || lines.ends_with("\r\n"));
    let fields = lines
        .split_terminator("\r\n")
        .map(|line| line.split_once(": ").unwrap());
    fields
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn expect(fields: &[(String, String)], expected: &[(&str, &str)]) {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(fields, expected);
}

#[test]
fn all_limits_are_told_in_both_dialects() {
    let (mut limiter, acme) = limiter([600, 100_000, 2_000_000, 64], [60, 0, 0, 0]);
    let grant = limiter.admit(acme, KEY, 5000, START).unwrap();
    let now = START + 10 * SECOND;
    let until_midnight = (MIDNIGHT - now).div_ceil(SECOND).to_string();
    assert_eq!(until_midnight, "6390");
    expect(
        &fields(&mut limiter, acme, now),
        &[
            (
                "ratelimit-policy",
                r#""requests";q=600;w=60, "tokens";q=100000;qu="tokens";w=60, "tokens-day";q=2000000;qu="tokens";w=86400, "concurrency";q=64;qu="concurrent-requests", "key-requests";q=60;w=60"#,
            ),
            (
                "ratelimit",
                r#""requests";r=599;t=51, "tokens";r=95000;t=51, "tokens-day";r=1995000;t=6390, "concurrency";r=63, "key-requests";r=59;t=51"#,
            ),
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-reset-requests", "51s"),
            ("x-ratelimit-limit-tokens", "100000"),
            ("x-ratelimit-remaining-tokens", "95000"),
            ("x-ratelimit-reset-tokens", "51s"),
        ],
    );
    limiter.settle(grant, 5000, now);
}

#[test]
fn the_oldest_second_brings_more_and_the_latest_brings_all() {
    let (mut limiter, acme) = limiter([600, 0, 0, 0], [0; 4]);
    for second in [0, 20, 40] {
        consume(&mut limiter, acme, KEY, 0, START + second * SECOND);
    }
    expect(
        &fields(&mut limiter, acme, START + 50 * SECOND),
        &[
            ("ratelimit-policy", r#""requests";q=600;w=60"#),
            ("ratelimit", r#""requests";r=597;t=11"#),
            ("x-ratelimit-limit-requests", "600"),
            ("x-ratelimit-remaining-requests", "597"),
            ("x-ratelimit-reset-requests", "51s"),
        ],
    );
}

#[test]
fn a_day_is_told_where_there_is_no_limit_for_a_minute() {
    let (mut limiter, acme) = limiter([0, 0, 1000, 0], [0; 4]);
    expect(
        &fields(&mut limiter, acme, START)[1..],
        &[
            ("ratelimit", r#""tokens-day";r=1000;t=6400"#),
            ("x-ratelimit-limit-tokens", "1000"),
            ("x-ratelimit-remaining-tokens", "1000"),
            ("x-ratelimit-reset-tokens", "0s"),
        ],
    );
    consume(&mut limiter, acme, KEY, 1000, START);
    expect(
        &fields(&mut limiter, acme, START)[2..],
        &[
            ("x-ratelimit-limit-tokens", "1000"),
            ("x-ratelimit-remaining-tokens", "0"),
            ("x-ratelimit-reset-tokens", "1h46m40s"),
        ],
    );
}

#[test]
fn a_wait_is_never_shorter_than_the_window_that_is_told() {
    let (mut limiter, acme) = limiter([1, 0, 0, 0], [0; 4]);
    consume(&mut limiter, acme, KEY, 0, START);
    for after in [0, 1, SECOND / 2 - 1, SECOND / 2, 30 * SECOND, 60 * SECOND] {
        let now = START + after;
        let refused = limiter.admit(acme, KEY, 0, now).unwrap_err();
        let told = fields(&mut limiter, acme, now);
        let window = told[1].1.rsplit_once("t=").unwrap().1.parse().unwrap();
        assert!(refused.retry_after_seconds() >= Some(window), "{told:?}");
    }
}

#[test]
fn the_longest_fields_are_whole() {
    let most = [u64::MAX - 1; 4];
    let (mut limiter, acme) = limiter(most, most);
    consume(&mut limiter, acme, KEY, 0, START);
    let told = fields(&mut limiter, acme, START);
    assert_eq!(told[0].1.matches("q=999999999999999").count(), 8);
    assert!(told[0].1.ends_with(r#";qu="concurrent-requests""#));
    assert_eq!(told[1].1.matches("r=999999999999999").count(), 8);
    assert!(told[1].1.ends_with("999"));
}
