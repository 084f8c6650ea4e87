//! Requests whose bodies are forms with files. Such requests can be admitted before they are
//! complete.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use proofgate_base::client::ConnectionAction;
use proofgate_exchange::body::RequestReadError;
use proofgate_exchange::endpoint::Route;
use proofgate_exchange::exchange;
use proofgate_exchange::incoming_call::IncomingCall;
use proofgate_exchange::reply::Reply;
use proofgate_exchange::upload::Upload;
use proofgate_multipart::Boundary;
use proofgate_stages::{Span, Stage};
use proofgate_wire::parse_request;

use super::{Connection, PartialRequest, Request};

impl Connection {
    /// Serves a request with a form that follows a head of `length` bytes.
    pub(super) async fn serve_form(
        &mut self,
        mut request: Request,
        boundary: Boundary,
        mut known: PartialRequest,
        length: usize,
        now: Instant,
        mut span: Span,
    ) -> ConnectionAction {
        let Some(dialect) = request.route.dialect() else {
            return ConnectionAction::Close;
        };
        let head = self.client.input[..length].to_vec();
        self.client.input.consume(length);
        let terms = &self.catalog.settings;
        let framing = request.framing;
        let mut upload = Box::new(Upload::new(
            &boundary,
            dialect,
            framing,
            terms,
            &self.gateway.buffers.budget,
        ));
        let asks = request.expect_continue;
        let (client, lifecycle) = (&mut self.client, &mut self.lifecycle);
        let held = upload
            .buffer_form(client, lifecycle, &boundary, framing, terms, asks)
            .await;
        let renewed = held.and_then(|held| {
            self.reauthenticate(&mut request, &head, now, &mut known)?;
            Ok(held)
        });
        let held = match renewed {
            Ok(held) => held,
            Err(unserved) => return self.reject(unserved, known, span).await,
        };
        drop(head);
        span.lap_now(Stage::Body);
        let stored = match &request.route {
            Route::StoredObject(call) => Some(&**call),
            _ => None,
        };
        let close = !request.keep_alive || self.should_close(now);
        let call = IncomingCall {
            gateway: &self.gateway,
            catalog: &self.catalog,
            identity: &request.identity,
            dialect,
            path_params: None,
            stored_call: stored,
            anthropic_headers: None,
            attribution: &mut self.attribution,
            client_address: self.peer.address,
            approvals: &[],
            config: request.config,
            observed_exchange: known.observed.take(),
            body: &held.body,
            original_body: &held.body,
            form: Some(&held),
            upload: Cell::new(held.pending_body.is_some().then_some(upload)),
            head_received_at: now,
            body_received_at: Instant::now(),
            span,
            series: None,
            common_headers_length: 0,
        };
        let back = Reply {
            client: &mut self.client,
            buffers: &mut self.buffers,
            extra_headers: &mut self.extra_headers,
            lifecycle: &mut self.lifecycle,
            deadline: &mut self.deadline,
            close,
            dialect,
            frame_writer: None,
        };
        let after = exchange::run(call, back).await;
        self.attribution.clear();
        self.buffers.release(&self.gateway.buffers.pool);
        after
    }

    /// Authenticates the sender of a form again with the active configuration, if the configuration
    /// has changed since the head was read.
    fn reauthenticate(
        &mut self,
        request: &mut Request,
        head: &[u8],
        now: Instant,
        known: &mut PartialRequest,
    ) -> Result<(), RequestReadError> {
        let (catalog, config) = (self.gateway.catalog(), self.gateway.observers.recorder.config());
        if Rc::ptr_eq(&catalog, &self.catalog) && config == request.config {
            return Ok(());
        }
        self.catalog = catalog;
        request.config = config;
        let head = parse_request(head, &self.catalog.settings.head_limits)?;
        request.identity = self.authenticate(&head, &request.route, now, known)?;
        Ok(())
    }
}
