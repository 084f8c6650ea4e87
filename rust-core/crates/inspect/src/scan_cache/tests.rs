#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;

use proofgate_policy::{Engine, Match, PolicyConfig};
use proptest::prelude::*;

use super::table::{BASE_BYTES, ENTRY_BYTES};
use super::{RunKey, ScanCache};

const TENANTS: [&str; 4] = ["small", "large", "third", "last"];

/// Few homes, so that keys collide.
fn key(tenant: usize, number: u16) -> RunKey {
    let mut key = RunKey::default();
    key.text[0] = (number % 7) as u8;
    key.conditions[13] = tenant as u8;
    key.conditions[14..].copy_from_slice(&number.to_le_bytes());
    key
}

/// Returns the memory for this many entries.
fn room_for(entries: usize) -> usize {
    (BASE_BYTES + entries * ENTRY_BYTES).div_ceil(3) * 4
}

fn some_match(start: usize) -> Match {
    let rule = serde_json::json!({"rules": [{"id": "r", "regex": "r", "action": "Flag", "reason": "r"}]});
    let config: PolicyConfig = serde_json::from_value(rule).unwrap();
    let rule = Engine::compile(&config).unwrap().index_of("r").unwrap();
    Match {
        rule,
        start,
        end: start + 1,
    }
}

/// Returns the numbers that are cached for a tenant.
fn known_of(known: &ScanCache, tenant: usize, numbers: std::ops::Range<u16>) -> Vec<u16> {
    numbers
        .filter(|number| known.find(&key(tenant, *number)).is_some())
        .collect()
}

