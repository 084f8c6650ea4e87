//! A request at the start of its exchange.

use std::cell::Cell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use proofgate_auth::Identity;
use proofgate_base::anthropic_headers::AnthropicHeaders;
use proofgate_base::approvals::Approval;
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

/// A request to a provider from an authenticated sender, with a complete body or the buffered part of a form.
pub struct IncomingCall<'c> {
    pub gateway: &'c Rc<Gateway>,
    pub catalog: &'c Rc<Catalog>,
    pub identity: &'c Identity,
    /// The dialect of its body.
    pub dialect: Dialect,
    /// Parameters from its path, if any.
    pub path_params: Option<&'c PathParams>,
    /// The operation on files or batches; `None` for other requests.
    pub stored_call: Option<&'c StoredObjectRequest>,
    /// The header fields of Anthropic's API that are forwarded to the provider.
    pub anthropic_headers: Option<Box<AnthropicHeaders>>,
    /// The session, end user and agent of the request, as the client states them.
    pub attribution: &'c mut Attribution,
    /// Address of the client.
    pub client_address: IpAddr,
    /// The approvals for calls of guarded tools.
    pub approvals: &'c [Approval],
    /// The configuration that was active when the request's head was complete.
    pub config: ConfigId,
    pub body: &'c [u8],
    /// The body as it arrived; it differs from `body` if the client's format is not the dialect's
    /// format.
    pub original_body: &'c [u8],
    /// The form; `None` if the body is not a form.
    pub form: Option<&'c BufferedForm>,
    /// The rest of a form that is still arriving; `None` if there is none.
    pub upload: Cell<Option<Box<Upload>>>,
    /// The time at which the request's head was complete.
    pub head_received_at: Instant,
    /// The time at which the body, or its buffered part, was complete. It may be much later than
    /// `head_received_at`.
    pub body_received_at: Instant,
    pub span: Span,
    /// Telemetry of the request, if it is observed.
    pub observed_exchange: Option<Box<ObservedExchange>>,
    /// The metric series that count the request; `None` while its model is not known.
    pub series: Option<Arc<Series>>,
    /// Length of the additional header lines that apply to every target, in bytes.
    pub common_headers_length: usize,
}

impl IncomingCall<'_> {
    /// Returns the endpoint's name in records.
    pub fn endpoint(&self) -> &'static str {
        self.path_params
            .map_or(self.dialect.path(), |in_path| in_path.form.path(self.dialect))
    }

    /// Returns the address of the client; `None` if records do not include it.
    pub(crate) fn recorded_address(&self) -> Option<String> {
        let is_recorded = self.catalog.settings.personal_data.client_address;
        is_recorded.then(|| self.client_address.to_string())
    }

    /// Whether the body has arrived completely.
    pub(crate) fn is_complete(&self) -> bool {
        self.form.is_none_or(|form| form.pending_body.is_none())
    }
}
