//! What each minute of a day holds, so that a question passes over the minutes that have nothing for it.

use crate::batch::Day;
use std::collections::{BTreeMap, BTreeSet};

const MINUTE: i64 = 60_000_000;

/// A column of an exchange whose values are known by minute. An index has the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Held {
    /// The id of the API key, a text.
    Key = 0,
    /// The model that was asked for, a text.
    Model = 1,
    /// The providers that it was sent to, a list.
    Providers = 2,
    /// How it ended, a text.
    Outcome = 3,
    /// The rules that matched, a list.
    Rules = 4,
}

/// What the minutes of a day hold, each numbered from 1970-01-01 (UTC).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Minutes {
    /// A column, the number of a text or list of the day, and a minute with an exchange that has it there.
    pub held: BTreeSet<(Held, u32, i64)>,
    /// The most that an exchange of a minute cost, in nanodollars, where a cost is known.
    pub costs: BTreeMap<i64, i64>,
}

impl Day {
    /// What its minutes hold.
    #[must_use]
    pub fn minutes(&self) -> Minutes {
        let mut minutes = Minutes::default();
        for exchange in &self.exchanges {
            let minute = exchange.ts.div_euclid(MINUTE);
            let end = exchange.end.as_ref();
            let columns = [
                (Held::Key, exchange.key),
                (Held::Model, exchange.model),
                (Held::Providers, exchange.providers),
                (Held::Outcome, end.map(|end| end.outcome)),
                (Held::Rules, exchange.rules),
            ];
            let held = columns
                .into_iter()
                .filter_map(|(held, number)| Some((held, number?)));
            minutes
                .held
                .extend(held.map(|(held, number)| (held, number, minute)));
            if let Some(cost) = end.and_then(|end| end.cost) {
                let most = minutes.costs.entry(minute).or_insert(cost);
                *most = cost.max(*most);
            }
        }
        minutes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{End, Exchange, RequestId, Verdict};
    use proptest::prelude::*;

    fn exchange(ts: i64, model: Option<u32>, outcome: Option<u32>, cost: Option<i64>) -> Exchange {
        let end = outcome.map(|outcome| End {
            seq: 1,
            status: None,
            outcome,
            prompt_tokens: None,
            completion_tokens: None,
            cost,
            bytes: None,
            duration: None,
        });
        Exchange {
            ts,
            seq: 0,
            id: RequestId::Other(String::new()),
            tenant: None,
            tenant_seq: None,
            key: model,
            model,
            providers: model,
            endpoint: None,
            verdict: Verdict::Allowed,
            rules: outcome,
            bytes: 0,
            attempts: Vec::new(),
            end,
        }
    }

    proptest! {
        #[test]
        fn a_minute_holds_what_its_exchanges_have_and_nothing_else(
            rows in prop::collection::vec(
                (-200_000_000_i64..200_000_000, prop::option::of(0_u32..4), prop::option::of(0_u32..4),
                    prop::option::of(0_i64..100)),
                0..40,
            ),
        ) {
            let mut day = Day::default();
            day.exchanges
                .extend(rows.iter().map(|(ts, model, outcome, cost)| exchange(*ts, *model, *outcome, *cost)));
            let minutes = day.minutes();
            for (held, number, minute) in &minutes.held {
                let has = |row: &&(i64, Option<u32>, Option<u32>, Option<i64>)| {
                    let column = match held {
                        Held::Key | Held::Model | Held::Providers => row.1,
                        Held::Outcome | Held::Rules => row.2,
                    };
                    row.0.div_euclid(MINUTE) == *minute && column == Some(*number)
                };
                prop_assert!(rows.iter().any(|row| has(&row)));
            }
            for (ts, model, outcome, cost) in &rows {
                let minute = ts.div_euclid(MINUTE);
                for held in [Held::Key, Held::Model, Held::Providers] {
                    prop_assert!(model.is_none_or(|number| minutes.held.contains(&(held, number, minute))));
                }
                for held in [Held::Outcome, Held::Rules] {
                    prop_assert!(outcome.is_none_or(|number| minutes.held.contains(&(held, number, minute))));
                }
                let known = outcome.and(*cost);
                prop_assert!(known.is_none_or(|cost| minutes.costs[&minute] >= cost));
            }
            for (minute, most) in &minutes.costs {
                let costs = rows.iter().filter(|row| row.0.div_euclid(MINUTE) == *minute);
                prop_assert_eq!(costs.filter_map(|row| row.2.and(row.3)).max(), Some(*most));
            }
        }
    }
}