fn units(count: usize) -> usize {
    match count {
        0 => 0,
        count => (count * size_of::<Match>() + 16).div_ceil(64),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn of_one_tenant_it_knows_the_newest_runs_and_no_others(
        entries in 0_usize..40,
        kept in prop::collection::vec((0_u16..64, 0_usize..4), 0..100),
    ) {
        let found = some_match(3);
        let most = room_for(entries);
        let most_units = most / 4 / 68;
        let mut known = ScanCache::new(most);
        // The expected behaviour, without an index.
        let mut model: VecDeque<(u16, usize)> = VecDeque::new();
        for (number, count) in kept {
            known.insert(key(0, number), "small", &vec![found; count]);
            let is_new = model.iter().all(|(other, _)| *other != number);
            if is_new && entries > 0 && units(count) <= most_units {
                let sum = |model: &VecDeque<(u16, usize)>| model.iter().map(|(_, count)| units(*count)).sum::<usize>();
                while model.len() == entries || sum(&model) + units(count) > most_units {
                    model.pop_front();
                }
                model.push_back((number, count));
            }
            for number in 0..64 {
                let expected = model.iter().find(|(other, _)| *other == number).map(|(_, count)| *count);
                prop_assert_eq!(known.find(&key(0, number)).map(<[Match]>::len), expected);
            }
            prop_assert!(known.memory_bytes() <= most, "{} of {}", known.memory_bytes(), most);
        }
    }

    /// A tenant loses its oldest runs first, and only if none holds more entries or matches than it does.
    #[test]
    fn only_a_tenant_that_holds_the_most_forgets(
        // Each tenant has a share of its own.
        entries in 64_usize..100,
        kept in prop::collection::vec((0_usize..4, 0_usize..6), 0..400),
    ) {
        let found = some_match(3);
        let most = room_for(entries);
        let mut known = ScanCache::new(most);
        // The runs of each tenant, the oldest first, with the number of their matches.
        let mut model: [VecDeque<(u16, usize)>; 4] = Default::default();
        let mut evictions = 0;
        for (number, (tenant, count)) in (0_u16..).zip(kept) {
            known.insert(key(tenant, number), TENANTS[tenant], &vec![found; count]);
            let held = |model: &[VecDeque<(u16, usize)>; 4]| {
                model.each_ref().map(|runs| (runs.len(), runs.iter().map(|(_, count)| units(*count)).sum::<usize>()))
            };
            let before = held(&model);
            for (other, runs) in model.iter_mut().enumerate() {
                while let Some((oldest, _)) = runs.front()
                    && known.find(&key(other, *oldest)).is_none()
                {
                    runs.pop_front();
                    evictions += 1;
                }
                for (number, _) in runs {
                    prop_assert!(known.find(&key(other, *number)).is_some());
                }
            }
            let left = held(&model);
            let most_runs = left.iter().map(|left| left.0).max();
            let most_units = left.iter().map(|left| left.1).max();
            for (other, (before, left)) in before.into_iter().zip(left).enumerate() {
                // The new run counts as already stored.
                let new = if other == tenant { (1, units(count)) } else { (0, 0) };
                let is_largest = Some(before.0 + new.0) >= most_runs || Some(before.1 + new.1) >= most_units;
                prop_assert!(before == left || is_largest, "{before:?} {left:?}");
            }
            if known.find(&key(tenant, number)).is_some() {
                model[tenant].push_back((number, count));
            }
            prop_assert!(known.memory_bytes() <= most, "{} of {}", known.memory_bytes(), most);
        }
        prop_assert_eq!(known.counts.evictions, evictions);
    }
}

#[test]
fn a_tenant_that_floods_takes_nothing_from_one_that_holds_less() {
    let mut known = ScanCache::new(room_for(100));
    let found = [some_match(1)];
    for number in 0..40 {
        let found = if number % 4 == 0 { &found[..] } else { &[] };
        known.insert(key(0, number), TENANTS[0], found);
    }
    for number in 0..5000 {
        // Also not by the matches of its runs.
        let found = vec![some_match(1); usize::from(number % 64)];
        known.insert(key(1, number), TENANTS[1], &found);
    }
    assert_eq!(known_of(&known, 0, 0..40).len(), 40);
    let of_flood = known_of(&known, 1, 0..5000);
    let newest: Vec<u16> = (5000 - of_flood.len() as u16..5000).collect();
    assert_eq!(of_flood, newest);
    // Inserting in turn gives them equal shares.
    for number in 0..5000 {
        for (tenant, name) in TENANTS.iter().enumerate() {
            known.insert(key(tenant, 5000 + number), name, &[]);
        }
    }
    let shares = [0, 1, 2, 3].map(|tenant| known_of(&known, tenant, 0..10_000).len());
    assert_eq!(shares, [25; 4]);
    assert!(known.memory_bytes() <= known.max_memory_bytes());
}

#[test]
fn a_tenant_that_is_alone_has_all_the_room_until_another_one_comes() {
    let mut known = ScanCache::new(room_for(75));
    for number in 0..256 {
        known.insert(key(1, number), TENANTS[1], &[]);
        assert!(known.find(&key(1, number)).is_some());
    }
    assert_eq!(known_of(&known, 1, 0..256), (181..256).collect::<Vec<_>>());
    assert_eq!(known.take_counts().evictions, 256 - 75);
    for number in 0..10 {
        known.insert(key(0, number), TENANTS[0], &[]);
    }
    assert_eq!(known_of(&known, 0, 0..10).len(), 10);
    assert_eq!(known_of(&known, 1, 0..256), (191..256).collect::<Vec<_>>());
    assert_eq!(known.counts.evictions, 10);
    known.reset(room_for(75));
    assert_eq!((known.find(&key(1, 255)), known.memory_bytes()), (None, 0));
}

#[test]
fn more_tenants_than_have_a_share_have_one_together() {
    let mut known = ScanCache::new(room_for(64));
    for number in 0..640 {
        let tenant = format!("tenant {}", number % 32);
        known.insert(key(usize::from(number % 32), number), &tenant, &[]);
        assert!(known.find(&key(usize::from(number % 32), number)).is_some());
        assert!(known.memory_bytes() <= known.max_memory_bytes());
    }
    let all = (0..32).map(|tenant| known_of(&known, tenant, 0..640).len());
    assert_eq!(all.sum::<usize>(), 64);
}
