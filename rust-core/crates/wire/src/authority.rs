//! `uri-host [":" port]`, as in a Host header (RFC 9110 section 7.2, RFC 3986 section 3.2).

use std::net::Ipv6Addr;

/// A valid host with an optional port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Authority<'b> {
    host: &'b str,
    port: Option<&'b str>,
}

impl<'b> Authority<'b> {
    /// Parses an authority; `None` unless `text` is exactly one authority without user info.
    ///
    /// This function is stricter than the grammar, because other servers are stricter too. A name
    /// consists of letters, digits, `-` and `_`, without escapes, and without the comma with which
    /// a proxy joins two Host lines. Labels are not empty, except after a final dot. After a colon
    /// there is a port of 1 to 5 digits, at most 65535.
    pub(crate) fn parse(text: &'b [u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        let (host, port) = if let Some(after) = text.strip_prefix('[') {
            let (address, after) = after.split_once(']')?;
            address.parse::<Ipv6Addr>().ok()?;
            let port = if after.is_empty() {
                None
            } else {
                Some(after.strip_prefix(':')?)
            };
            (&text[..address.len() + 2], port)
        } else {
            match text.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (text, None),
            }
        };
        let host_is_valid = host.starts_with('[') || is_name(host.as_bytes());
        (host_is_valid && port.is_none_or(is_port)).then_some(Self { host, port })
    }

    /// Returns whether both authorities name the same host and port. `default_port` replaces a
    /// missing port.
    pub(crate) fn same_as(&self, other: &Self, default_port: &'static str) -> bool {
        let port = |authority: &Self| authority.port.unwrap_or(default_port).parse::<u16>().ok();
        self.host.eq_ignore_ascii_case(other.host) && port(self) == port(other)
    }
}

fn is_port(text: &str) -> bool {
    (1..=5).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && text.parse::<u16>().is_ok()
}

/// Returns whether a host consists of labels of letters, digits, `-` and `_`. This includes IPv4
/// addresses (RFC 3986 section 3.2.2).
fn is_name(host: &[u8]) -> bool {
    let host = host.strip_suffix(b".").unwrap_or(host);
    host.split(|&byte| byte == b'.').all(|label| {
        !label.is_empty()
            && label
                .iter()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(byte))
    })
}
