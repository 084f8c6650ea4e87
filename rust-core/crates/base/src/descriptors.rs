//! File descriptors: how many the process may open, and how many clients, providers and the rest
//! may use.
//!
//! The ledger, the admin port, name look-ups and reloads need descriptors at any time, and fail
//! without them. So a part of the limit is reserved for them, and connections share the rest: no
//! more clients are accepted, and no more connections to providers are opened, than their shares
//! allow.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::{Rc, Weak};

use rustix::process::{Resource, getrlimit};
use serde::Serialize;

/// Maximum number of reserved descriptors: the admin port uses half of them.
const MAX_RESERVE: u64 = 320;
/// Minimum number of reserved descriptors, unless half of the limit is less.
const MIN_RESERVE: u64 = 96;

/// The division of a process's descriptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DescriptorShares {
    /// The maximum number that the process may open; `None`: no limit.
    pub limit: Option<u64>,
    /// The number reserved for the ledger, the admin port and files.
    pub reserved: u64,
    /// Maximum number of client connections: `limits.connections`, or fewer if not all fit.
    pub clients: usize,
    /// Maximum number of connections to providers.
    pub providers: usize,
}

impl DescriptorShares {
    /// Returns the shares of this process, which accepts up to `connections` clients. `limit`
    /// replaces the system's limit if it is lower.
    pub fn for_process(connections: usize, limit: Option<u64>) -> Self {
        let system = getrlimit(Resource::Nofile).current;
        let limit = [system, limit].into_iter().flatten().min();
        DescriptorShares::new(limit, connections)
    }

    fn new(limit: Option<u64>, connections: usize) -> Self {
        let all = limit.unwrap_or(u64::MAX);
        let reserved = (all / 8).clamp(MIN_RESERVE, MAX_RESERVE).min(all / 2);
        let room = usize::try_from(all - reserved).unwrap_or(usize::MAX);
        // Every client may need a provider connection, but many are served without one.
        let clients = connections.min(room - room / 3);
        DescriptorShares {
            limit,
            reserved,
            clients,
            providers: room - clients,
        }
    }
}

/// A resource that the process has run out of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceShortage {
    /// File descriptors for connections.
    Descriptors,
    /// Local ports for connections to one address.
    Ports,
}

impl ResourceShortage {
    /// Returns the shortage that an error reports, from this module or from the system; `None` for
    /// other errors.
    pub fn from_error(error: &io::Error) -> Option<Self> {
        use rustix::io::Errno;

        let inner = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<ResourceShortage>());
        inner.copied().or_else(|| match Errno::from_io_error(error)? {
            Errno::MFILE | Errno::NFILE => Some(ResourceShortage::Descriptors),
            _ => None,
        })
    }
}

impl std::fmt::Display for ResourceShortage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            ResourceShortage::Descriptors => "the process has no file descriptor left for the connection (RLIMIT_NOFILE)",
            ResourceShortage::Ports => {
                "the machine has no local port left for a connection to the address (net.ipv4.ip_local_port_range)"
            }
        })
    }
}

impl std::error::Error for ResourceShortage {}

impl From<ResourceShortage> for io::Error {
    fn from(shortage: ResourceShortage) -> Self {
        io::Error::other(shortage)
    }
}

/// A pool with idle connections.
pub trait IdleConnectionPool {
    /// Closes an idle connection; returns false if there is none.
    fn close_idle(&self) -> bool;
}

/// The sockets of one worker to providers, limited to its share of the descriptors.
pub struct UpstreamSockets {
    open: Cell<usize>,
    max_open: usize,
    /// Pools that can close an idle connection.
    pools: RefCell<Vec<Weak<dyn IdleConnectionPool>>>,
}

impl Default for UpstreamSockets {
    fn default() -> Self {
        UpstreamSockets::new(usize::MAX)
    }
}

impl UpstreamSockets {
    pub fn new(most: usize) -> Self {
        UpstreamSockets {
            open: Cell::new(0),
            max_open: most,
            pools: RefCell::default(),
        }
    }

    /// Registers a pool, which must close an idle connection when no sockets are left, as long as
    /// the pool exists.
    pub fn register_pool(&self, pool: Weak<dyn IdleConnectionPool>) {
        let mut pools = self.pools.borrow_mut();
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(pool);
    }

