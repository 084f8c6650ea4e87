//! Connects to the first address of a host that responds (RFC 8305).

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

/// The time after which the next address is tried in parallel to the running attempts (RFC 8305
/// section 8).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
/// Maximum number of addresses that are tried. A host with more addresses is a cluster whose
/// addresses are equivalent.
const MAX_ATTEMPTS: usize = 16;

/// Connects to one of `addresses`. The next address is tried when an attempt fails, or when no
/// attempt has ended for [`ATTEMPT_DELAY`]. The caller limits the total time.
///
/// # Errors
/// The error of the last failed attempt, if all failed.
pub(super) async fn connect<C, F, T>(addresses: &[SocketAddr], connect: C) -> io::Result<T>
where
    C: Fn(SocketAddr) -> F,
    F: Future<Output = io::Result<T>> + 'static,
    T: 'static,
{
    let mut attempts = JoinSet::new();
    let mut left = interleave(addresses).into_iter().take(MAX_ATTEMPTS);
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    loop {
        match left.next() {
            Some(address) => drop(attempts.spawn_local(connect(address))),
            None if attempts.is_empty() => return Err(failure),
            None => {}
        }
        tokio::select! {
            Some(ended) = attempts.join_next() => match ended {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) => failure = error,
                Err(error) => failure = error.into(),
            },
            () = sleep(ATTEMPT_DELAY), if left.len() > 0 => {}
        }
    }
}

/// Returns the addresses in the order in which they are tried: the resolver's order with alternating families, so that an
/// unreachable family costs one delay (RFC 8305 section 4).
fn interleave(addresses: &[SocketAddr]) -> Vec<SocketAddr> {
    let first_is_ipv6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut second): (Vec<SocketAddr>, Vec<SocketAddr>) = addresses
        .iter()
        .copied()
        .partition(|address| address.is_ipv6() == first_is_ipv6);
    first.reverse();
    second.reverse();
    let mut order = Vec::with_capacity(addresses.len());
    while !first.is_empty() || !second.is_empty() {
        order.extend(first.pop());
        order.extend(second.pop());
    }
    order
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::future::{pending, ready};
    use std::rc::Rc;

    use tokio::task::LocalSet;
    use tokio::time::Instant;

    use super::*;

    fn addresses(text: &str) -> Vec<SocketAddr> {
        text.split(' ').map(|address| address.parse().unwrap()).collect()
    }

    const MIXED: &str = "[::1]:1 [::2]:1 [::3]:1 1.1.1.1:1 1.1.1.2:1";

    #[test]
    fn families_take_turns_beginning_with_the_resolvers_first() {
        let expected = addresses("[::1]:1 1.1.1.1:1 [::2]:1 1.1.1.2:1 [::3]:1");
        assert_eq!(interleave(&addresses(MIXED)), expected);
        let expected = addresses("1.1.1.1:1 [::1]:1 1.1.1.2:1");
        assert_eq!(interleave(&addresses("1.1.1.1:1 1.1.1.2:1 [::1]:1")), expected);
        assert!(interleave(&[]).is_empty());
    }

    /// Connects to addresses, some of which are silent, some refuse and others accept; returns the
    /// connected address, the milliseconds it took, and the number of attempts.
    async fn race(
        addresses: &[SocketAddr],
        silent: &[usize],
        refuses: &[usize],
    ) -> (Option<usize>, u128, usize) {
        let begin = Instant::now();
        let tried = Rc::new(RefCell::new(0));
        let order = interleave(addresses);
        let attempt = |address: SocketAddr| {
            *tried.borrow_mut() += 1;
            let place = order.iter().position(|known| *known == address).unwrap();
            let (silent, refuses) = (silent.contains(&place), refuses.contains(&place));
            async move {
                if silent {
                    pending::<()>().await;
                }
                match refuses {
                    true => ready(Err(io::ErrorKind::ConnectionRefused.into())).await,
                    false => Ok(place),
                }
            }
        };
        let connected = LocalSet::new().run_until(connect(addresses, attempt)).await;
        let count = *tried.borrow();
        (connected.ok(), begin.elapsed().as_millis(), count)
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_is_silent_costs_a_quarter_of_a_second_and_no_more() {
        let all = addresses(MIXED);
        assert_eq!(race(&all, &[], &[]).await, (Some(0), 0, 1));
        assert_eq!(race(&all, &[0], &[]).await, (Some(1), 250, 2));
        assert_eq!(race(&all, &[0, 1, 2, 3], &[]).await, (Some(4), 1000, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_refuses_costs_nothing() {
        let all = addresses(MIXED);
        assert_eq!(race(&all, &[], &[0, 1, 2]).await, (Some(3), 0, 4));
        assert_eq!(race(&all, &[0], &[1]).await, (Some(2), 250, 3));
        assert_eq!(race(&all, &[], &[0, 1, 2, 3, 4]).await, (None, 0, 5));
        assert_eq!(race(&[], &[], &[]).await, (None, 0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn of_a_crowd_only_so_many_are_tried() {
        let crowd: Vec<SocketAddr> = (0..200).map(|n| ([1, 1, 1, n], 1).into()).collect();
        let refuses: Vec<usize> = (0..200).collect();
        assert_eq!(race(&crowd, &[], &refuses).await, (None, 0, MAX_ATTEMPTS));
    }
}
