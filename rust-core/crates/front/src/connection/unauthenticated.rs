//! Responses that need no API key: to CORS preflight requests and to probes.

use proofgate_base::client::ConnectionAction;
use proofgate_base::error_response::{ResponseOptions, write_response};
use proofgate_base::routing::TenantRoute;
use proofgate_providers::Family;

use super::Connection;
use super::unauthenticated_request::UnauthenticatedRequest;
use crate::cors;

impl Connection {
    /// Answers a preflight request or a probe. A load balancer cannot route a request without a
    /// key, so the next request needs a new connection.
    pub(super) async fn respond_unauthenticated(
        &mut self,
        asked: UnauthenticatedRequest,
        length: usize,
        keep_alive: bool,
        now: std::time::Instant,
    ) -> ConnectionAction {
        let close = !keep_alive || self.peer.tenant_route != TenantRoute::AnyTenant || self.should_close(now);
        let cors = self.catalog.settings.cors.as_ref();
        let max_age = cors.map_or(0, |cors| cors.max_age_seconds).to_string();
        let (status, body, fields) = match asked {
            UnauthenticatedRequest::Preflight => (204, &b""[..], cors::preflight_fields(&max_age).to_vec()),
            UnauthenticatedRequest::Probe { options: true, .. } => {
                (204, &b""[..], vec![("allow", "GET, HEAD, OPTIONS")])
            }
            UnauthenticatedRequest::Probe { .. } => (200, &br#"{"status":"ok"}"#[..], Vec::new()),
        };
        let id = self.gateway.request_id(self.gateway.clock.unix_micros(now));
        let options = ResponseOptions {
            close,
            head_only: matches!(asked, UnauthenticatedRequest::Probe { head_only: true, .. }),
            extra_headers: &self.extra_headers,
            family: Family::default(),
        };
        self.gateway.buffers.pool.acquire(&mut self.buffers.head);
        let head = &mut self.buffers.head;
        head.clear();
        write_response(
            status,
            "application/json",
            body,
            id.as_str(),
            fields,
            options,
            head,
        );
        self.client.input.consume(length);
        self.send_head(close).await
    }
}