    /// Returns the number of open sockets.
    pub fn open(&self) -> usize {
        self.open.get()
    }

    /// Returns a permit to open a socket. If no permit is left, an idle connection is closed first.
    ///
    /// # Errors
    /// [`ResourceShortage::Descriptors`] if all sockets are in use.
    pub fn acquire(self: &Rc<Self>) -> Result<DescriptorPermit, ResourceShortage> {
        while self.open.get() >= self.max_open {
            let pools = self.pools.borrow();
            let mut pools = pools.iter().filter_map(Weak::upgrade);
            if !pools.any(|pool| pool.close_idle()) {
                return Err(ResourceShortage::Descriptors);
            }
        }
        self.open.set(self.open.get().saturating_add(1));
        Ok(DescriptorPermit(Rc::clone(self)))
    }
}

/// A permit for one socket, released on drop.
pub struct DescriptorPermit(Rc<UpstreamSockets>);

impl Drop for DescriptorPermit {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get().saturating_sub(1));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn whatever_the_limit_a_reserve_is_kept_back_and_both_sides_have_their_part() {
        let mut limits: Vec<u64> = (2..5000).collect();
        limits.extend([20_000, 1 << 20, 1 << 30, u64::MAX]);
        for limit in limits {
            for connections in [1, 100, 4096, 100_000] {
                let shares = DescriptorShares::new(Some(limit), connections);
                let all = shares.reserved as u128 + shares.clients as u128 + shares.providers as u128;
                assert!(all <= u128::from(limit), "{shares:?}");
                assert!(shares.clients >= 1 && shares.clients <= connections, "{shares:?}");
                assert!(
                    shares.reserved >= MIN_RESERVE.min(limit / 2) && shares.reserved <= MAX_RESERVE,
                    "{shares:?}"
                );
                assert!(
                    shares.providers.saturating_mul(2).saturating_add(2) >= shares.clients,
                    "{shares:?}"
                );
            }
        }
        assert_eq!(DescriptorShares::new(None, 4096).clients, 4096);
        let common = DescriptorShares::new(Some(1024), 4096);
        assert_eq!(
            (common.reserved, common.clients, common.providers),
            (128, 598, 298)
        );
    }

    struct Idle(Rc<UpstreamSockets>, RefCell<Vec<DescriptorPermit>>);

    impl IdleConnectionPool for Idle {
        fn close_idle(&self) -> bool {
            self.1.borrow_mut().pop().is_some()
        }
    }

    #[test]
    fn an_idle_connection_makes_room_and_one_in_use_does_not() {
        let sockets = Rc::new(UpstreamSockets::new(2));
        let idle = Rc::new(Idle(Rc::clone(&sockets), RefCell::default()));
        let pool: Weak<dyn IdleConnectionPool> = Rc::downgrade(&idle) as Weak<dyn IdleConnectionPool>;
        sockets.register_pool(pool);
        idle.1.borrow_mut().push(idle.0.acquire().unwrap());
        let one = sockets.acquire().unwrap();
        let two = sockets.acquire().unwrap();
        assert!(idle.1.borrow().is_empty(), "the idle one was closed");
        assert_eq!(sockets.acquire().err(), Some(ResourceShortage::Descriptors));
        drop(one);
        assert_eq!(sockets.open(), 1);
        assert!(sockets.acquire().is_ok());
        drop(two);
        assert_eq!(sockets.open(), 0);
    }

    #[test]
    fn a_shortage_is_told_by_the_system_or_by_the_room() {
        let of = |number| ResourceShortage::from_error(&io::Error::from_raw_os_error(number));
        assert_eq!(
            of(rustix::io::Errno::MFILE.raw_os_error()),
            Some(ResourceShortage::Descriptors)
        );
        assert_eq!(
            of(rustix::io::Errno::NFILE.raw_os_error()),
            Some(ResourceShortage::Descriptors)
        );
        assert_eq!(of(rustix::io::Errno::CONNREFUSED.raw_os_error()), None);
        for shortage in [ResourceShortage::Descriptors, ResourceShortage::Ports] {
            assert_eq!(ResourceShortage::from_error(&shortage.into()), Some(shortage));
        }
        assert_eq!(
            ResourceShortage::from_error(&io::ErrorKind::TimedOut.into()),
            None
        );
    }
}
