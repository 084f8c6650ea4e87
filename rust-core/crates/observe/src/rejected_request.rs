//! What is known of a request that is turned away, for the record, the metrics and telemetry.

use std::net::IpAddr;
use std::sync::Arc;

use proofgate_base::routing::{ClientNetwork, Peer};
use proofgate_ledger::record::PolicyNote;

use crate::metrics::{RequestOutcome, Series};
use crate::telemetry::ObservedExchange;

/// What is known of a request that is refused.
#[derive(Default)]
pub struct RejectedRequest<'r> {
    pub tenant: Option<&'r str>,
    /// The key, when the request had passed the limits and counts there.
    pub counted_key: Option<String>,
    /// What the configuration calls the key, when the key is known and has a name.
    pub key_name: Option<Arc<str>>,
    /// The plan whose limits its tenant's namespace shares, when it counts there.
    pub shared_plan: Option<Arc<str>>,
    pub endpoint: Option<&'r str>,
    /// Bytes of it that were read.
    pub bytes: usize,
    pub policy: Option<PolicyNote<'r>>,
    /// Where it counts, when its model is known.
    pub series: Option<Arc<Series>>,
    /// What it counts as.
    pub outcome: RequestOutcome,
    /// What is told of it, where somebody wants to know.
    pub observed: Option<Box<ObservedExchange>>,
    /// Who sends it; `None` where that does not matter, because its tenant is known.
    pub sender: Option<ClientNetwork>,
    /// The address that it came from, for the record where the configuration wants it there.
    pub client_address: Option<IpAddr>,
}

impl RejectedRequest<'_> {
    /// A request on a connection of which nothing else is known.
    pub fn from_peer(peer: &Peer) -> Self {
        RejectedRequest {
            sender: Some(peer.client_network()),
            client_address: Some(peer.address),
            ..RejectedRequest::default()
        }
    }
}
