//! Costs of exchanges, compared with sums made token by token, and which price applies when.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_prices::{
    Bands, MAX_COST, MaxUsage, Price, PriceEntry, PriceError, PriceTable, ProviderRef, Rates, ServedTier,
    Tokens,
};
use proptest::prelude::*;
use serde_json::json;

const DAY: u64 = 86_400;

const VENDOR: ProviderRef<'_> = ProviderRef {
    provider: "vendor",
    host: "api.vendor.example",
};

fn entry(value: serde_json::Value) -> PriceEntry {
    let mut entry = json!({"model": "large", "effectiveFrom": "1970-01-01", "input": "1", "output": "2"});
    for (name, value) in value.as_object().unwrap() {
        entry[name] = value.clone();
    }
    serde_json::from_value(entry).unwrap()
}

fn priced(value: serde_json::Value) -> Price {
    let table = PriceTable::new(&[entry(value)]).unwrap();
    let schedule = table.schedule(VENDOR, "large");
    Price::clone(&schedule.at(0).unwrap().price)
}

/// The cost of an exchange in the standard tier.
fn ordinary(price: &Price, tokens: &Tokens) -> u64 {
    price.cost(None, ServedTier::Unreported, tokens, 0)
}

fn prompt(prompt: u64) -> Tokens {
    Tokens {
        prompt,
        ..Tokens::default()
    }
}

/// The input price of `large` at a second.
fn input_at(entries: &[serde_json::Value], second: u64) -> Option<u64> {
    let entries: Vec<_> = entries.iter().cloned().map(entry).collect();
    let schedule = PriceTable::new(&entries).unwrap().schedule(VENDOR, "large");
    schedule
        .at(second * 1_000_000)
        .map(|held| held.price.standard.base.input / 1_000_000)
}

