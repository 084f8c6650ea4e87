//! The addresses of providers that the gateway may connect to.
//!
//! The check applies to the address of the connection, after name resolution. So a name that
//! resolves to another address the next time (DNS rebinding) cannot bypass it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;

/// The addresses that the gateway may connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Egress {
    /// The only allowed ranges; `None` allows all addresses that are not
    /// [forbidden](is_forbidden_address).
    allowed: Option<Vec<IpNet>>,
}

impl Egress {
    /// Parses ranges such as `10.0.0.0/8`.
    ///
    /// # Errors
    /// The text that is not a range.
    pub fn new(allowed: Option<&[String]>) -> Result<Self, String> {
        let range = |text: &String| {
            text.parse()
                .map_err(|_| format!("egress: {text:?} is not a range of addresses"))
        };
        let allowed = allowed.map(|ranges| ranges.iter().map(range).collect());
        Ok(Egress {
            allowed: allowed.transpose()?,
        })
    }

    /// Whether only configured ranges are allowed.
    pub(super) fn has_ranges(&self) -> bool {
        self.allowed.is_some()
    }

    /// Returns the allowed addresses among `addresses`.
    pub(super) fn filter_allowed(&self, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        let admitted = addresses.iter().filter(|address| self.allows(address.ip()));
        admitted.copied().collect()
    }

    fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match &self.allowed {
            Some(ranges) => ranges.iter().any(|range| range.contains(&address)),
            None => !is_forbidden_address(address),
        }
    }
}

/// Addresses of cloud metadata services, which give machines in the cloud data such as their
/// credentials.
const METADATA: [IpAddr; 9] = [
    // Amazon (IPv6 form of 169.254.169.254), and its pods in EKS (of 169.254.170.23).
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),
    // Google (IPv6 form of 169.254.169.254).
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),
    // Scaleway (IPv6 form of 169.254.42.42).
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),
    // Oracle (IPv6 form of 169.254.169.254), and Oracle's first cloud.
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    // Akamai (IPv6 form of 169.254.169.254).
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1)),
    // Alibaba.
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    // Azure.
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),
];

/// Names of cloud metadata services, for processes that cannot resolve them.
const METADATA_NAMES: [&str; 4] = [
    "metadata.google.internal",
    "metadata.goog",
    "metadata",
    "instance-data.ec2.internal",
];

/// Whether a host name belongs to a metadata service, and so not to a provider.
pub(super) fn is_metadata_name(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    METADATA_NAMES.iter().any(|name| name.eq_ignore_ascii_case(host))
}

/// Whether an address cannot belong to a provider, because it is link-local, unspecified,
/// multicast, broadcast or the address of a metadata service.
fn is_forbidden_address(address: IpAddr) -> bool {
    if METADATA.contains(&address) {
        return true;
    }
    match address {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast(),
        IpAddr::V6(v6) => {
            v6.is_unicast_link_local()
                || v6.is_unspecified()
                || v6.is_multicast()
                || embedded_ipv4(v6).is_some_and(|v4| is_forbidden_address(IpAddr::V4(v4)))
        }
    }
}

/// Returns the IPv4 address embedded in an IPv6 address: NAT64 (RFC 6052, also with the prefix of RFC 8215), 6to4 (RFC
/// 3056), or IPv4-compatible (RFC 4291 section 2.5.5.1).
fn embedded_ipv4(v6: Ipv6Addr) -> Option<Ipv4Addr> {
    let octets = v6.octets();
    let part =
        |from: usize| Ipv4Addr::new(octets[from], octets[from + 1], octets[from + 2], octets[from + 3]);
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, ..] | [0x64, 0xff9b, 1, ..] | [0, 0, 0, 0, 0, 0, ..] => Some(part(12)),
        [0x2002, ..] => Some(part(2)),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn admits(egress: &Egress, address: &str) -> bool {
        egress.allows(address.parse().unwrap())
    }

    #[test]
    fn the_metadata_of_the_machine_is_nobodys_provider_however_it_is_written() {
        let egress = Egress::new(None).unwrap();
        for address in [
            "169.254.169.254",
            "169.254.170.2",
            "::ffff:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::169.254.169.254",
            "2002:a9fe:a9fe::1",
            "::169.254.169.254",
            "fd00:ec2::254",
            "fd00:ec2::23",
            "fd20:ce::254",
            "fd00:42::42",
            "fd00:c1::a9fe:a9fe",
            "fd00:a9fe:a9fe::1",
            "fe80::1",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "64:ff9b::100.100.100.200",
            "0.0.0.0",
            "::",
            "::ffff:0.0.0.0",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
        ] {
            assert!(!admits(&egress, address), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "192.168.1.1",
            "8.8.8.8",
            "::1",
            "2606:4700::1111",
            "64:ff9b::8.8.8.8",
            "64:ff9b:1::8.8.8.8",
            "fd00::1",
        ] {
            assert!(admits(&egress, address), "{address}");
        }
    }

    #[test]
    fn where_ranges_are_given_they_alone_may_be_reached() {
        let ranges = [
            "10.0.0.0/8".to_owned(),
            "2001:db8::/32".to_owned(),
            "169.254.169.254/32".to_owned(),
        ];
        let egress = Egress::new(Some(&ranges)).unwrap();
        for address in ["10.255.0.1", "::ffff:10.0.0.1", "2001:db8::1", "169.254.169.254"] {
            assert!(admits(&egress, address), "{address}");
        }
        for address in ["11.0.0.1", "127.0.0.1", "::1", "2001:db9::1", "169.254.169.253"] {
            assert!(!admits(&egress, address), "{address}");
        }
        assert!(
            !admits(&Egress::new(Some(&[])).unwrap(), "10.0.0.1"),
            "no range is none"
        );
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "10.0.0.1", "10.0.0.0/33", "example.com/8"] {
            assert!(Egress::new(Some(&[text.to_owned()])).is_err(), "{text}");
        }
    }
}
