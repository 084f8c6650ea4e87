//! Values that belong to no real person or system: values that standards, payment providers and
//! vendors reserve or publish for documentation and tests, and values that programs write instead
//! of a person's address.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::addresses::{Address, all_addresses, is_domain_or_subdomain};

/// Second-level domains below which a country's `example` is registered, as in `example.co.uk`.
const SECOND_LEVELS: [&str; 7] = ["ac", "co", "com", "edu", "gov", "net", "org"];

/// Known example values, in lower case.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct KnownExamples {
    /// Domains, including their subdomains.
    domains: Vec<String>,
    /// Local parts, before the `@`.
    mailboxes: Vec<String>,
    /// Prefixes of IP addresses.
    networks: Vec<String>,
    /// Card numbers, digits only.
    cards: Vec<String>,
    /// Complete credentials.
    keys: Vec<String>,
    /// Substrings of credentials.
    parts: Vec<String>,
}

static KNOWN_EXAMPLES: LazyLock<KnownExamples> =
    LazyLock::new(|| toml::from_str(include_str!("documentation.toml")).unwrap_or_default());

/// Whether matched personal data, in lower case, consists of example values: all its mail addresses and URLs are examples,
/// or it is an IP address or a card number reserved for documentation.
pub(crate) fn is_example_value(matched: &str) -> bool {
    all_addresses(matched, is_example_address) || is_documentation_network(matched) || is_test_card(matched)
}

/// Whether a matched credential, in lower case, is published as an example.
pub(crate) fn is_published_example(matched: &str) -> bool {
    KNOWN_EXAMPLES.keys.iter().any(|key| key == matched)
        || KNOWN_EXAMPLES
            .parts
            .iter()
            .any(|part| matched.contains(part.as_str()))
}

fn is_example_address(address: &Address<'_>) -> bool {
    let Address { local, host, .. } = address;
    let mailbox = local.split('+').next().unwrap_or_default();
    KNOWN_EXAMPLES
        .domains
        .iter()
        .any(|domain| is_domain_or_subdomain(host, domain))
        || is_example_host(host)
        || KNOWN_EXAMPLES.mailboxes.iter().any(|known| known == mailbox)
        || host.split('.').any(|label| label == "noreply")
}

/// Whether a host is within `example.com`, `example.de`, `example.co.uk` and the like.
fn is_example_host(host: &str) -> bool {
    let mut labels = host.rsplit('.');
    let (top, second, third) = (labels.next(), labels.next(), labels.next());
    let is_country =
        top.is_some_and(|top| top.len() == 2 && top.bytes().all(|byte| byte.is_ascii_lowercase()));
    let is_below = |second: &str| is_country && third == Some("example") && SECOND_LEVELS.contains(&second);
    second.is_some_and(|second| second == "example" || is_below(second))
}

fn is_documentation_network(matched: &str) -> bool {
    let known = KNOWN_EXAMPLES
        .networks
        .iter()
        .any(|network| matched.starts_with(network.as_str()));
    known
        && matched
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() || matches!(byte, b'.' | b':'))
}

fn is_test_card(matched: &str) -> bool {
    let is_of_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b' ' | b'-');
    if !matched.bytes().all(is_of_number) {
        return false;
    }
    let digits = || matched.bytes().filter(u8::is_ascii_digit);
    KNOWN_EXAMPLES.cards.iter().any(|card| digits().eq(card.bytes()))
}

#[cfg(test)]
mod tests {
    use super::{KNOWN_EXAMPLES, is_example_value, is_published_example};
    use crate::checks::by_name;

    #[test]
    fn what_is_reserved_for_documentation_is_nobodys() {
        for text in [
            "user@example.com",
            "a.b@mail.example.org",
            "anna@acme.example",
            "root@build.test",
            "git@github.com",
            "noreply@anthropic.com",
            "no-reply+17@acme.com",
            "anna@example.de",
            "anna@mail.example.co.uk",
            "12+ann@users.noreply.github.com",
            "logo@2x.png",
            "192.0.2.17",
            "203.0.113.255",
            "2001:db8::17",
            "4242 4242 4242 4242",
            "3782-822463-10005",
        ] {
            assert!(is_example_value(text), "{text}");
        }
    }

    #[test]
    fn what_somebody_can_have_is_not() {
        for text in [
            "ann@acme.com",
            "ann@notexample.com",
            "ann@example.com.evil.net",
            "ann@example.evil.net",
            "ann@noreplying.com",
            "user@example.com, ann@acme.com",
            "192.0.3.17",
            "10.192.0.2",
            "2001:db8: not an address",
            "2001:db9::1",
            "4539578763621486",
            "born 192.0.2.1",
            "",
        ] {
            assert!(!is_example_value(text), "{text}");
        }
    }

    #[test]
    fn every_card_number_is_one() {
        let luhn = by_name("Luhn").unwrap();
        assert!(!KNOWN_EXAMPLES.cards.is_empty());
        for card in &KNOWN_EXAMPLES.cards {
            assert!(luhn(card.as_bytes()), "{card}");
        }
    }
    #[test]
    fn examples_that_vendors_and_standards_publish_are_nobodys_credentials() {
        for published in [
            "akiaiosfodnn7example",
            "wjalrxutnfemi/k7mdeng/bpxrficyexamplekey",
            "dxnlcm5hbwu6cgfzc3dvcmq=",
            "eyjhbgcioijiuzi1niisinr5cci6ikpxvcj9.eyjzdwiioiixmjm0nty3odkwiiwibmftzsi6ikpvag4gr.sflkx",
        ] {
            assert!(is_published_example(published), "{published}");
        }
        for own in ["akiaq3egt5mlpv6r2wxz", "dxnlcm5hbwu6cgfzc3dvcmqx", "", "exampl"] {
            assert!(!is_published_example(own), "{own}");
        }
    }
}
