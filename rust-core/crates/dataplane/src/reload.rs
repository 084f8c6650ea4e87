//! What the control side tells the data-plane thread while it serves: another configuration, other signing keys.

use std::rc::Rc;
use std::sync::mpsc::SyncSender;

use proofgate_auth::KeySet;
use tokio::sync::mpsc::Receiver;

use crate::catalog::{Blueprint, Catalog};
use crate::gateway::Gateway;

/// Orders that may wait; whoever gives one waits for its answer, so there are never many.
pub(crate) const MAX_WAITING: usize = 16;

/// One order, and who waits for its answer.
pub(crate) enum Order {
    /// Take this configuration into service.
    Configure(Box<Blueprint>, SyncSender<()>),
    /// Verify tokens of this issuer with these keys; answers whether the issuer is configured.
    UseKeySet(String, Box<KeySet>, SyncSender<bool>),
}

/// Obeys orders as they come; runs as a task of the data-plane thread.
pub(crate) async fn obey(gateway: Rc<Gateway>, mut orders: Receiver<Order>) {
    while let Some(order) = orders.recv().await {
        match order {
            Order::Configure(blueprint, done) => {
                let previous = gateway.catalog();
                let catalog = {
                    let mut limiter = gateway.limiter.borrow_mut();
                    Catalog::new(*blueprint, Some(&previous), &mut limiter)
                };
                gateway.replace_catalog(catalog);
                let _ = done.try_send(());
            }
            Order::UseKeySet(issuer, keys, done) => {
                let catalog = gateway.catalog();
                let set = catalog.terms.authenticator.set_key_set(&issuer, *keys);
                let _ = done.try_send(set.is_ok());
            }
        }
    }
    // Nobody gives orders any more; the task is vital and must not end by itself.
    std::future::pending::<()>().await;
}
