//! TCP connections to a provider or its proxy.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::rc::Rc;

use proofgate_base::descriptors::{ResourceShortage, UpstreamSockets};
use tokio::net::TcpStream;

use super::happy_eyeballs;
use super::maybe_tls_stream::Socket;
use super::resolver::HostAddresses;

/// Connects to one of the addresses of a host.
///
/// # Errors
/// A [`ResourceShortage`], which the addresses do not cause, or the error of the last failed
/// attempt.
pub(super) async fn connect_to(
    addresses: &[SocketAddr],
    names: &HostAddresses,
    sockets: &Rc<UpstreamSockets>,
) -> io::Result<Socket> {
    let attempt = |address| connect_once(address, Rc::clone(sockets));
    let connected = happy_eyeballs::connect(addresses, attempt).await;
    connected.inspect_err(|error| {
        if ResourceShortage::from_error(error).is_none() {
            names.invalidate();
        }
    })
}

async fn connect_once(address: SocketAddr, sockets: Rc<UpstreamSockets>) -> io::Result<Socket> {
    let taken = sockets.acquire()?;
    let tcp = TcpStream::connect(address).await.map_err(|error| {
        // A machine without a source address of that family gets the same error.
        match error.kind() == io::ErrorKind::AddrNotAvailable && has_source_for(address) {
            true => ResourceShortage::Ports.into(),
            false => error,
        }
    })?;
    tcp.set_nodelay(true)?;
    Ok(Socket::new(tcp, taken))
}

/// Whether the machine has a source address for a destination. Connecting a datagram socket checks
/// this without sending anything.
fn has_source_for(address: SocketAddr) -> bool {
    let local: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((local, 0)).is_ok_and(|socket| socket.connect(address).is_ok())
}
