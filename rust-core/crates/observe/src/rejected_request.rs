//! What is known of a rejected request, for the record, the metrics and telemetry.

use std::net::IpAddr;
use std::sync::Arc;

use proofgate_base::routing::{ClientNetwork, Peer};
use proofgate_ledger::record::PolicyNote;

use crate::metrics::{RequestOutcome, Series};
use crate::telemetry::ObservedExchange;

/// What is known of a rejected request.
#[derive(Default)]
pub struct RejectedRequest<'r> {
    pub tenant: Option<&'r str>,
    /// The key, if the request had passed the limits and counts there.
    pub counted_key: Option<String>,
    /// The configured name of the key, if the key is known and has a name.
    pub key_name: Option<Arc<str>>,
    /// The plan whose limits the tenant's namespace shares, if the request counts there.
    pub shared_plan: Option<Arc<str>>,
    pub endpoint: Option<&'r str>,
    /// Number of bytes that were read.
    pub bytes: usize,
    pub policy: Option<PolicyNote<'r>>,
    /// Its metrics series, if its model is known.
    pub series: Option<Arc<Series>>,
    /// Its outcome in the metrics.
    pub outcome: RequestOutcome,
    /// What telemetry reports of it, if enabled.
    pub observed_exchange: Option<Box<ObservedExchange>>,
    /// The sender; `None` if it does not matter because the tenant is known.
    pub sender: Option<ClientNetwork>,
    /// The client's address, if the configuration wants it in records.
    pub client_address: Option<IpAddr>,
}

impl RejectedRequest<'_> {
    /// Creates one for a connection of which nothing else is known.
    pub fn from_peer(peer: &Peer) -> Self {
        RejectedRequest {
            sender: Some(peer.client_network()),
            client_address: Some(peer.address),
            ..RejectedRequest::default()
        }
    }
}
