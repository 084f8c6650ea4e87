//! Mail addresses and URLs in a text.

/// A mail address or a URL in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address<'t> {
    pub(crate) full: &'t str,
    /// The part before the `@` of a mail address; empty for a URL.
    pub(crate) local: &'t str,
    pub(crate) host: &'t str,
}

/// Whether a lower-case text contains addresses and all of them satisfy `is_such`.
pub(crate) fn all_addresses(text: &str, is_such: impl Fn(&Address<'_>) -> bool) -> bool {
    let (mut rest, mut any) = (text, false);
    while let Some((address, behind)) = next_address(rest) {
        if !is_such(&address) {
            return false;
        }
        (rest, any) = (behind, true);
    }
    any
}

/// Returns the first address of a lower-case text, and the text after it.
fn next_address(text: &str) -> Option<(Address<'_>, &str)> {
    let is_of_host = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let is_of_local = |byte: u8| is_of_host(byte) || matches!(byte, b'_' | b'%' | b'+');
    let ends_url = |byte: u8| {
        byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\'' | b'<' | b'>' | b'(' | b')' | b'`')
    };
    let bytes = text.as_bytes();
    let (mail, url) = (text.find('@'), text.find("://"));
    if let Some(colon) = url.filter(|colon| mail.is_none_or(|at| *colon < at)) {
        let scheme = bytes[..colon]
            .iter()
            .rposition(|byte| !byte.is_ascii_alphanumeric());
        let start = scheme.map_or(0, |before| before + 1);
        let begin = colon + 3;
        let length = bytes[begin..].iter().position(|byte| ends_url(*byte));
        let end = length.map_or(text.len(), |length| begin + length);
        let authority = text
            .get(begin..end)?
            .split(['/', '?', '#'])
            .next()
            .unwrap_or_default();
        let host = authority.rsplit('@').next().unwrap_or_default();
        let address = Address {
            full: text.get(start..end)?,
            local: "",
            host: host.split(':').next().unwrap_or_default(),
        };
        return Some((address, text.get(end..)?));
    }
    let at = mail?;
    let before = bytes[..at].iter().rposition(|byte| !is_of_local(*byte));
    let start = before.map_or(0, |before| before + 1);
    let length = bytes[at + 1..].iter().position(|byte| !is_of_host(*byte));
    let end = length.map_or(text.len(), |length| at + 1 + length);
    let address = Address {
        full: text.get(start..end)?,
        local: text.get(start..at)?,
        host: text.get(at + 1..end)?.trim_end_matches('.'),
    };
    Some((address, text.get(end..)?))
}

/// Whether a host is the domain or one of its subdomains.
pub(crate) fn is_domain_or_subdomain(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain)
        .is_some_and(|below| below.is_empty() || below.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::{Address, is_domain_or_subdomain, next_address};

    #[test]
    fn an_address_is_read_with_what_belongs_to_it() {
        for (text, whole, local, host) in [
            (
                "mail ann.b@mail.acme.com now",
                "ann.b@mail.acme.com",
                "ann.b",
                "mail.acme.com",
            ),
            (
                "(https://acme.com:8443/a?b=c) x",
                "https://acme.com:8443/a?b=c",
                "",
                "acme.com",
            ),
            (
                "http://ann:pw@acme.com/x",
                "http://ann:pw@acme.com/x",
                "",
                "acme.com",
            ),
            ("x@acme.com.", "x@acme.com.", "x", "acme.com"),
        ] {
            let address = Address {
                full: whole,
                local,
                host,
            };
            assert_eq!(next_address(text).unwrap().0, address);
        }
        assert_eq!(next_address("nothing here"), None);
    }

    #[test]
    fn a_domain_holds_what_lies_below_it_and_not_what_ends_alike() {
        assert!(
            is_domain_or_subdomain("acme.com", "acme.com")
                && is_domain_or_subdomain("a.acme.com", "acme.com")
        );
        assert!(
            !is_domain_or_subdomain("notacme.com", "acme.com")
                && !is_domain_or_subdomain("acme.com.evil.net", "acme.com")
        );
    }
}
