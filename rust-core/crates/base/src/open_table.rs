use std::cell::RefCell;
use std::sync::Arc;

use proofgate_limits::CredentialId;
use proofgate_wal::{Ulid, UnfinishedExchange};
use slab::Slab;

use crate::request_id::RequestId;

/// The exchanges that are admitted and not ended, for whoever has to take up the log from here.
#[derive(Default)]
pub struct OpenExchangeTable(RefCell<Slab<OpenExchangeEntry>>);

/// What is kept of an open exchange.
pub struct OpenExchangeEntry {
    /// Where its admission stands among all records of this life of the worker.
    pub position: u64,
    pub admitted_at: u64,
    pub id: RequestId,
    pub tenant: Arc<str>,
    pub key: CredentialId,
    pub reserved_tokens: Option<u64>,
    pub reserved_nanodollars: Option<u64>,
    pub shared_plan: Option<Arc<str>>,
    pub model: Arc<str>,
}

impl OpenExchangeTable {
    /// Notes an exchange whose admission has just been appended; returns its place.
    pub fn insert(&self, entry: OpenExchangeEntry) -> usize {
        self.0.borrow_mut().insert(entry)
    }

    /// Forgets an exchange whose end has just been appended.
    pub fn remove(&self, place: usize) {
        self.0.borrow_mut().try_remove(place);
    }

    /// Whether the exchange with this id is open.
    pub fn contains(&self, id: &str) -> bool {
        self.0.borrow().iter().any(|(_, entry)| entry.id.as_str() == id)
    }

    /// The model of an open exchange.
    pub fn model(&self, place: usize) -> Option<Arc<str>> {
        self.0.borrow().get(place).map(|entry| Arc::clone(&entry.model))
    }

    /// All that are open; `locate` tells the log and the number there of a record at a position.
    pub fn list(&self, locate: impl Fn(u64) -> (Ulid, u64)) -> Vec<UnfinishedExchange> {
        let entries = self.0.borrow();
        let listed = entries.iter().map(|(_, entry)| {
            let (incarnation, admission) = locate(entry.position);
            UnfinishedExchange {
                incarnation,
                admission,
                ts: entry.admitted_at,
                id: entry.id.as_str().to_owned(),
                tenant: entry.tenant.to_string(),
                key: entry.key.to_hex().as_str().to_owned(),
                reserved: entry.reserved_tokens,
                reserved_nanodollars: entry.reserved_nanodollars,
                shared_plan: entry.shared_plan.as_deref().map(str::to_owned),
                model: entry.model.to_string(),
            }
        });
        listed.collect()
    }
}
