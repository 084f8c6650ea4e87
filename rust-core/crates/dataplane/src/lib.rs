//! Sockets, TLS, pools, relay and drain: composes the pure crates into a worker.