#[test]
fn a_token_of_a_prompt_is_charged_once_whatever_it_counts_as() {
    // Of 100 tokens, 40 are read from a cache and 20 written to one (BerriAI/litellm#9812, #11789).
    let table = PriceTable::new(&[entry(json!({
        "input": "3", "cachedInput": "0.30", "cacheWrite": "3.75", "output": "15"
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
    assert_eq!(ordinary(&schedule.at(0).unwrap().price, &tokens), 957_000);
}

#[test]
fn a_part_without_a_price_of_its_own_costs_what_its_total_does() {
    let table = PriceTable::new(&[entry(json!({}))]).unwrap();
    let schedule = table.schedule(VENDOR, "large");
    let expected = Rates {
        input: 1_000_000,
        cached_input: 1_000_000,
        cache_write: 1_000_000,
        // A cache write kept for an hour costs twice the input (Anthropic, "Pricing").
        cache_write_1h: 2_000_000,
        audio_input: 1_000_000,
        output: 2_000_000,
        audio_output: 2_000_000,
    };
    assert_eq!(schedule.at(0).unwrap().price.standard.base, expected);
}

#[test]
fn what_is_less_than_a_nanodollar_counts_as_one() {
    let rates = Rates {
        input: 1,
        ..Rates::default()
    };
    let cost = |prompt| {
        let tokens = Tokens {
            prompt,
            ..Tokens::default()
        };
        rates.cost(0, &tokens)
    };
    assert_eq!([0, 1, 1000, 1001].map(cost), [0, 1, 1, 2]);
}

#[test]
fn a_request_has_its_own_price_besides() {
    let table = PriceTable::new(&[entry(json!({"perRequest": "0.000000000001"}))]).unwrap();
    let schedule = table.schedule(VENDOR, "large");
    let price = &schedule.at(0).unwrap().price;
    assert_eq!(price.per_request, 1);
    assert_eq!(ordinary(price, &Tokens::default()), 1);
    assert_eq!(price.max_cost(MaxUsage::default()), Some(1));
}

#[test]
fn the_price_of_a_time_is_the_latest_that_holds_then() {
    let entries = [
        json!({"effectiveFrom": "1970-01-02", "input": "1"}),
        json!({"effectiveFrom": "1970-01-03", "input": "2"}),
    ];
    let at = |second| input_at(&entries, second);
    assert_eq!(
        [DAY - 1, DAY, 2 * DAY - 1, 2 * DAY, 1_000_000].map(at),
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
        json!({"model": "large", "provider": "vendor", "effectiveFrom": "1970-01-02"}),
    ]
    .into_iter()
    .enumerate()
    {
        let mut more = more;
        more["input"] = json!((number + 2).to_string());
        assert_eq!(input_at(&entries, DAY), Some(number as u64 + 1));
        entries.push(more);
    }
    assert_eq!(input_at(&entries, DAY), Some(7));
}

#[test]
fn a_price_of_the_future_does_not_hide_one_that_holds() {
    let entries = [
        json!({"model": "*", "input": "1"}),
        json!({"model": "large", "effectiveFrom": "1970-01-02", "input": "2"}),
    ];
    assert_eq!(input_at(&entries, DAY - 1), Some(1));
    assert_eq!(input_at(&entries, DAY), Some(2));
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
        PriceError::InvalidDecimal { field: "input", .. }
    ));
    assert!(matches!(
        refused(&[json!({"model": "a*b"})]),
        PriceError::InvalidPattern { .. }
    ));
    assert!(matches!(
        refused(&[json!({}), json!({"input": "5"})]),
        PriceError::Duplicate { .. }
    ));
    let level = |tokens: u64| json!({"promptTokens": tokens, "input": "1", "output": "1"});
    let nested = json!({"promptTokens": 5, "input": "1", "output": "1", "above": [level(9)]});
    for wrong in [
        json!({"above": [level(5), level(5)]}),
        json!({"above": [level(6), level(5)]}),
        json!({"above": [{"input": "1", "output": "1"}]}),
        json!({"above": [nested]}),
        json!({"tiers": {"priority": level(5)}}),
    ] {
        assert!(matches!(refused(&[wrong]), PriceError::InvalidAbove { .. }));
    }
}

#[test]
fn what_is_kept_for_an_hour_costs_twice_the_input_or_what_is_written_of_it() {
    // At input 1 and cacheWrite 1.25, 100,000 tokens cost $0.20, not $0.125 (Anthropic, "Pricing").
    let hour = Tokens {
        cache_write: 100_000,
        cache_write_1h: 100_000,
        ..prompt(100_000)
    };
    let price = priced(json!({"cacheWrite": "1.25"}));
    assert_eq!(ordinary(&price, &hour), 200_000_000);
    let half = Tokens {
        cache_write_1h: 50_000,
        ..hour
    };
    assert_eq!(ordinary(&price, &half), 162_500_000);
    let written = priced(json!({"cacheWrite": "1.25", "cacheWrite1h": "1.5"}));
    assert_eq!(ordinary(&written, &hour), 150_000_000);
    assert_eq!(ordinary(&priced(json!({"cacheWrite": "3"})), &hour), 300_000_000);
}

#[test]
fn all_of_a_long_prompt_and_its_answer_cost_what_long_prompts_do() {
    let price = priced(json!({"cachedInput": "0.1", "above": [
        {"promptTokens": 200_000, "input": "2", "cachedInput": "0.2", "output": "3"},
        {"promptTokens": 400_000, "input": "4", "output": "5"}]}));
    let cost = |tokens| {
        ordinary(
            &price,
            &Tokens {
                completion: 1,
                ..prompt(tokens)
            },
        )
    };
    assert_eq!(cost(200_000), 200_000_000 + 2000);
    assert_eq!(cost(200_001), 400_002_000 + 3000);
    assert_eq!(cost(400_001), 1_600_004_000 + 5000);
    let cached = |tokens| Tokens {
        cached: tokens,
        ..prompt(tokens)
    };
    assert_eq!(ordinary(&price, &cached(300_000)), 60_000_000);
    assert_eq!(
        ordinary(&price, &cached(400_001)),
        1_600_004_000,
        "it has no price of its own there"
    );
    let most = |prompt| {
        price.max_cost(MaxUsage {
            prompt,
            ..MaxUsage::default()
        })
    };
    assert_eq!(most(200_000), Some(200_000_000));
    assert_eq!(most(200_001), Some(400_002_000));
}

#[test]
fn a_call_of_a_hosted_tool_costs_what_its_kind_does_with_or_without_a_date() {
    let price =
        priced(json!({"tools": {"web_search": "0.01", "web_search_20260209": "0.02", "web_fetch": "0"}}));
    let cent = 10_000_000_000;
    for (kind, undated, each) in [
        ("web_search_20250305", "web_search", Some(cent)),
        ("web_search_20260209", "web_search", Some(2 * cent)),
        ("web_fetch", "web_fetch", Some(0)),
        ("code_execution_20250825", "code_execution", None),
    ] {
        assert_eq!(price.tool_price(kind, undated), each, "{kind}");
    }
    let tools = 3 * u128::from(cent);
    assert_eq!(
        price.cost(None, ServedTier::Unreported, &prompt(1000), tools),
        31_000_000,
        "a millidollar of tokens and three cents"
    );
    let most = MaxUsage {
        prompt: 1000,
        tools: u128::MAX,
        ..MaxUsage::default()
    };
    assert_eq!(price.max_cost(most), Some(MAX_COST));
    let wrong = PriceTable::new(&[entry(json!({"tools": {"web_search": "a cent"}}))]);
    assert!(matches!(
        wrong,
        Err(PriceError::InvalidDecimal { field: "tools", .. })
    ));
}

#[test]
fn a_tier_costs_what_it_was_asked_for_and_answered_with() {
    let price = priced(json!({"cacheWrite": "1.25", "tiers": {
        "priority": {"input": "2", "output": "4"},
        "flex": {"input": "0.5", "cacheWrite": "0.6", "output": "1"}}}));
    let cost = |asked, served| price.cost(asked, served, &prompt(1000), 0);
    let (priority, flex) = (Some("priority"), Some("flex"));
    assert_eq!(cost(None, ServedTier::Unreported), 1_000_000);
    assert_eq!(cost(priority, ServedTier::Other("priority")), 2_000_000);
    // A provider may serve a lower tier than requested (OpenAI, "Priority processing").
    assert_eq!(cost(priority, ServedTier::Standard), 1_000_000);
    assert_eq!(cost(priority, ServedTier::Unreported), 2_000_000);
    assert_eq!(cost(flex, ServedTier::Other("flex")), 500_000);
    assert_eq!(cost(flex, ServedTier::Unreported), 1_000_000);
    // A tier that was not requested makes nothing cheaper.
    assert_eq!(cost(None, ServedTier::Other("flex")), 1_000_000);
    assert_eq!(cost(None, ServedTier::Other("priority")), 2_000_000);
    assert_eq!(
        cost(None, ServedTier::Other("turbo")),
        2_000_000,
        "the dearest that is known"
    );
    let written = Tokens {
        cache_write: 1000,
        ..prompt(1000)
    };
    assert_eq!(
        price.cost(priority, ServedTier::Other("priority"), &written, 0),
        2_000_000
    );
    assert_eq!(price.cost(flex, ServedTier::Other("flex"), &written, 0), 600_000);
    let most = |tier| {
        price.max_cost(MaxUsage {
            prompt: 1000,
            tier,
            ..MaxUsage::default()
        })
    };
    assert_eq!(
        [None, priority, flex, Some("turbo")].map(most),
        [Some(1_250_000), Some(2_000_000), Some(1_250_000), None]
    );
    let plain = priced(json!({"tiers": {"priority": {"input": "2", "output": "4"}}}));
    assert_eq!(
        plain.cost(flex, ServedTier::Other("flex"), &prompt(1000), 0),
        1_000_000,
        "it is not dearer than none"
    );
    let of_flex = plain.max_cost(MaxUsage {
        tier: flex,
        ..MaxUsage::default()
    });
    assert_eq!(of_flex, Some(0));
}

#[test]
fn a_tier_without_prices_of_long_prompts_is_no_cheaper_there_than_the_standard_one() {
    let price = priced(json!({
        "above": [{"promptTokens": 1000, "input": "3", "output": "6"}],
        "tiers": {"priority": {"input": "2", "output": "4"}, "flex": {"input": "0.5", "output": "1",
            "above": [{"promptTokens": 1000, "input": "1.5", "output": "3"}]}}}));
    let cost = |tier, tokens| price.cost(Some(tier), ServedTier::Other(tier), &prompt(tokens), 0);
    assert_eq!(cost("priority", 1000), 2_000_000);
    assert_eq!(cost("priority", 2000), 6_000_000);
    assert_eq!((cost("flex", 1000), cost("flex", 2000)), (500_000, 3_000_000));
}

fn tokens() -> impl Strategy<Value = Tokens> {
    let one = || prop_oneof![0..50u64, 0..1u64 << 41, any::<u64>()];
    (one(), one(), one(), one(), (one(), one(), one())).prop_map(
        |(prompt, cached, cache_write, audio_prompt, (cache_write_1h, completion, audio_completion))| {
            Tokens {
                prompt,
                cached,
                cache_write,
                cache_write_1h,
                audio_prompt,
                completion,
                audio_completion,
            }
        },
    )
}

/// The cost of a request apart from its tokens, and its rates.
fn rates() -> impl Strategy<Value = (u64, Rates)> {
    let one = || prop_oneof![0..5u64, 0..=1_000_000_000_000u64];
    let of_prompt = (one(), one(), one(), one(), one());
    (of_prompt, (one(), one()), one()).prop_map(|(of_prompt, of_answer, per_request)| {
        let (input, cached_input, cache_write, cache_write_1h, audio_input) = of_prompt;
        let (output, audio_output) = of_answer;
        let rates = Rates {
            input,
            cached_input,
            cache_write,
            cache_write_1h,
            audio_input,
            output,
            audio_output,
        };
        (per_request, rates)
    })
}

/// Numbers of any length, as lists of decimal digits, lowest first: independent of the crate's arithmetic.
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

    /// Divides by 1000 and rounds up.
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
    fn a_cost_is_the_exact_sum_rounded_up_once(tokens in tokens(), (per_request, rates) in rates()) {
        let mut left = tokens.prompt;
        let mut parts = Vec::new();
        let longer = tokens.cache_write_1h.min(tokens.cache_write);
        for (part, each) in [
            (tokens.cached, rates.cached_input),
            (longer, rates.cache_write_1h),
            (tokens.cache_write - longer, rates.cache_write),
            (tokens.audio_prompt, rates.audio_input),
            (u64::MAX, rates.input),
        ] {
            let taken = part.min(left);
            left -= taken;
            parts.push((taken, each));
        }
        let audio = tokens.audio_completion.min(tokens.completion);
        parts.extend([(audio, rates.audio_output), (tokens.completion - audio, rates.output)]);
        let sum = parts.iter().fold(digits::of(per_request), |sum, (tokens, each)| {
            digits::add(&sum, &digits::times(&digits::of(*tokens), &digits::of(*each)))
        });
        let exact = digits::thousandth(&sum);
        let expected = exact.parse::<u64>().unwrap_or(u64::MAX).min(MAX_COST);
        prop_assert_eq!(rates.cost(u128::from(per_request), &tokens), expected);
    }

    #[test]
    fn no_exchange_costs_more_than_was_set_aside_for_its_tokens(
        tokens in tokens(), bands in prop::collection::vec(rates(), 4), limit in 0..1u64 << 41, more in (0..9u64, 0..9u64),
        asked in 0..3usize, served in 0..4usize, is_kept_longer in any::<bool>(),
    ) {
        let bands: Vec<_> = bands.into_iter().map(|(_, rates)| rates).collect();
        let of = |base, long| Bands { base: bands[base], above: vec![(limit, bands[long])] };
        let price = Price { standard: of(0, 1), tiers: vec![("priority".into(), of(2, 3))], ..Price::default() };
        // A tier without a price is refused, so the test requests none.
        let tier = [None, None, Some("priority")][asked];
        let most = price.max_cost(MaxUsage {
            prompt: tokens.prompt.saturating_add(more.0),
            completion: tokens.completion.saturating_add(more.1),
            tier,
            has_extended_cache: is_kept_longer,
            tools: u128::from(more.0),
        });
        let tokens = Tokens { cache_write_1h: if is_kept_longer { tokens.cache_write_1h } else { 0 }, ..tokens };
        // No provider serves a more expensive tier than requested.
        let served = match (tier, served) {
            (_, 0) => ServedTier::Unreported,
            (Some(tier), 1) => ServedTier::Other(tier),
            _ => ServedTier::Standard,
        };
        prop_assert!(price.cost(tier, served, &tokens, u128::from(more.0)) <= most.unwrap());
    }
}
