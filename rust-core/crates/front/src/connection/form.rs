//! Requests whose bodies are forms with files: they need not be whole before they are admitted.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use proofgate_base::client::AfterExchange;
use proofgate_exchange::body::NoRequest;
use proofgate_exchange::endpoint::Route;
use proofgate_exchange::exchange;
use proofgate_exchange::incoming_call::IncomingCall;
use proofgate_exchange::reply::Reply;
use proofgate_exchange::upload::Upload;
use proofgate_multipart::Boundary;
use proofgate_stages::{Span, Stage};
use proofgate_wire::parse_request;

use super::{Connection, Request, RequestSoFar};

impl Connection {
    /// Serves a request with a form behind a head of `length` bytes.
    pub(super) async fn form(
        &mut self,
        mut request: Request,
        boundary: Boundary,
        mut known: RequestSoFar,
        length: usize,
        now: Instant,
        mut span: Span,
    ) -> AfterExchange {
        let Some(dialect) = request.route.dialect() else {
            return AfterExchange::Close;
        };
        let head = self.client.input[..length].to_vec();
        self.client.input.consume(length);
        let terms = &self.catalog.terms;
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
            .hold(client, lifecycle, &boundary, framing, terms, asks)
            .await;
        let renewed = held.and_then(|held| {
            self.renew(&mut request, &head, now, &mut known)?;
            Ok(held)
        });
        let held = match renewed {
            Ok(held) => held,
            Err(unserved) => return self.unserved(unserved, known, span).await,
        };
        drop(head);
        span.lap_now(Stage::Body);
        let stored = match &request.route {
            Route::Stored(call) => Some(&**call),
            _ => None,
        };
        let close = !request.keep_alive || self.is_leaving(now);
        let call = IncomingCall {
            gateway: &self.gateway,
            catalog: &self.catalog,
            identity: &request.identity,
            dialect,
            in_path: None,
            stored,
            fields: None,
            attribution: &mut self.attribution,
            client_address: self.peer.address,
            approvals: &[],
            config: request.config,
            observed: known.observed.take(),
            body: &held.body,
            as_it_came: &held.body,
            form: Some(&held),
            upload: Cell::new(held.coming.is_some().then_some(upload)),
            now,
            body_at: Instant::now(),
            span,
            series: None,
            own_fields: 0,
        };
        let back = Reply {
            client: &mut self.client,
            buffers: &mut self.buffers,
            extra: &mut self.extra,
            lifecycle: &mut self.lifecycle,
            deadline: &mut self.deadline,
            close,
            dialect,
            frames: None,
        };
        let after = exchange::run(call, back).await;
        self.attribution.forget();
        self.buffers.give_back(&self.gateway.buffers.spare);
        after
    }

    /// Finds out anew who sends a form, and follows what is in force now, where that has changed since its head.
    fn renew(
        &mut self,
        request: &mut Request,
        head: &[u8],
        now: Instant,
        known: &mut RequestSoFar,
    ) -> Result<(), NoRequest> {
        let (catalog, config) = (self.gateway.catalog(), self.gateway.observers.recorder.config());
        if Rc::ptr_eq(&catalog, &self.catalog) && config == request.config {
            return Ok(());
        }
        self.catalog = catalog;
        request.config = config;
        let head = parse_request(head, &self.catalog.terms.head_limits)?;
        request.identity = self.sender(&head, &request.route, now, known)?;
        Ok(())
    }
}
