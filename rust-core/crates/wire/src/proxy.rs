//! The PROXY protocol, version 2. The load balancer sends its header before the client's first
//! byte.
//!
//! Source: the PROXY protocol specification of HAProxy, sections 2.2 and 2.2.1 to 2.2.5. Trust the
//! header only from a peer that is known to be the load balancer.

use crate::protocol_error::ProtocolError;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
const FIXED_HEADER_BYTES: usize = 16;
/// Maximum length of a header in bytes. The headers of HAProxy have a few hundred bytes.
const MAX_HEADER_BYTES: usize = 2048;
/// Byte of version and command.
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
/// Byte of address family and transport. Datagram transports are refused, because HTTP needs a
/// stream.
const UNSPECIFIED: u8 = 0x00;
const TCP_OVER_IPV4: u8 = 0x11;
const TCP_OVER_IPV6: u8 = 0x21;
const UNIX_STREAM: u8 = 0x31;
const TLV_UNIQUE_ID: u8 = 0x05;

/// A PROXY header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProxyHeader<'b> {
    /// Length of the header in bytes. The client's first byte follows.
    pub length: usize,
    /// The client's address; `None` for the load balancer's own connections (health checks) and for other
    /// families.
    pub client: Option<SocketAddr>,
    /// The value of the unique-id TLV: the tenant for which the load balancer chose the worker.
    /// Empty if there is no such TLV, or for the load balancer's own connections.
    pub unique_id: &'b [u8],
}

/// Parses the PROXY header at the start of `buf`, which holds all bytes received so far. Returns
/// `None` if more bytes are needed.
///
/// # Errors
/// [`ProtocolError::InvalidProxyHeader`] if the bytes are not, or cannot become, such a header.
/// Reasons are another signature, version or command, a family other than TCP, UNIX stream or
/// unspecified, a length above 2 KiB, a TLV that does not fit, or a repeated unique ID. For a LOCAL
/// header only the length is read, as the specification requires.
pub fn parse_proxy_header(buf: &[u8]) -> Result<Option<ProxyHeader<'_>>, ProtocolError> {
    let seen = buf.len().min(SIGNATURE.len());
    if buf[..seen] != SIGNATURE[..seen] {
        return Err(ProtocolError::InvalidProxyHeader);
    }
    let Some(&[command, family, high, low]) = buf.get(SIGNATURE.len()..FIXED_HEADER_BYTES) else {
        return Ok(None);
    };
    let length = FIXED_HEADER_BYTES + usize::from(u16::from_be_bytes([high, low]));
    if !matches!(command, LOCAL | PROXY) || length > MAX_HEADER_BYTES {
        return Err(ProtocolError::InvalidProxyHeader);
    }
    let Some(rest) = buf.get(FIXED_HEADER_BYTES..length) else {
        return Ok(None);
    };
    if command == LOCAL {
        return Ok(Some(ProxyHeader {
            length,
            client: None,
            unique_id: b"",
        }));
    }
    let address_bytes = match family {
        UNSPECIFIED => 0,
        TCP_OVER_IPV4 => 12,
        TCP_OVER_IPV6 => 36,
        UNIX_STREAM => 216,
        _ => return Err(ProtocolError::InvalidProxyHeader),
    };
    let (addresses, tlvs) = rest
        .split_at_checked(address_bytes)
        .ok_or(ProtocolError::InvalidProxyHeader)?;
    Ok(Some(ProxyHeader {
        length,
        client: parse_source(addresses),
        unique_id: find_unique_id(tlvs)?,
    }))
}

/// Returns the source of a TCP address block.
fn parse_source(addresses: &[u8]) -> Option<SocketAddr> {
    let (ip, port): (IpAddr, &[u8]) = match addresses.len() {
        12 => (
            Ipv4Addr::from(<[u8; 4]>::try_from(&addresses[..4]).ok()?).into(),
            &addresses[8..10],
        ),
        36 => (
            Ipv6Addr::from(<[u8; 16]>::try_from(&addresses[..16]).ok()?).into(),
            &addresses[32..34],
        ),
        _ => return None,
    };
    Some(SocketAddr::new(ip, u16::from_be_bytes(port.try_into().ok()?)))
}

fn find_unique_id(mut tlvs: &[u8]) -> Result<&[u8], ProtocolError> {
    let mut found = None;
    while let [kind, high, low, rest @ ..] = tlvs {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        let (value, after) = rest
            .split_at_checked(length)
            .ok_or(ProtocolError::InvalidProxyHeader)?;
        if *kind == TLV_UNIQUE_ID && found.replace(value).is_some() {
            return Err(ProtocolError::InvalidProxyHeader);
        }
        tlvs = after;
    }
    if tlvs.is_empty() {
        Ok(found.unwrap_or_default())
    } else {
        Err(ProtocolError::InvalidProxyHeader)
    }
}
