//! A request that an exchange begins with.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use proofgate_auth::Identity;
use proofgate_base::approvals::Approval;
use proofgate_base::client_fields::AnthropicHeaders;
use proofgate_ledger::record::ConfigId;
use proofgate_observe::attribution::Attribution;
use proofgate_observe::metrics::Series;
use proofgate_observe::telemetry::ObservedExchange;
use proofgate_providers::Dialect;
use proofgate_stages::Span;
use proofgate_upstream::catalog::Catalog;
use proofgate_upstream::google_path::PathParams;
use proofgate_upstream::stored_path::StoredObjectRequest;

use crate::gateway::Gateway;
use crate::upload::{BufferedForm, Upload};

/// A request to a provider whose sender is known and whose body is whole.
pub struct IncomingCall<'c> {
    pub gateway: &'c Rc<Gateway>,
    pub catalog: &'c Rc<Catalog>,
    pub identity: &'c Identity,
    /// What its body is written in.
    pub dialect: Dialect,
    /// What its path says of it.
    pub path_params: Option<&'c PathParams>,
    /// What it asks of files or batches, where it does.
    pub stored_call: Option<&'c StoredObjectRequest>,
    /// What of its head goes upstream.
    pub anthropic_headers: Option<Box<AnthropicHeaders>>,
    /// Whom it is for, as its client says.
    pub attribution: &'c mut Attribution,
    /// Where it comes from.
    pub client_address: IpAddr,
    /// By what it may call guarded tools.
    pub approvals: &'c [Approval],
    /// What was in force when its head was complete.
    pub config: ConfigId,
    pub body: &'c [u8],
    /// The body as it came, where its client writes another one than that of the dialect.
    pub original_body: &'c [u8],
    /// What it says, where it is a form.
    pub form: Option<&'c BufferedForm>,
    /// The rest of a form that is still coming.
    pub upload: Cell<Option<Box<Upload>>>,
    /// When its head was complete.
    pub head_received_at: Instant,
    /// When its body was, or what is held of it: a client may take its time between the two.
    pub body_received_at: Instant,
    pub span: Span,
    /// What is told of it, where somebody wants to know.
    pub observed: Option<Box<ObservedExchange>>,
    /// Where it counts, once its model is known.
    pub series: Option<Arc<Series>>,
    /// How many bytes of the answer's further fields hold wherever the request is sent.
    pub own_headers_length: usize,
}

impl IncomingCall<'_> {
    /// The name by which records know what it asks for.
    pub fn endpoint(&self) -> &'static str {
        self.path_params
            .map_or(self.dialect.path(), |in_path| in_path.form.path(self.dialect))
    }

    /// The address of its client, where records have it.
    pub(crate) fn recorded_address(&self) -> Option<String> {
        let is_recorded = self.catalog.settings.personal_data.client_address;
        is_recorded.then(|| self.client_address.to_string())
    }

    /// Whether nothing of it is still coming.
    pub(crate) fn is_complete(&self) -> bool {
        self.form.is_none_or(|form| form.pending_body.is_none())
    }
}
