//! Tests of the PROXY v2 header that the load balancer sends before the client's bytes.

use proofgate_wire::{ProtocolError, ProxyHeader, parse_proxy_header};

/// A header as HAProxy sends it, for a TCP connection from 192.0.2.7:40000 with the unique ID
/// `acme`, followed by a request.
const FROM_HAPROXY: &[u8] =
    b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x13\xc0\0\x02\x07\x7f\0\0\x01\x9c\x40\x1f\x90\x05\0\x04acmeGET";

#[test]
fn the_client_and_the_tenant_are_read() {
    let header = parse_proxy_header(FROM_HAPROXY).unwrap().unwrap();
    assert_eq!(header.client, Some("192.0.2.7:40000".parse().unwrap()));
    assert_eq!(
        (header.unique_id, &FROM_HAPROXY[header.length..]),
        (&b"acme"[..], &b"GET"[..])
    );
}

#[test]
fn an_incomplete_header_waits_for_more() {
    for length in 0..FROM_HAPROXY.len() - 3 {
        assert_eq!(
            parse_proxy_header(&FROM_HAPROXY[..length]),
            Ok(None),
            "after {length} bytes"
        );
    }
}

#[test]
fn a_health_check_has_no_client() {
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0";
    let expected = ProxyHeader {
        length: 16,
        client: None,
        unique_id: b"",
    };
    assert_eq!(parse_proxy_header(local), Ok(Some(expected)));
}

#[test]
fn of_a_local_header_only_the_length_is_read() {
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\x41\0\x07\x05\0\x04acmeGET";
    let expected = ProxyHeader {
        length: 23,
        client: None,
        unique_id: b"",
    };
    assert_eq!(parse_proxy_header(local), Ok(Some(expected)));
}

#[test]
fn a_client_without_an_address_is_not_known() {
    let unspecified = b"\r\n\r\n\0\r\nQUIT\n\x21\0\0\x07\x05\0\x04acme";
    let header = parse_proxy_header(unspecified).unwrap().unwrap();
    assert_eq!((header.client, header.unique_id), (None, &b"acme"[..]));
}

#[test]
fn an_ipv6_client_is_read() {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x21\0\x24".to_vec();
    header.extend_from_slice(&[0; 15]);
    header.push(1);
    header.extend_from_slice(&[0; 16]);
    header.extend_from_slice(&[0, 80, 0, 81]);
    assert_eq!(
        parse_proxy_header(&header).unwrap().unwrap().client,
        Some("[::1]:80".parse().unwrap())
    );
}

#[test]
fn anything_else_is_refused() {
    let replaced = |at: usize, byte: u8| {
        let mut header = FROM_HAPROXY.to_vec();
        header[at] = byte;
        header
    };
    for header in [
        b"GET / HTTP/1.1\r\n".to_vec(),
        b"\r\n\r\nX".to_vec(),
        b"PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\n".to_vec(),
        replaced(12, 0x11),
        replaced(12, 0x22),
        replaced(13, 0x41),
        replaced(13, 0x12),
        replaced(13, 0x01),
        replaced(14, 0xff),
        replaced(15, 0x0b),
        replaced(15, 0x12),
        replaced(29, 0xff),
    ] {
        assert_eq!(
            parse_proxy_header(&header),
            Err(ProtocolError::InvalidProxyHeader),
            "{header:?}"
        );
    }
}
