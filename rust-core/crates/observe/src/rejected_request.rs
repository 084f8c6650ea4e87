//! Rejected requests, for the record, the metrics and telemetry.

use std::net::IpAddr;
use std::sync::Arc;

use proofgate_base::routing::{ClientNetwork, Peer};
use proofgate_ledger::record::PolicyNote;

use crate::metrics::{RequestOutcome, Series};
use crate::telemetry::ObservedExchange;

/// The known facts about a rejected request.
#[derive(Default)]
pub struct RejectedRequest<'r> {
    pub tenant: Option<&'r str>,
    /// The key, if the request had passed the limits and counts in them.
    pub counted_key: Option<String>,
    /// The configured name of the key, if the key is known and has a name.
    pub key_name: Option<Arc<str>>,
    /// The plan whose limits the tenant's namespace shares, if the request counts in these limits.
    pub shared_plan: Option<Arc<str>>,
    pub endpoint: Option<&'r str>,
    /// Number of bytes that were read.
    pub bytes: usize,
    pub policy: Option<PolicyNote<'r>>,
    /// Metrics series of the request, if its model is known.
    pub series: Option<Arc<Series>>,
    /// Outcome of the request in the metrics.
    pub outcome: RequestOutcome,
    /// Data of the request for telemetry, if telemetry is enabled.
    pub observed_exchange: Option<Box<ObservedExchange>>,
    /// The sender; `None` if the tenant is known, because the sender is then irrelevant.
    pub sender: Option<ClientNetwork>,
    /// The client's address, if the configuration requires it in records.
    pub client_address: Option<IpAddr>,
}

impl RejectedRequest<'_> {
    /// Creates a rejected request from its connection, without other facts.
    pub fn from_peer(peer: &Peer) -> Self {
        RejectedRequest {
            sender: Some(peer.client_network()),
            client_address: Some(peer.address),
            ..RejectedRequest::default()
        }
    }
}
