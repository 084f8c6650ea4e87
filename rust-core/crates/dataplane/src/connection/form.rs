//! Requests whose bodies are forms with files: they need not be whole before they are admitted.

use std::cell::Cell;
use std::time::Instant;

use proofgate_multipart::{Boundary, MultipartError};
use proofgate_stages::{Span, Stage};
use proofgate_wire::Headers;

use super::{Connection, Request, RequestSoFar};
use crate::admission::IncomingCall;
use crate::client::After;
use crate::endpoint::Route;
use crate::exchange;
use crate::reply::Reply;
use crate::upload::Upload;

/// The boundary of a form.
pub(super) fn boundary(headers: &Headers<'_>) -> Result<Boundary, MultipartError> {
    let mut types = headers
        .iter()
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
    match (types.next(), types.next()) {
        (Some((_, value)), None) => Boundary::of(value),
        _ => Err(MultipartError::ContentType),
    }
}

impl Connection {
    /// Serves a request with a form behind a head of `length` bytes.
    pub(super) async fn form(
        &mut self,
        request: Request,
        boundary: Boundary,
        mut known: RequestSoFar,
        length: usize,
        now: Instant,
        mut span: Span,
    ) -> After {
        let Some(dialect) = request.route.dialect() else {
            return After::Close;
        };
        let stored = match &request.route {
            Route::Stored(call) => Some(&**call),
            _ => None,
        };
        self.client.input.consume(length);
        let terms = &self.catalog.terms;
        let framing = request.framing;
        let mut upload = Box::new(Upload::new(
            &boundary,
            dialect,
            framing,
            terms,
            &self.gateway.budget,
        ));
        let asks = request.expect_continue;
        let held = upload.hold(&mut self.client, &boundary, framing, terms, asks);
        let held = match held.await {
            Ok(held) => held,
            Err(unserved) => return self.unserved(unserved, known, span).await,
        };
        span.lap_now(Stage::Body);
        let close = !request.keep_alive || self.is_leaving(now);
        let call = IncomingCall {
            gateway: &self.gateway,
            catalog: &self.catalog,
            identity: &request.identity,
            dialect,
            in_path: None,
            stored,
            fields: None,
            config: request.config,
            observed: known.observed.take(),
            body: &held.body,
            form: Some(&held),
            upload: Cell::new(held.coming.is_some().then_some(upload)),
            now,
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
        };
        let after = exchange::run(call, back).await;
        self.buffers.give_back(&self.gateway.spare);
        after
    }
}
