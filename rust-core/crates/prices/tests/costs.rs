//! What exchanges cost, against sums made token by token, and which price holds when.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_prices::{Entry, MAX_COST, Price, PriceError, PriceTable, Seller, Tokens};
use proptest::prelude::*;
use serde_json::json;

const VENDOR: Seller<'_> = Seller {
    provider: "vendor",
    host: "api.vendor.example",
};

fn entry(value: serde_json::Value) -> Entry {
    let mut entry = json!({"model": "large", "effective_from": 0, "input": "1", "output": "2"});
    for (name, value) in value.as_object().unwrap() {
        entry[name] = value.clone();
    }
    serde_json::from_value(entry).unwrap()
}

/// The input price that holds for `large` at a second.
fn input_at(entries: &[serde_json::Value], second: u64) -> Option<u64> {
    let entries: Vec<_> = entries.iter().cloned().map(entry).collect();
    let schedule = PriceTable::new(&entries).unwrap().schedule(VENDOR, "large");
    schedule
        .at(second * 1_000_000)
        .map(|held| held.price.input / 1_000_000)
}

#[test]
fn a_token_of_a_prompt_is_charged_once_whatever_it_counts_as() {
    // Of 100 tokens, 40 were read from a cache, 20 written to one (BerriAI/litellm#9812, #11789).
    let table = PriceTable::new(&[entry(json!({
        "input": "3", "cached_input": "0.30", "cache_write": "3.75", "output": "15"
    }))]);
    let schedule = table.unwrap().schedule(VENDOR, "large");
    let tokens = Tokens {
        prompt: 100,
        cached: 40,
        cache_write: 20,
        completion: 50,
        ..Tokens::default()
    };
    // 40 × 0.30 + 20 × 3.75 + 40 × 3 + 50 × 15 microdollars.
    assert_eq!(schedule.at(0).unwrap().price.cost(&tokens), 957_000);
}

#[test]
fn a_part_without_a_price_of_its_own_costs_what_its_total_does() {
    let table = PriceTable::new(&[entry(json!({}))]).unwrap();
    let price = table.schedule(VENDOR, "large").at(0).unwrap().price;
    let expected = Price {
        input: 1_000_000,
        cached_input: 1_000_000,
        cache_write: 1_000_000,
        audio_input: 1_000_000,
        output: 2_000_000,
        audio_output: 2_000_000,
        per_request: 0,
    };
    assert_eq!(price, expected);
}

#[test]
fn what_is_less_than_a_nanodollar_counts_as_one() {
    let price = Price {
        input: 1,
        ..Price::default()
    };
    let cost = |prompt| {
        price.cost(&Tokens {
            prompt,
            ..Tokens::default()
        })
    };
    assert_eq!([0, 1, 1000, 1001].map(cost), [0, 1, 1, 2]);
}

#[test]
fn a_request_has_its_own_price_besides() {
    let table = PriceTable::new(&[entry(json!({"per_request": "0.000000000001"}))]).unwrap();
    let price = table.schedule(VENDOR, "large").at(0).unwrap().price;
    assert_eq!(price.per_request, 1);
    assert_eq!(price.cost(&Tokens::default()), 1);
    assert_eq!(price.most(0, 0), 1);
}

#[test]
fn the_price_of_a_time_is_the_latest_that_holds_then() {
    let entries = [
        json!({"effective_from": 100, "input": "1"}),
        json!({"effective_from": 200, "input": "2"}),
    ];
    let at = |second| input_at(&entries, second);
    assert_eq!(
        [99, 100, 199, 200, 1_000_000].map(at),
        [None, Some(1), Some(1), Some(2), Some(2)]
    );
}

#[test]
fn the_closer_a_price_names_a_model_the_more_it_holds() {
    let mut entries = vec![json!({"default": true, "input": "1"})];
    for (number, more) in [
        json!({"model": "*"}),
        json!({"model": "lar*"}),
        json!({"model": "large"}),
        json!({"model": "*", "provider": "vendor"}),
        json!({"model": "large", "provider": "vendor"}),
        json!({"model": "large", "provider": "vendor", "effective_from": 5}),
    ]
    .into_iter()
    .enumerate()
    {
        let mut more = more;
        more["input"] = json!((number + 2).to_string());
        assert_eq!(input_at(&entries, 9), Some(number as u64 + 1));
        entries.push(more);
    }
    assert_eq!(input_at(&entries, 9), Some(7));
}

#[test]
fn a_price_of_the_future_does_not_hide_one_that_holds() {
    let entries = [
        json!({"model": "*", "input": "1"}),
        json!({"model": "large", "effective_from": 100, "input": "2"}),
    ];
    assert_eq!(input_at(&entries, 50), Some(1));
    assert_eq!(input_at(&entries, 100), Some(2));
}

