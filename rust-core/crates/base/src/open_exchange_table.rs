use std::cell::RefCell;
use std::sync::Arc;

use proofgate_limits::CredentialId;
use proofgate_wal::{Ulid, UnfinishedExchange};
use slab::Slab;

use crate::request_id::RequestId;

/// The admitted exchanges that have not ended, for the next log, which continues with them.
#[derive(Default)]
pub struct OpenExchangeTable(RefCell<Slab<OpenExchangeEntry>>);

/// An open exchange.
pub struct OpenExchangeEntry {
    /// The position of the admission among all records of this worker run.
    pub position: u64,
    /// The time of the admission, in Unix microseconds.
    pub admitted_at: u64,
    pub id: RequestId,
    pub tenant: Arc<str>,
    pub credential: CredentialId,
    /// The tokens reserved for the exchange; `None`: no reservation.
    pub reserved_tokens: Option<u64>,
    /// The cost reserved for the exchange; `None`: no reservation.
    pub reserved_nanodollars: Option<u64>,
    /// The plan whose limits the tenants of a namespace share; `None`: no shared limits.
    pub shared_plan: Option<Arc<str>>,
    pub model: Arc<str>,
}

impl OpenExchangeTable {
    /// Inserts an exchange whose admission has just been appended; returns its slot.
    pub fn insert(&self, entry: OpenExchangeEntry) -> usize {
        self.0.borrow_mut().insert(entry)
    }

    /// Removes an exchange whose completion has just been appended.
    pub fn remove(&self, place: usize) {
        self.0.borrow_mut().try_remove(place);
    }

    /// Whether the exchange with this ID is open.
    pub fn contains(&self, id: &str) -> bool {
        self.0.borrow().iter().any(|(_, entry)| entry.id.as_str() == id)
    }

    /// Returns the model of an open exchange.
    pub fn model(&self, place: usize) -> Option<Arc<str>> {
        self.0.borrow().get(place).map(|entry| Arc::clone(&entry.model))
    }

    /// Returns all open exchanges; `locate` returns the log and the record number of a position.
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
                key: entry.credential.to_hex().as_str().to_owned(),
                reserved: entry.reserved_tokens,
                reserved_nanodollars: entry.reserved_nanodollars,
                shared_plan: entry.shared_plan.as_deref().map(str::to_owned),
                model: entry.model.to_string(),
            }
        });
        listed.collect()
    }
}
