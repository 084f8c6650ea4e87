use std::rc::Rc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::{JoinError, JoinSet};

use crate::connection;
use crate::gateway::Gateway;
use crate::lifecycle::{Lifecycle, Phase};

/// Accepts connections until the worker drains; returns those that are still open.
///
/// Above `limit` connections nothing is accepted: the rest waits in the kernel's queue.
pub(crate) async fn accept(
    gateway: &Rc<Gateway>,
    listener: TcpListener,
    limit: usize,
    mut lifecycle: Lifecycle,
) -> JoinSet<()> {
    let mut connections = JoinSet::new();
    let view = lifecycle.clone();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < limit => match accepted {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    gateway.metrics.connection_opened();
                    connections.spawn_local(connection::serve(Rc::clone(gateway), stream, view.clone()));
                }
                // Out of file descriptors: those in use must come back first.
                Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            },
            Some(ended) = connections.join_next(), if !connections.is_empty() => count_end(gateway, ended),
            () = lifecycle.reached(Phase::Draining) => return connections,
        }
    }
}

/// Waits until all of `connections` have ended.
pub(crate) async fn wait_for_all(gateway: &Rc<Gateway>, connections: &mut JoinSet<()>) {
    while let Some(ended) = connections.join_next().await {
        count_end(gateway, ended);
    }
}

/// The task of a connection is its panic boundary: a panic costs that connection and is counted.
fn count_end(gateway: &Gateway, ended: Result<(), JoinError>) {
    gateway
        .metrics
        .connection_closed(ended.is_err_and(|error| error.is_panic()));
}
