//! Addresses of requests whose key is refused. They are logged in one line per second, so that a
//! flood costs no more than this line.

use std::collections::HashMap;

use proofgate_base::routing::ClientNetwork;
use proofgate_ledger::pluralize;

/// Maximum number of addresses in a line. The other addresses are counted.
const MAX_LISTED_ADDRESSES: usize = 8;

/// The requests of the current second whose key was refused.
#[derive(Default)]
pub(super) struct RefusedKeys {
    by_sender: HashMap<ClientNetwork, u64>,
    other_senders: u64,
}

impl RefusedKeys {
    pub(super) fn add(&mut self, sender: ClientNetwork) {
        let is_known = self.by_sender.contains_key(&sender);
        match is_known || self.by_sender.len() < MAX_LISTED_ADDRESSES {
            true => *self.by_sender.entry(sender).or_default() += 1,
            false => self.other_senders += 1,
        }
    }

    /// Returns the log line about the refused requests and clears them; `None` if there were none.
    pub(super) fn take_line(&mut self) -> Option<String> {
        if self.by_sender.is_empty() {
            return None;
        }
        let others = std::mem::take(&mut self.other_senders);
        let all = self.by_sender.values().sum::<u64>() + others;
        let mut senders: Vec<_> = self.by_sender.drain().collect();
        senders.sort_by_key(|(sender, count)| (u64::MAX - count, sender.to_string()));
        let mut named: Vec<_> = senders
            .iter()
            .map(|(sender, count)| format!("{sender} ({count})"))
            .collect();
        if others > 0 {
            named.push(format!("other addresses ({others})"));
        }
        Some(format!(
            "refused the keys of {} (401) from {}",
            pluralize(all, "request"),
            named.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn sender(number: u32) -> ClientNetwork {
        IpAddr::V4(Ipv4Addr::from_bits(number)).into()
    }

    #[test]
    fn a_line_names_addresses_with_their_counts_and_is_told_once() {
        let mut refused = RefusedKeys::default();
        for number in [7, 9, 9] {
            refused.add(sender(number));
        }
        let line = refused.take_line();
        assert_eq!(
            line.as_deref(),
            Some("refused the keys of 3 requests (401) from 0.0.0.9 (2), 0.0.0.7 (1)")
        );
        assert_eq!(refused.take_line(), None);
    }

    #[test]
    fn a_line_about_one_request_has_the_singular() {
        let mut refused = RefusedKeys::default();
        refused.add(sender(7));
        let line = refused.take_line();
        assert_eq!(
            line.as_deref(),
            Some("refused the keys of 1 request (401) from 0.0.0.7 (1)")
        );
    }

    #[test]
    fn however_many_addresses_there_are_a_line_names_a_few_and_counts_the_others() {
        let mut refused = RefusedKeys::default();
        for number in 0..100_000 {
            refused.add(sender(number));
        }
        assert_eq!(refused.by_sender.len(), MAX_LISTED_ADDRESSES);
        let line = refused.take_line().unwrap_or_default();
        assert!(line.ends_with("other addresses (99992)"), "{line}");
        assert!(line.len() < 300);
    }
}
