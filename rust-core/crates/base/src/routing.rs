//! The sender of a connection, and the tenant for which the load balancer routed the connection; a
//! routing key authenticates the load balancer.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use subtle::ConstantTimeEq;

/// Separates the routing key from the tenant.
const SEPARATOR: u8 = b':';
/// Replaces a tenant's name if the load balancer does not pin tenants to this worker.
const ANY_TENANT: &[u8] = b"*";

/// A secret that the load balancer writes before the tenant's name. Clients do not know it, so a
/// connection that reaches a worker's port in another way is not treated as the load balancer's.
pub struct RoutingKey(Box<[u8]>);

impl RoutingKey {
    pub fn new(key: &str) -> Self {
        RoutingKey(key.as_bytes().into())
    }

    /// Parses the unique ID of the PROXY header: `<routing key>:<tenant>`.
    pub fn parse_unique_id(&self, unique_id: &[u8]) -> TenantRoute {
        let Some((key, [SEPARATOR, name @ ..])) = unique_id.split_at_checked(self.0.len()) else {
            return TenantRoute::NoTenant;
        };
        match name {
            _ if !bool::from(key.ct_eq(&self.0)) => TenantRoute::NoTenant,
            ANY_TENANT => TenantRoute::AnyTenant,
            name => TenantRoute::Tenant(name.into()),
        }
    }
}

/// The information about a connection before its first request.
#[derive(Debug, Clone)]
pub struct Peer {
    /// The tenants whose requests the connection may carry.
    pub tenant_route: TenantRoute,
    /// The client's address, as far as it is known.
    pub address: IpAddr,
}

impl Peer {
    /// Creates a peer at `address` whose requests may be those of `routed`. An IPv4-mapped IPv6
    /// address is converted to the IPv4 address.
    pub fn new(routed: TenantRoute, address: SocketAddr) -> Self {
        let address = address.ip().to_canonical();
        Peer {
            tenant_route: routed,
            address,
        }
    }

    /// Returns the sender to which requests are attributed while no tenant is known.
    pub fn client_network(&self) -> ClientNetwork {
        ClientNetwork::from(self.address)
    }
}

/// A sender, identified by its address: an IPv4 address, or the /64 network of an IPv6 address, which belongs to one
/// subscriber (RFC 6177).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientNetwork(IpAddr);

impl From<IpAddr> for ClientNetwork {
    fn from(address: IpAddr) -> Self {
        ClientNetwork(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address => address,
        })
    }
}

impl fmt::Display for ClientNetwork {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => address.fmt(out),
            IpAddr::V6(network) => write!(out, "{network}/64"),
        }
    }
}

/// The tenants whose requests a connection may carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TenantRoute {
    /// All tenants: the connection was not routed for a specific tenant.
    AnyTenant,
    /// The tenant for which this worker was chosen; matches no tenant if none has this name.
    Tenant(Box<[u8]>),
    /// No tenant: the peer is not the load balancer.
    NoTenant,
}

impl TenantRoute {
    /// Whether the connection may carry a request of the tenant `name`.
    pub fn allows(&self, name: &str) -> bool {
        match self {
            TenantRoute::AnyTenant => true,
            TenantRoute::Tenant(routed) => **routed == *name.as_bytes(),
            TenantRoute::NoTenant => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(unique_id: &[u8]) -> TenantRoute {
        RoutingKey::new("0123456789abcdef").parse_unique_id(unique_id)
    }

    #[test]
    fn the_tenant_is_what_follows_the_key() {
        assert_eq!(
            read(b"0123456789abcdef:acme"),
            TenantRoute::Tenant(b"acme".as_slice().into())
        );
        assert!(read(b"0123456789abcdef:acme").allows("acme"));
        assert!(!read(b"0123456789abcdef:acme").allows("acm"));
        assert!(!read(b"0123456789abcdef:-").allows("acme"));
        assert!(read(b"0123456789abcdef:*").allows("acme"));
    }

    #[test]
    fn a_subscriber_is_one_sender_whatever_address_he_takes() {
        let sender = |text: &str| {
            Peer::new(
                TenantRoute::AnyTenant,
                SocketAddr::new(text.parse().unwrap(), 4711),
            )
            .client_network()
        };
        assert_eq!(sender("2001:db8:1:2::3"), sender("2001:db8:1:2:ffff::1"));
        assert_ne!(sender("2001:db8:1:2::3"), sender("2001:db8:1:3::3"));
        assert_eq!(sender("::ffff:192.0.2.1"), sender("192.0.2.1"));
        assert_ne!(sender("192.0.2.1"), sender("192.0.2.2"));
        assert_eq!(sender("192.0.2.1").to_string(), "192.0.2.1");
        assert_eq!(sender("2001:db8:1:2::3").to_string(), "2001:db8:1:2::/64");
    }

    #[test]
    fn an_address_is_whole_and_in_its_shortest_form() {
        let address = |text: &str| {
            let address = SocketAddr::new(text.parse().unwrap(), 4711);
            Peer::new(TenantRoute::AnyTenant, address).address.to_string()
        };
        assert_eq!(address("192.0.2.7"), "192.0.2.7");
        assert_eq!(address("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(address("2001:0DB8:0:0:1:0:0:3"), "2001:db8::1:0:0:3");
    }

    #[test]
    fn without_the_key_nothing_is_believed() {
        for unique_id in [
            b"".as_slice(),
            b"acme",
            b"*",
            b":acme",
            b":*",
            b"0123456789abcdef",
            b"0123456789abcdeg:*",
            b"0123456789abcde:*",
            b"0123456789abcdefacme",
        ] {
            assert_eq!(read(unique_id), TenantRoute::NoTenant, "{unique_id:?}");
        }
    }
}
