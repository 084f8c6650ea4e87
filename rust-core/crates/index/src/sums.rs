//! Sums over the exchanges of a day, by tenant, model and time, so that a query over a month does not add up every
//! exchange.

use crate::batch::Day;
use crate::exchange::{Exchange, Verdict};
use std::collections::BTreeMap;

/// The time span of one sum, in microseconds.
const SPAN_MICROS: i64 = 5 * 60_000_000;

/// Sums over exchanges.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ExchangeSums {
    /// Number of exchanges.
    pub exchanges: i64,
    /// Number of refused ones.
    pub refused: i64,
    /// Number of those whose answer was denied.
    pub blocked: i64,
    /// Number of those without an end.
    pub open: i64,
    /// Prompt tokens. A float, because providers can report any number and an integer sum could
    /// overflow.
    pub prompt_tokens: f64,
    /// Completion tokens.
    pub completion_tokens: f64,
    /// Cost in nanodollars.
    pub cost: f64,
    /// Number of those that were admitted and ended without a known cost.
    pub unpriced: i64,
    /// Time of the newest admitted one, in unix microseconds; `None` when none was admitted.
    pub newest: Option<i64>,
}

impl ExchangeSums {
    fn add(&mut self, exchange: &Exchange) {
        let refused = exchange.verdict == Verdict::Refused;
        self.exchanges += 1;
        self.refused += i64::from(refused);
        self.blocked += i64::from(exchange.verdict == Verdict::Blocked);
        if !refused {
            self.newest = self.newest.max(Some(exchange.ts));
        }
        let Some(end) = &exchange.end else {
            self.open += 1;
            return;
        };
        let figure = |told: Option<i64>| told.unwrap_or(0) as f64;
        self.prompt_tokens += figure(end.prompt_tokens);
        self.completion_tokens += figure(end.completion_tokens);
        self.cost += figure(end.cost);
        self.unpriced += i64::from(!refused && end.cost.is_none());
    }
}

/// Number of a five-minute span, counted from 1970-01-01 (UTC), and the numbers of a tenant and a model.
pub type SumsKey = (i64, Option<u32>, Option<u32>);

impl Day {
    /// Returns the sums over its exchanges.
    #[must_use]
    pub fn sums(&self) -> BTreeMap<SumsKey, ExchangeSums> {
        let mut sums: BTreeMap<SumsKey, ExchangeSums> = BTreeMap::new();
        for exchange in &self.exchanges {
            let key = (
                exchange.ts.div_euclid(SPAN_MICROS),
                exchange.tenant,
                exchange.model,
            );
            sums.entry(key).or_default().add(exchange);
        }
        sums
    }

    /// Returns the first and the last request number of each tenant among its exchanges.
    #[must_use]
    pub fn request_number_ranges(&self) -> BTreeMap<u32, (i64, i64)> {
        let mut numbered = BTreeMap::new();
        for exchange in &self.exchanges {
            let (Some(tenant), Some(number)) = (exchange.tenant, exchange.tenant_seq) else {
                continue;
            };
            let (first, last) = numbered.entry(tenant).or_insert((number, number));
            *first = number.min(*first);
            *last = number.max(*last);
        }
        numbered
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{AttributionRow, ExchangeEnd, RequestId};
    use proptest::prelude::*;

    type Row = (
        i64,
        Option<u32>,
        Option<u32>,
        u8,
        Option<(Option<i64>, Option<i64>)>,
    );

    fn exchange((number, row): (usize, Row)) -> Exchange {
        let (ts, tenant, model, verdict, end) = row;
        let verdict = [Verdict::Allowed, Verdict::Blocked, Verdict::Refused][usize::from(verdict)];
        let end = end.map(|(tokens, cost)| ExchangeEnd {
            seq: 1,
            status: None,
            outcome: 0,
            prompt_tokens: tokens,
            completion_tokens: tokens.map(|tokens| tokens / 2),
            cost,
            bytes: None,
            duration: None,
        });
        Exchange {
            ts,
            seq: 0,
            id: RequestId::Other(String::new()),
            tenant,
            tenant_seq: (verdict != Verdict::Refused).then_some(number as i64),
            key: None,
            model,
            providers: None,
            endpoint: None,
            verdict,
            rules: None,
            bytes: 0,
            attribution: AttributionRow::default(),
            client_address: None,
            key_name: None,
            attempts: Vec::new(),
            end,
        }
    }

    proptest! {
        #[test]
        fn sums_are_those_of_the_exchanges_by_tenant_model_and_time(
            rows in prop::collection::vec(
                (0_i64..2_000_000_000, prop::option::of(0_u32..3), prop::option::of(0_u32..3), 0_u8..3,
                    prop::option::of((prop::option::of(0_i64..1000), prop::option::of(0_i64..1000)))),
                0..60,
            ),
        ) {
            let mut day = Day::default();
            day.exchanges.extend(rows.iter().copied().enumerate().map(exchange));
            let sums = day.sums();
            prop_assert_eq!(sums.values().map(|sums| sums.exchanges).sum::<i64>(), rows.len() as i64);
            for ((at, tenant, model), sums) in &sums {
                let of = || day.exchanges.iter().filter(|exchange| {
                    (exchange.ts / SPAN_MICROS, exchange.tenant, exchange.model) == (*at, *tenant, *model)
                });
                let ends = || of().filter_map(|exchange| exchange.end.as_ref());
                let count = |verdict| of().filter(|exchange| exchange.verdict == verdict).count() as i64;
                let admitted = || of().filter(|exchange| exchange.tenant_seq.is_some());
                prop_assert_eq!(sums.exchanges, of().count() as i64);
                prop_assert_eq!(sums.refused, count(Verdict::Refused));
                prop_assert_eq!(sums.blocked, count(Verdict::Blocked));
                prop_assert_eq!(sums.open, of().filter(|exchange| exchange.end.is_none()).count() as i64);
                prop_assert_eq!(sums.prompt_tokens, ends().filter_map(|end| end.prompt_tokens).sum::<i64>() as f64);
                prop_assert_eq!(sums.cost, ends().filter_map(|end| end.cost).sum::<i64>() as f64);
                let unpriced = |exchange: &&Exchange| exchange.end.as_ref().is_some_and(|end| end.cost.is_none());
                prop_assert_eq!(sums.unpriced, admitted().filter(unpriced).count() as i64);
                prop_assert_eq!(sums.newest, admitted().map(|exchange| exchange.ts).max());
            }
            for (tenant, (first, last)) in day.request_number_ranges() {
                let of = || day.exchanges.iter().filter(|exchange| exchange.tenant == Some(tenant));
                let numbers = || of().filter_map(|exchange| exchange.tenant_seq);
                prop_assert_eq!((Some(first), Some(last)), (numbers().min(), numbers().max()));
            }
        }
    }

    #[test]
    fn tokens_that_no_whole_number_holds_are_added_all_the_same() {
        let most = Some((Some(i64::MAX), Some(i64::MAX)));
        let mut day = Day::default();
        let rows = [(0, None, None, 0, most); 3];
        day.exchanges.extend(rows.into_iter().enumerate().map(exchange));
        let sums = day.sums()[&(0, None, None)];
        assert!(sums.prompt_tokens > 2.7e19 && sums.cost > 2.7e19, "{sums:?}");
    }
}