#[test]
fn prices_of_other_providers_models_and_hosts_do_not_hold() {
    for other in [
        json!({"provider": "other"}),
        json!({"host": "api.other.example"}),
        json!({"model": "large-2"}),
        json!({"model": "large-*"}),
    ] {
        assert_eq!(input_at(&[other], 9), None);
    }
    assert_eq!(input_at(&[json!({"host": "api.vendor.example"})], 9), Some(1));
}

#[test]
fn a_price_that_cannot_be_believed_is_refused() {
    let refused = |entries: &[serde_json::Value]| {
        let entries: Vec<_> = entries.iter().cloned().map(entry).collect();
        PriceTable::new(&entries).unwrap_err()
    };
    assert!(matches!(
        refused(&[json!({"input": "-1"})]),
        PriceError::Decimal { field: "input", .. }
    ));
    assert!(matches!(
        refused(&[json!({"model": "a*b"})]),
        PriceError::Pattern { .. }
    ));
    assert!(matches!(
        refused(&[json!({}), json!({"input": "5"})]),
        PriceError::Twice { .. }
    ));
}

fn tokens() -> impl Strategy<Value = Tokens> {
    let one = || prop_oneof![0..50u64, 0..1u64 << 41, any::<u64>()];
    (one(), one(), one(), one(), one(), one()).prop_map(
        |(prompt, cached, cache_write, audio_prompt, completion, audio_completion)| Tokens {
            prompt,
            cached,
            cache_write,
            audio_prompt,
            completion,
            audio_completion,
        },
    )
}

fn price() -> impl Strategy<Value = Price> {
    let one = || prop_oneof![0..5u64, 0..=1_000_000_000_000u64];
    ((one(), one(), one(), one()), (one(), one(), one())).prop_map(
        |((input, cached_input, cache_write, audio_input), (output, audio_output, per_request))| Price {
            input,
            cached_input,
            cache_write,
            audio_input,
            output,
            audio_output,
            per_request,
        },
    )
}

/// Numbers of any length, as lists of decimal digits, the lowest first: nothing of it is the crate's arithmetic.
mod digits {
    pub fn of(number: u64) -> Vec<u8> {
        number
            .to_string()
            .bytes()
            .rev()
            .map(|digit| digit - b'0')
            .collect()
    }

    pub fn add(one: &[u8], other: &[u8]) -> Vec<u8> {
        let mut carry = 0;
        let mut sum: Vec<u8> = (0..one.len().max(other.len()))
            .map(|at| {
                let digit = one.get(at).unwrap_or(&0) + other.get(at).unwrap_or(&0) + carry;
                carry = digit / 10;
                digit % 10
            })
            .collect();
        sum.push(carry);
        sum
    }

    pub fn times(one: &[u8], other: &[u8]) -> Vec<u8> {
        let mut product = vec![0];
        for (shift, digit) in other.iter().enumerate() {
            let mut shifted = vec![0; shift];
            shifted.extend_from_slice(one);
            for _ in 0..*digit {
                product = add(&product, &shifted);
            }
        }
        product
    }

    /// Divided by 1000 and rounded up.
    pub fn thousandth(one: &[u8]) -> String {
        let rest = one.iter().take(3).any(|digit| *digit > 0);
        let mut quotient = one.get(3..).unwrap_or_default().to_vec();
        if rest {
            quotient = add(&quotient, &[1]);
        }
        let text: String = quotient
            .iter()
            .rev()
            .map(|digit| char::from(digit + b'0'))
            .collect();
        let text = text.trim_start_matches('0');
        if text.is_empty() { "0".into() } else { text.into() }
    }
}

proptest! {
    #[test]
    fn a_cost_is_the_exact_sum_rounded_up_once(tokens in tokens(), price in price()) {
        let mut left = tokens.prompt;
        let mut parts = Vec::new();
        for (part, each) in [
            (tokens.cached, price.cached_input),
            (tokens.cache_write, price.cache_write),
            (tokens.audio_prompt, price.audio_input),
            (u64::MAX, price.input),
        ] {
            let taken = part.min(left);
            left -= taken;
            parts.push((taken, each));
        }
        let audio = tokens.audio_completion.min(tokens.completion);
        parts.extend([(audio, price.audio_output), (tokens.completion - audio, price.output)]);
        let sum = parts.iter().fold(digits::of(price.per_request), |sum, (tokens, each)| {
            digits::add(&sum, &digits::times(&digits::of(*tokens), &digits::of(*each)))
        });
        let exact = digits::thousandth(&sum);
        let expected = exact.parse::<u64>().unwrap_or(u64::MAX).min(MAX_COST);
        prop_assert_eq!(price.cost(&tokens), expected);
    }

    #[test]
    fn no_exchange_costs_more_than_was_set_aside_for_its_tokens(
        tokens in tokens(), price in price(), more in (0..9u64, 0..9u64),
    ) {
        let most = price.most(tokens.prompt.saturating_add(more.0), tokens.completion.saturating_add(more.1));
        prop_assert!(price.cost(&tokens) <= most);
    }
}
