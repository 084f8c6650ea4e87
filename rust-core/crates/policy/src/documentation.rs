//! Values that are nobody's: what standards and payment providers reserve for documentation and tests, and what programs
//! write where a person's address would stand.

use crate::allow::{Address, all_addresses, is_within};

/// Domains and top-level domains that nobody has (RFC 2606, 2 and 3; RFC 6761).
const DOMAINS: [&str; 7] = [
    "example.com",
    "example.net",
    "example.org",
    "example",
    "test",
    "invalid",
    "localhost",
];

/// What stands before the `@` in remotes of version control and in senders that nobody reads.
const MAILBOXES: [&str; 12] = [
    "git",
    "hg",
    "svn",
    "oauth2",
    "x-access-token",
    "x-token-auth",
    "gitlab-ci-token",
    "noreply",
    "no-reply",
    "donotreply",
    "do-not-reply",
    "mailer-daemon",
];

/// The first three numbers of IPv4 addresses for documentation (RFC 5737, 3).
const NETWORKS: [&str; 3] = ["192.0.2", "198.51.100", "203.0.113"];

/// How IPv6 addresses for documentation begin (RFC 3849, 2; RFC 9637, 3).
const PREFIXES: [&str; 3] = ["2001:db8:", "2001:0db8:", "3fff:"];

/// Card numbers that payment providers publish for tests (Stripe, "Test cards"; Adyen, "Test card numbers"; PayPal, "Card
/// testing"; Braintree, "Testing").
const CARDS: [&str; 34] = [
    "30569309025904",
    "36006666333344",
    "36227206271667",
    "36259600000004",
    "38520000023237",
    "341111111111111",
    "343434343434343",
    "370000000000002",
    "371449635398431",
    "378282246310005",
    "378734493671000",
    "2222400010000008",
    "2222405343248877",
    "2223003122003222",
    "2223000048400011",
    "3530111333300000",
    "3566002020360505",
    "4000000000000002",
    "4000056655665556",
    "4005519200000004",
    "4009348888881881",
    "4012888888881881",
    "4111111111111111",
    "4222222222222",
    "4242424242424242",
    "4500600000000061",
    "5105105105105100",
    "5200828282828210",
    "5431111111111111",
    "5555555555554444",
    "6011000990139424",
    "6011000400000000",
    "6011111111111117",
    "6200000000000005",
];

/// Whether what a rule matched, in lower case, is nobody's: all of its mail addresses and URLs are, or it is such an address
/// of a machine, or such a card number.
pub(crate) fn is_documentation(matched: &str) -> bool {
    all_addresses(matched, is_nobodys) || is_network(matched) || is_card(matched)
}

fn is_nobodys(address: &Address<'_>) -> bool {
    DOMAINS.iter().any(|domain| is_within(address.host, domain))
        || MAILBOXES.contains(&address.local)
        || address.host.split('.').any(|label| label == "noreply")
}

fn is_network(matched: &str) -> bool {
    let is_v4 = |network: &str| {
        let last = matched
            .strip_prefix(network)
            .and_then(|rest| rest.strip_prefix('.'));
        last.is_some_and(|last| last.parse::<u8>().is_ok())
    };
    NETWORKS.iter().any(|network| is_v4(network)) || PREFIXES.iter().any(|begin| matched.starts_with(begin))
}

fn is_card(matched: &str) -> bool {
    let is_of_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'-');
    if !matched.bytes().all(is_of_number) {
        return false;
    }
    let digits = || matched.bytes().filter(u8::is_ascii_digit);
    CARDS.iter().any(|card| digits().eq(card.bytes()))
}

#[cfg(test)]
mod tests {
    use super::{CARDS, is_documentation};
    use crate::checks::named;

    #[test]
    fn what_is_reserved_for_documentation_is_nobodys() {
        for text in [
            "user@example.com",
            "a.b@mail.example.org",
            "anna@acme.example",
            "root@build.test",
            "git@github.com",
            "noreply@anthropic.com",
            "12+ann@users.noreply.github.com",
            "192.0.2.17",
            "203.0.113.255",
            "2001:db8::17",
            "4242 4242 4242 4242",
            "3782-822463-10005",
        ] {
            assert!(is_documentation(text), "{text}");
        }
    }

    #[test]
    fn what_somebody_can_have_is_not() {
        for text in [
            "ann@acme.com",
            "ann@notexample.com",
            "ann@example.com.evil.net",
            "user@example.com, ann@acme.com",
            "192.0.3.17",
            "192.0.2.256",
            "10.192.0.2",
            "2001:db9::1",
            "4539578763621486",
            "born 192.0.2.1",
            "",
        ] {
            assert!(!is_documentation(text), "{text}");
        }
    }

    #[test]
    fn every_card_number_is_one() {
        let luhn = named("luhn").unwrap();
        for card in CARDS {
            assert!(luhn(card.as_bytes()), "{card}");
        }
    }
}
