//! The values in each minute of a day, and in each hour of a tenant, so that a query can skip times
//! without a match.

use crate::batch::Day;
use std::collections::{BTreeMap, BTreeSet};

const MINUTE_MICROS: i64 = 60_000_000;
const HOUR_MICROS: i64 = 60 * MINUTE_MICROS;

/// A column of an exchange whose values are indexed by minute and, except for the key's id, by a tenant's hour. An index
/// stores the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum IndexedColumn {
    /// The id of the API key, a text.
    Key = 0,
    /// The requested model, a text.
    Model = 1,
    /// The providers that it was sent to, a list.
    Providers = 2,
    /// Its outcome, a text.
    Outcome = 3,
    /// The rules that matched, a list.
    Rules = 4,
    /// The name of the API key in the configuration, a text.
    KeyName = 5,
}

/// The values in the minutes of a day and in its tenants' hours, both numbered from 1970-01-01 (UTC).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MinuteIndex {
    /// Entries of a column, the number of a text or list of the day, and a minute with an exchange that has this value.
    pub values: BTreeSet<(IndexedColumn, u32, i64)>,
    /// The highest cost of an exchange in a minute, in nanodollars, if any cost is known.
    pub max_costs: BTreeMap<i64, i64>,
    /// Like `values`, for the number of a tenant and an hour. Keys are omitted, because a key
    /// belongs to one tenant.
    pub tenant_values: BTreeSet<(u32, IndexedColumn, u32, i64)>,
    /// Like `max_costs`, for a tenant and an hour.
    pub tenant_max_costs: BTreeMap<(u32, i64), i64>,
}

impl Day {
    /// Returns the values in its minutes and in its tenants' hours.
    #[must_use]
    pub fn minute_index(&self) -> MinuteIndex {
        let mut minutes = MinuteIndex::default();
        for exchange in &self.exchanges {
            let minute = exchange.ts.div_euclid(MINUTE_MICROS);
            let end = exchange.end.as_ref();
            let columns = [
                (IndexedColumn::Key, exchange.key),
                (IndexedColumn::Model, exchange.model),
                (IndexedColumn::Providers, exchange.providers),
                (IndexedColumn::Outcome, end.map(|end| end.outcome)),
                (IndexedColumn::Rules, exchange.rules),
                (IndexedColumn::KeyName, exchange.key_name),
            ];
            let hour = exchange.ts.div_euclid(HOUR_MICROS);
            let held = columns
                .into_iter()
                .filter_map(|(held, number)| Some((held, number?)));
            for (held, number) in held {
                minutes.values.insert((held, number, minute));
                if let (Some(tenant), true) = (exchange.tenant, held != IndexedColumn::Key) {
                    minutes.tenant_values.insert((tenant, held, number, hour));
                }
            }
            if let Some(cost) = end.and_then(|end| end.cost) {
                let most = minutes.max_costs.entry(minute).or_insert(cost);
                *most = cost.max(*most);
                if let Some(tenant) = exchange.tenant {
                    let most = minutes.tenant_max_costs.entry((tenant, hour)).or_insert(cost);
                    *most = cost.max(*most);
                }
            }
        }
        minutes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{AttributionRow, Exchange, ExchangeEnd, RequestId, Verdict};
    use proptest::prelude::*;

    type Row = (i64, Option<u32>, Option<u32>, Option<i64>, Option<u32>);

    fn exchange((ts, model, outcome, cost, tenant): Row) -> Exchange {
        let end = outcome.map(|outcome| ExchangeEnd {
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
            tenant,
            tenant_seq: None,
            key: model,
            model,
            providers: model,
            endpoint: None,
            verdict: Verdict::Allowed,
            rules: outcome,
            bytes: 0,
            attribution: AttributionRow::default(),
            client_address: None,
            key_name: outcome,
            attempts: Vec::new(),
            end,
        }
    }

    proptest! {
        #[test]
        fn minutes_and_tenants_hours_hold_what_their_exchanges_have_and_nothing_else(
            rows in prop::collection::vec(
                (-9_000_000_000_i64..9_000_000_000, prop::option::of(0_u32..4), prop::option::of(0_u32..4),
                    prop::option::of(0_i64..100), prop::option::of(0_u32..3)),
                0..40,
            ),
        ) {
            let mut day = Day::default();
            day.exchanges.extend(rows.iter().copied().map(exchange));
            let minutes = day.minute_index();
            let column = |held: IndexedColumn, row: &Row| match held {
                IndexedColumn::Key | IndexedColumn::Model | IndexedColumn::Providers => row.1,
                IndexedColumn::Outcome | IndexedColumn::Rules | IndexedColumn::KeyName => row.2,
            };
            for (held, number, minute) in &minutes.values {
                let has = |row: &Row| row.0.div_euclid(MINUTE_MICROS) == *minute && column(*held, row) == Some(*number);
                prop_assert!(rows.iter().any(has));
            }
            for (tenant, held, number, hour) in &minutes.tenant_values {
                prop_assert!(*held != IndexedColumn::Key);
                let has = |row: &Row| {
                    let at = (row.4, row.0.div_euclid(HOUR_MICROS));
                    at == (Some(*tenant), *hour) && column(*held, row) == Some(*number)
                };
                prop_assert!(rows.iter().any(has));
            }
            for row in &rows {
                let (ts, _, outcome, cost, tenant) = *row;
                let (minute, hour) = (ts.div_euclid(MINUTE_MICROS), ts.div_euclid(HOUR_MICROS));
                for held in [IndexedColumn::Key, IndexedColumn::Model, IndexedColumn::Providers, IndexedColumn::Outcome, IndexedColumn::Rules, IndexedColumn::KeyName] {
                    let Some(number) = column(held, row) else { continue };
                    prop_assert!(minutes.values.contains(&(held, number, minute)));
                    if let (Some(tenant), true) = (tenant, held != IndexedColumn::Key) {
                        prop_assert!(minutes.tenant_values.contains(&(tenant, held, number, hour)));
                    }
                }
                if let Some(cost) = outcome.and(cost) {
                    prop_assert!(minutes.max_costs[&minute] >= cost);
                    prop_assert!(tenant.is_none_or(|tenant| minutes.tenant_max_costs[&(tenant, hour)] >= cost));
                }
            }
            for (minute, most) in &minutes.max_costs {
                let costs = rows.iter().filter(|row| row.0.div_euclid(MINUTE_MICROS) == *minute);
                prop_assert_eq!(costs.filter_map(|row| row.2.and(row.3)).max(), Some(*most));
            }
            for ((tenant, hour), most) in &minutes.tenant_max_costs {
                let costs = rows.iter().filter(|row| (row.4, row.0.div_euclid(HOUR_MICROS)) == (Some(*tenant), *hour));
                prop_assert_eq!(costs.filter_map(|row| row.2.and(row.3)).max(), Some(*most));
            }
        }
    }
}
